"""Full covariances of test documents: seconds, and what they gain.

    python benchmarks/covariances.py --json benchmarks/results/covariances.json

20 Newsgroups, all words, a diagonal model of the fast solver (`--model` takes a saved
one). The floor counts the products of one step, n V K (K + 1) operations for the second
moments and 6 n R V K for the draws, at the rate of a large square product measured in
the same run. Times are also given in CPU seconds of all threads together: on a busy
machine those say more.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from docsigma import BayesianSMM, Vocabulary, load_corpus, load_model
from docsigma.estep import FullSettings

if TYPE_CHECKING:
    from collections.abc import Callable

SIDE = 3000  # of the square product


def timed(function: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return result, {"seconds": wall, "cpu_seconds": cpu}


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    corpus = load_corpus("20newsgroups")
    vocabulary, counted = Vocabulary.fit_count(corpus.train.texts, min_df=2)
    if chosen.model is None:
        k = chosen.components
        model = BayesianSMM(k, device="cpu", random_state=0).fit(counted.counts)
    else:
        model = load_model(chosen.model)
        model.set_params(device="cpu")
    order = np.random.default_rng(0).permutation(len(corpus.test.texts))
    texts = [corpus.test.texts[i] for i in order[: chosen.documents]]
    counts = vocabulary.count(texts).counts
    square = torch.randn(SIDE, SIDE)
    _, spent = timed(lambda: [square @ square for _ in range(4)])
    rates = {name: 8 * SIDE**3 / value for name, value in spent.items()}
    k, v = model.components_.shape
    n, n_draws = counts.shape[0], FullSettings().draws(k)
    operations = n * v * (k * (k + 1) + 6 * n_draws * k)
    rows = {}
    for name in ("diagonal", "full"):
        q, spent = timed(lambda f=name: model.posterior(counts, covariance=f))
        found = model.perplexity(counts, posterior=q, n_draws=chosen.draws)
        rows[name] = spent | {
            "corpus": found.corpus,
            "per_document": found.per_document,
        }
        print(name, {key: round(value, 2) for key, value in rows[name].items()})
    return {
        "documents": n,
        "words": v,
        "components": k,
        "threads": torch.get_num_threads(),
        "operations_per_step": operations,
        "floor_seconds_per_step": operations / rates["seconds"],
        "floor_cpu_seconds_per_step": operations / rates["cpu_seconds"],
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "families": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--draws", type=int, default=32, help="of the perplexities")
    parser.add_argument("--model", type=Path, help="a saved model, instead of a fit")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    result = measure(chosen)
    print(json.dumps(result, indent=1))
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
