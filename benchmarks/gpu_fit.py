"""Whole fits and embeddings on a GPU: seconds, documents per second, bound, agreement.

    python benchmarks/gpu_fit.py --json benchmarks/results/fit-gpu.json

Times of fits are of the second run, as the first compiles the kernels; those of
embeddings are medians of five calls. `paper` is Algorithm 1 with 600 passes, the bound
to reach.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.exceptions import ConvergenceWarning

from _versions import changed_commit
from docsigma import BayesianSMM
from docsigma_paper.topic_id import load_task
from peers_machine import describe_run

if TYPE_CHECKING:
    from collections.abc import Callable


ROOT = Path(__file__).parents[1]

# The test part is small for a GPU; it is also embedded so many times over.
COPIES = 16


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    started = time.perf_counter()
    result = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return result, time.perf_counter() - started


def median(work: Callable[[], Any], repeats: int = 5) -> tuple[Any, float]:
    """Work once, then time it some times over."""
    result = work()
    return result, float(np.median([timed(work)[1] for _ in range(repeats)]))


def measure(
    train: sp.csr_matrix, test: sp.csr_matrix, **settings: Any
) -> tuple[BayesianSMM, dict[str, Any]]:
    """Fit and embed twice; judge the second."""
    if settings.get("solver", "fast") == "fast":
        BayesianSMM(random_state=0, **settings).fit(train)
    model, fit_seconds = timed(
        lambda: BayesianSMM(random_state=0, tol=0, **settings).fit(train)
    )
    q, embed_seconds = median(lambda: model.posterior(test))
    many = sp.vstack([test] * COPIES, format="csr")
    _, many_seconds = median(lambda: model.posterior(many))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        model.posterior(test)
    missed = [str(one.message).split()[0] for one in said]
    seen = model.perplexity(test, posterior=q)
    return model, {
        **settings,
        "n_iter": model.n_iter_,
        "fit_seconds": fit_seconds,
        "embed_documents_per_second": test.shape[0] / embed_seconds,
        "embed_many_documents_per_second": many.shape[0] / many_seconds,
        "not_converged": sum(map(int, missed)),
        "perplexity": seen.corpus,
        "perplexity_per_document": seen.per_document,
    }


def agreement(model: BayesianSMM, test: sp.csr_matrix) -> dict[str, float]:
    """Compare the embeddings of the GPU and of the CPU, in standard deviations."""
    there = model.posterior(test)
    device = model.device
    here = model.set_params(device="cpu").posterior(test)
    model.set_params(device=device)
    off = (there.mean - here.mean) / np.sqrt(here.variance)
    return {
        "n_documents": test.shape[0],
        "mean_off_at_most": float(np.abs(off).max()),
        "mean_off_rms": float(np.sqrt(np.mean(off**2))),
        # What the tolerance is about: the root mean square per document.
        "document_off_at_most": float(np.sqrt((off**2).mean(axis=1)).max()),
        "variance_off_at_most": float(np.abs(there.variance / here.variance - 1).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="20newsgroups")
    parser.add_argument("--components", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--paper-passes", type=int, default=600)
    parser.add_argument("--limit", type=int, help="documents of each part")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    task = load_task(chosen.corpus)
    train = sp.csr_matrix(task.train[: chosen.limit], dtype=np.float32)
    test = sp.csr_matrix(task.test[: chosen.limit], dtype=np.float32)
    cuda = torch.cuda.is_available()
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "torch": torch.__version__,
        "corpus": chosen.corpus,
        "run": describe_run(torch.get_num_threads()) | changed_commit(ROOT),
        "rows": [],
    }

    def keep(row: dict[str, Any]) -> None:
        report["rows"].append(row)
        print(json.dumps(row), flush=True)
        if chosen.json is not None:
            chosen.json.write_text(json.dumps(report, indent=1) + "\n")

    for k in chosen.components:
        model, row = measure(train, test, n_components=k)
        keep(row)
        if k == chosen.components[0]:
            report["agreement"] = agreement(model, test[:500])
            print(json.dumps(report["agreement"]), flush=True)
            paper = {"solver": "paper", "max_iter": chosen.paper_passes}
            keep(measure(train, test, n_components=k, **paper)[1])


if __name__ == "__main__":
    main()
