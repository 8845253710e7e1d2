"""Accuracy after a few labels: in the order `docsigma explore` proposes, and at random.

A model of 20 Newsgroups (K 50) is trained on the training posts without labels. Labels
are then asked for ten at a time, by the page's own proposals and by chance; after each
ten the page's classifier is fitted and the test posts are labelled. Five draws: seeds
of the proposals and of the random order.

    python benchmarks/active_labels.py
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from docsigma import BayesianSMM, load_corpus
from docsigma.counts import Vocabulary
from docsigma.explore.predictions import Predictions, fit_few_labels
from docsigma.groups.proposals import propose
from docsigma.metrics.plots import save_figures
from docsigma.posterior import GaussianPosterior
from figures import label_curves

RESULTS = Path(__file__).parent / "results" / "active-labels.json"
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "active-labels.png"
STEP = 10
N_LABELS = (20, 50, 100)


def posteriors(cache: Path, n_components: int) -> tuple[Any, Any, Any, Any]:
    """Return the Gaussians of both halves and their labels; kept in `cache`."""
    corpus = load_corpus("20newsgroups")
    files = [
        cache / f"ng{n_components}-{half}.safetensors" for half in ("train", "test")
    ]
    if not all(file.exists() for file in files):
        cache.mkdir(parents=True, exist_ok=True)
        words, counted = Vocabulary.fit_count(corpus.train.texts, min_df=2)
        model = BayesianSMM(n_components, random_state=0).fit(counted.counts)
        model.posterior(counted.counts).save(files[0])
        model.posterior(words.count(corpus.test.texts).counts).save(files[1])
    train, test = (GaussianPosterior.load(file) for file in files)
    return train, test, np.array(corpus.train.labels), np.array(corpus.test.labels)


def run(train: Any, truth: Any, order: str, seed: int, evaluate: Any) -> list[float]:
    """Return the accuracy at each of `N_LABELS`, for one order of labelling."""
    random = np.random.default_rng(seed)
    shuffled = random.permutation(len(train))
    labels: dict[int, str] = {}
    found = []
    while len(labels) < max(N_LABELS):
        if order == "random":
            rows = shuffled[len(labels) : len(labels) + STEP]
        else:
            known = np.array(sorted(labels), dtype=np.intp)
            entropy = None
            if len(set(labels.values())) > 1:
                classifier = fit_few_labels(train, labels, seed)
                entropy = Predictions.by(classifier, train).entropy
            rows = propose(train, known, STEP, entropy, random_state=seed)
        labels |= {int(row): str(truth[row]) for row in rows}
        if len(labels) in N_LABELS:
            found.append(evaluate(fit_few_labels(train, labels, seed)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=Path(".cache/active-labels"))
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--figure", type=Path, default=FIGURE)
    chosen = parser.parse_args()
    train, test, truth, test_truth = posteriors(chosen.cache, chosen.components)

    def evaluate(classifier: Any) -> float:
        return float(100 * (classifier.predict(test) == test_truth).mean())

    accuracy: dict[str, list[list[float]]] = {"proposed": [], "random": []}
    for order, draws in accuracy.items():
        for seed in range(chosen.draws):
            draws.append(run(train, truth, order, seed, evaluate))
            print(order, seed, [f"{value:.1f}" for value in draws[-1]], flush=True)
    report = {
        "corpus": "20newsgroups",
        "n_components": chosen.components,
        "n_labels": list(N_LABELS),
        "accuracy": accuracy,
        "mean": {o: np.mean(d, axis=0).round(1).tolist() for o, d in accuracy.items()},
    }
    chosen.json.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    save_figures({chosen.figure.name: label_curves(report)}, chosen.figure.parent)


if __name__ == "__main__":
    main()
