"""How time grows with the number of documents, words, components and tokens.

    python benchmarks/growth.py --json benchmarks/results/growth.json

Counts are drawn from a known model. Around one base point each size is doubled alone,
four points a size; the exponent b of time ~ size^b is the slope of the line through
their logarithms. A pass of the training is timed on the drawn documents, embedding
with the model that they were drawn from: after a few passes T says nothing yet, and
inference would have nothing to do.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from docsigma import BayesianSMM
from docsigma.corpora.synthetic import load_synthetic
from peers_machine import OtherWork, describe_run

if TYPE_CHECKING:
    from docsigma.corpora import Corpus

AXES = {
    "n_documents": "documents",
    "n_features": "words",
    "n_components": "components",
    "n_tokens": "tokens per document",
}
BASE = {"n_documents": 2000, "n_features": 5000, "n_components": 50, "n_tokens": 100}
QUICK = {"n_documents": 40, "n_features": 100, "n_components": 4, "n_tokens": 20}
FACTORS = (0.5, 1, 2, 4)
PRECISION = 10.0


def draw(point: dict[str, int]) -> Corpus:
    """Draw documents whose logits vary by one about the uni-gram's."""
    return load_synthetic(
        n_train=point["n_documents"],
        n_test=max(1, point["n_documents"] // 2),
        n_features=point["n_features"],
        n_components=point["n_components"],
        prior_precision=PRECISION,
        loading_scale=float(np.sqrt(PRECISION / point["n_components"])),
        mean_tokens=point["n_tokens"],
    )


def measure(point: dict[str, int], solver: str, passes: int) -> dict[str, float]:
    """Time a pass and the embedding at one point."""
    corpus: Any = draw(point)
    model = BayesianSMM(
        point["n_components"],
        prior_precision=PRECISION,
        solver=solver,
        max_iter=passes,
        tol=0,
        device="cpu",
        random_state=0,
    )
    model.fit(corpus.train.counts)
    clock = [row["seconds"] for row in model.history_]
    truth = corpus.truth
    model.components_ = truth.word_loadings.T.astype(np.float32)
    model.log_unigram_ = truth.log_unigram.astype(np.float32)
    started = time.perf_counter()
    posterior = model.posterior(corpus.test.counts)
    seconds = time.perf_counter() - started
    return {
        "seconds_a_pass": float(np.median(np.diff(clock, prepend=0.0))),
        "embed_documents_per_second": len(posterior.mean) / seconds,
    }


def exponent(sizes: list[float], seconds: list[float]) -> float:
    """Slope of the line through the logarithms.

    Examples
    --------
    >>> round(exponent([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure_axes(
    base: dict[str, int], solver: str, passes: int
) -> dict[str, dict[str, Any]]:
    """Vary each size alone; the base point is measured once."""
    seen: dict[tuple[int, ...], dict[str, float]] = {}
    axes: dict[str, dict[str, Any]] = {}
    for axis in AXES:
        rows = []
        for factor in FACTORS:
            point = base | {axis: int(base[axis] * factor)}
            key = tuple(point.values())
            if key not in seen:
                seen[key] = measure(point, solver, passes)
            rows.append({"size": point[axis]} | seen[key])
        sizes = [row["size"] for row in rows]
        embedding = [1 / row["embed_documents_per_second"] for row in rows]
        axes[axis] = {
            "rows": rows,
            "pass_exponent": exponent(sizes, [row["seconds_a_pass"] for row in rows]),
            "embed_exponent": exponent(sizes, embedding),
        }
        print(table(axis, axes[axis]), flush=True)
    return axes


def table(axis: str, found: dict[str, Any]) -> str:
    """Lay one axis out for a terminal."""
    lines = [f"{AXES[axis]:>18s}    ms per pass    documents/s"]
    lines += [
        f"{row['size']:18d} {1000 * row['seconds_a_pass']:12.1f} "
        f"{row['embed_documents_per_second']:14.1f}"
        for row in found["rows"]
    ]
    lines.append(
        f"  a pass ~ size^{found['pass_exponent']:.2f}, "
        f"embedding a document ~ size^{found['embed_exponent']:.2f}\n"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--solver", default="fast")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try it")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    report = describe_run(chosen.threads)
    base = QUICK if chosen.quick else BASE
    others = OtherWork()
    # The first call of a process starts threads and fills caches.
    measure(QUICK, chosen.solver, chosen.passes)
    axes = measure_axes(base, chosen.solver, chosen.passes)
    report |= {
        "solver": chosen.solver,
        "passes": chosen.passes,
        "base": base,
        "axes": axes,
        "others_busy_cores": others.busy_cores(),
    }
    if chosen.json:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
