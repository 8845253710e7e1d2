"""Test perplexity of the paper's algorithm on 20 Newsgroups, every estimator.

    python benchmarks/perplexity.py --json benchmarks/results/perplexity-2k-50.json

The paper prints 629 / 639 for the 2000-word vocabulary and K 50; our valid bound must
stay at most 725 / 790, `authors` at most 640 / 640.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

from docsigma import BayesianSMM, Vocabulary, load_corpus


def load(name: str):
    corpus = load_corpus(name)
    if corpus.train.counts is not None:
        return corpus.train.counts, corpus.test.counts
    words, counted = Vocabulary.fit_count(corpus.train.texts, min_df=2)
    return counted.counts, words.count_documents(corpus.test).counts


def device_name(device: str) -> str:
    if device != "cpu" and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"cpu, {torch.get_num_threads()} threads"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="20newsgroups-2k")
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--l1", type=float, default=1.0)
    parser.add_argument("--solver", default="paper")
    parser.add_argument("--max-iter", type=int, default=1000)
    parser.add_argument("--importance-draws", type=int, default=2000)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    train, test = load(arguments.corpus)
    model = BayesianSMM(
        arguments.components,
        prior_precision=10.0,
        l1=arguments.l1,
        solver=arguments.solver,
        max_iter=arguments.max_iter,
        tol=0,
        device=arguments.device,
        random_state=arguments.seed,
        verbose=True,
    )
    model.fit(train)
    started = time.perf_counter()
    q = model.posterior(test)
    report = {
        "corpus": arguments.corpus,
        "n_features": int(train.shape[1]),
        "n_components": arguments.components,
        "l1": arguments.l1,
        "seed": arguments.seed,
        "device": device_name(arguments.device),
        "n_iter": model.n_iter_,
        "sparsity": model.history_[-1]["sparsity"],
        "fit_seconds": model.history_[-1]["seconds"],
        "posterior_seconds": time.perf_counter() - started,
        "estimators": {},
    }
    draws = {"monte_carlo": 32, "jensen": 1, "authors": 32}
    draws["importance"] = arguments.importance_draws
    for estimator, n_draws in draws.items():
        result = model.perplexity(
            test, estimator=estimator, n_draws=n_draws, posterior=q
        )
        report["estimators"][estimator] = {
            name: value
            for name, value in result.to_dict().items()
            if name in {"corpus", "per_document", "standard_error", "n_draws"}
        }
        print(
            f"{estimator:12s} {n_draws:5d} draws  {result.corpus:7.1f} / "
            f"{result.per_document:7.1f}  (± {result.standard_error:.1f})"
        )
    report["unigram"] = [result.unigram_corpus, result.unigram_per_document]
    report["maximum_likelihood"] = [
        result.maximum_likelihood_corpus,
        result.maximum_likelihood_per_document,
    ]
    fit, infer = report["fit_seconds"], report["posterior_seconds"]
    print(f"fit {fit:.1f} s, posterior {infer:.1f} s")
    print(f"uni-gram {report['unigram']}, own {report['maximum_likelihood']}")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
