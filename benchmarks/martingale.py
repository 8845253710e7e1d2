r"""Are the variances right? Parts of documents against the whole, without labels.

    python benchmarks/martingale.py
    python benchmarks/martingale.py switchboard docstrings --only ratios

For an exact posterior, a part of a document and the whole obey, per dimension,
E (nu_part - nu_whole)^2 = E s2_part - E s2_whole; above 1, the ratio of the two sums
says that the variances of parts are too small. `ratios` gives it for models with
default settings on the test texts of six corpora. `causes` repeats it with full
covariances, and on documents drawn from the model itself, whose posteriors only the
approximation can spoil. `running` looks for what would mend first words: other numbers
of components, the Polya likelihood, and counts multiplied by kappa, with the perplexity
of the rest of the document given its part. A work that is run replaces its own results
in the file only.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import softmax

from _corpora import CORPORA, load
from _versions import changed_commit
from docsigma import BayesianSMM, DocumentEmbedder
from docsigma.metrics import VarianceCalibration, calibrate_variances
from peers_machine import describe_run

ROOT = Path(__file__).parents[1]
OUT = ROOT / "benchmarks" / "results" / "martingale.json"
CAUSES = CORPORA[:-1]  # 20 Newsgroups takes ten minutes
RUNNING = ("switchboard", "docstrings")
KAPPAS = (0.7, 0.5, 0.3)
SIZES = (20, 50, 200)  # beside the default, 100
# Documents of `causes` and of `running`, at random.
SOME = 1000
FEW = 300
# Known words that the documents of `running` have, so that all take part at 100.
LONG = 200
N_DRAWS = 16


def rows_of(found: VarianceCalibration) -> list[dict[str, Any]]:
    """Return the ratios for JSON, with quantiles of those of single dimensions."""
    return [
        {
            "kind": part.kind,
            "size": part.size,
            "n_documents": part.n_documents,
            "ratio": round(part.ratio, 4),
            "low": round(part.low, 4),
            "high": round(part.high, 4),
            "dimensions": np.nanquantile(
                part.by_dimension[:, 0], [0, 0.05, 0.5, 0.95, 1]
            )
            .round(3)
            .tolist(),
            "without_ratio": int(np.isnan(part.by_dimension[:, 0]).sum()),
        }
        for part in found.parts
    ]


def fit(name: str, **model: Any) -> DocumentEmbedder:
    embedder = DocumentEmbedder(model=BayesianSMM(**model), random_state=0)
    return embedder.fit(load(name).texts)


def some_rows(counts: sp.csr_matrix, n_rows: int, least: int) -> np.ndarray:
    """Return random rows that have at least so many known words."""
    long = np.flatnonzero(np.asarray(counts.sum(axis=1)).ravel() >= least)
    return np.sort(np.random.default_rng(0).permutation(long)[:n_rows])


def ratios(name: str, embedder: DocumentEmbedder) -> dict[str, Any]:
    """Measure the ratios on all test texts."""
    corpus, begun = load(name), time.perf_counter()
    found = embedder.calibration(corpus.test_texts)
    return {
        "n_train": len(corpus.texts),
        "n_test": len(corpus.test_texts),
        "n_words": embedder.model_.n_features_in_,
        "n_components": embedder.model_.n_components,
        "seconds": round(time.perf_counter() - begun, 1),
        "parts": rows_of(found),
    }


def causes(name: str, embedder: DocumentEmbedder) -> dict[str, Any]:
    """Measure random words with both covariances, on real and on drawn documents."""
    model = embedder.model_
    counts = embedder._counts(load(name).test_texts)
    counts = counts[some_rows(counts, SOME, 4)]
    drawn = draw_documents(model, np.asarray(counts.sum(axis=1)).ravel())
    result = {}
    for what, some in (("real", counts), ("drawn", drawn)):
        for covariance in ("diagonal", "full"):
            found = calibrate_variances(
                lambda x, c=covariance: model.posterior(x, covariance=c), some
            )
            result[f"{what}, {covariance}"] = rows_of(found)
    return result


def draw_documents(model: Any, n_tokens: np.ndarray) -> sp.csr_matrix:
    """Draw documents of given lengths from a model with an isotropic prior."""
    random = np.random.default_rng(1)
    w = random.standard_normal((len(n_tokens), model.n_components))
    logits = model.log_unigram_ + w @ model.components_ / model.prior_precision**0.5
    theta = softmax(logits.astype(np.float64), axis=1)
    rows = [random.multinomial(int(n), p) for n, p in zip(n_tokens, theta, strict=True)]
    return sp.csr_matrix(np.array(rows, dtype=np.float32))


def running(name: str, embedder: DocumentEmbedder) -> dict[str, Any]:
    """Measure what more components, tempering and the Polya likelihood change."""
    rows = some_rows(embedder._counts(load(name).test_texts), FEW, LONG)
    texts = [load(name).test_texts[row] for row in rows]
    ways = {f"K {embedder.model_.n_components}": (embedder.model_, 1.0)}
    ways |= {f"K {k}": (fit(name, n_components=k).model_, 1.0) for k in SIZES}
    ways |= {f"kappa {kappa:g}": (embedder.model_, kappa) for kappa in KAPPAS}
    ways["polya"] = fit(name, likelihood="polya").model_, 1.0
    result = {}
    for way, (model, kappa) in ways.items():
        seen = []

        def embed(x: sp.csr_matrix, m: Any = model, k: float = kappa) -> Any:
            q = m.posterior(sp.csr_matrix(x * np.float32(k)))
            seen.append((x, q))  # noqa: B023
            return q

        order = model.vocabulary_.in_order(texts)
        found = rows_of(calibrate_variances(embed, embedder._counts(texts), order))
        whole = seen[0][0]
        for row, (part, q) in zip(found, seen[1:], strict=True):
            row["rest_perplexity"] = round(rest_perplexity(model, q, whole - part), 1)
        result[way] = found
    return result


def rest_perplexity(model: Any, q: Any, rest: sp.csr_matrix) -> float:
    """Return the perplexity of words given the Gaussians of other words.

    Of both likelihoods it is that of the word probabilities, averaged over draws.
    """
    loadings = torch.from_numpy(model.components_)
    bias = torch.from_numpy(model.log_unigram_)
    points = torch.from_numpy(q.draws(N_DRAWS, random_state=0)).to(loadings)
    total = 0.0
    for d in range(rest.shape[0]):
        theta = torch.softmax(bias + points[:, d] @ loadings, dim=1).mean(dim=0)
        total += float(rest[d].data @ np.log(theta.numpy()[rest[d].indices]))
    return float(np.exp(-total / rest.sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    works = {"ratios": ratios, "causes": causes, "running": running}
    parser.add_argument("--only", choices=works, nargs="+", default=list(works))
    parser.add_argument("--json", type=Path, default=OUT)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    run = describe_run(1) | changed_commit(ROOT)
    kept = json.loads(chosen.json.read_text()) if chosen.json.exists() else {}
    report: dict[str, Any] = kept | {
        work: {"run": run, "corpora": {}} for work in chosen.only
    }
    at = {"ratios": chosen.corpora, "causes": CAUSES, "running": RUNNING}
    for name in chosen.corpora:
        works_here = [work for work in chosen.only if name in at[work]]
        embedder = fit(name) if works_here else None
        for work in works_here:
            found = report[work]["corpora"][Path(name).name] = works[work](
                name, embedder
            )
            print(work, name, json.dumps(found), flush=True)
            chosen.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
