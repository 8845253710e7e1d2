r"""How well unknown topics are told from known ones, beside the usual scores.

    python benchmarks/unknown_topics.py

Five of the twenty newsgroups are left out, for the embedder too; three draws.
`TopicClassifier` with default settings learns from nine tenths of the training texts of
the rest and is calibrated on the last tenth. Known are 600 test texts of the rest;
unknown are 300 of the five, or of another corpus. Those are mostly shorter,
and length alone tells them apart; so known texts are also cut to as many words as the
unknown ones have. `DocumentEmbedder.calibrate` sees no label. Result: areas under the
ROC curve in results/unknown-topics.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score

import _baselines
from _corpora import CORPORA, cut, load
from _versions import changed_commit
from docsigma import DocumentEmbedder, TopicClassifier
from docsigma.metrics import entropies
from peers_machine import describe_run

ROOT = Path(__file__).parents[1]
LEFT_OUT, DRAWS = 5, 3
KNOWN, UNKNOWN = 600, 300
OURS = ("p-value", "familiarity", "p-value, no labels")


class Scores:
    """Everything that is fitted to the known groups."""

    def __init__(self, texts: list[str], labels: Any, held: Any, seed: int) -> None:
        train = [texts[row] for row in np.flatnonzero(~held)]
        rest = [texts[row] for row in np.flatnonzero(held)]
        self.topics = TopicClassifier(DocumentEmbedder(random_state=seed))
        self.topics.fit(train, labels[~held]).calibrate(rest, labels[held])
        self.embedder = self.topics.embedder_.calibrate(rest)
        self.regression = _baselines.Regression().fit(train, labels[~held])
        self.rows = self._tfidf(train)

    def _tfidf(self, texts: list[str]) -> Any:
        return self.regression.words.tfidf(self.regression.words.count(texts))

    def __call__(self, texts: list[str]) -> dict[str, Any]:
        """Return scores, all larger where a text is known."""
        documents, regression = self.topics.embed(texts), self.regression
        classifier = self.topics.classifier_
        logits = regression._score(regression._features(regression.words.count(texts)))
        log_proba = regression.predict_log_proba(texts)
        own = self._tfidf(texts)
        return {
            "p-value": classifier.unknown_p_value(documents),
            "familiarity": classifier._familiarity(documents),
            "p-value, no labels": self.embedder.unknown_p_value(texts),
            "TF-IDF + LR, probability": log_proba.max(axis=1),
            "TF-IDF + LR, entropy": -entropies(log_proba),
            "TF-IDF + LR, largest logit": logits.max(axis=1),
            "TF-IDF + LR, energy": logsumexp(logits, axis=1),
            "nearest neighbour, cosine": (own @ self.rows.T)
            .max(axis=1)
            .toarray()[:, 0],
            "share of known words": documents.n_tokens
            / np.maximum(documents.lengths, 1),
        }


def area(known: dict[str, Any], unknown: dict[str, Any]) -> dict[str, float]:
    """Return the area under the ROC curve by each score."""
    found = {}
    for name, values in known.items():
        both = np.append(values, unknown[name])
        which = np.repeat([1, 0], [len(values), len(unknown[name])])
        found[name] = float(roc_auc_score(which, both))
    return found


def measure(seed: int) -> dict[str, dict[str, float]]:
    """Return the areas of one draw of groups."""
    corpus, random = load("20newsgroups"), np.random.default_rng(seed)
    out = random.permutation(np.unique(corpus.labels))[:LEFT_OUT]
    rows = np.flatnonzero(~np.isin(corpus.labels, out))
    scores = Scores(
        [corpus.texts[row] for row in rows],
        corpus.labels[rows],
        random.random(len(rows)) < 0.1,
        seed,
    )
    is_open = np.isin(corpus.test_labels, out)
    chosen = random.permutation(np.flatnonzero(~is_open))[:KNOWN]
    texts = [corpus.test_texts[row] for row in chosen]
    known = scores(texts)
    rows = random.permutation(np.flatnonzero(is_open))[:UNKNOWN]
    others = [corpus.test_texts[row] for row in rows]
    found = {"groups left out": area(known, scores(others))}
    for name in CORPORA:
        if name == corpus.name:
            continue
        others = load(name).test_texts
        some = [others[row] for row in random.permutation(len(others))[:UNKNOWN]]
        unknown = scores(some)
        found[Path(name).name] = area(known, unknown)
        lengths = [max(len(text.split()), 1) for text in some]
        short = cut(texts, random.choice(lengths, len(texts)).tolist())
        found[f"{Path(name).name}, equally long"] = area(scores(short), unknown)
    return found


def means(draws: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return mean and least area of each score."""
    return {
        name: {
            "mean": round(float(np.mean([draw[name] for draw in draws])), 4),
            "least": round(min(draw[name] for draw in draws), 4),
        }
        for name in draws[0]
    }


def main() -> None:
    """Measure all draws."""
    torch.set_num_threads(1)
    run = describe_run(1) | changed_commit(ROOT)
    path = ROOT / "benchmarks/results/unknown-topics.json"
    draws: list[dict[str, dict[str, float]]] = []
    for seed in range(DRAWS):
        draws.append(measure(seed))
        print(json.dumps(draws[-1]), flush=True)
        rows = {
            unknown: means([draw[unknown] for draw in draws]) for unknown in draws[0]
        }
        report = {"run": run, "draws": len(draws), "ours": OURS, "rows": rows}
        path.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
