r"""Topic ID at every length, and with few labels.

    python benchmarks/topic_id_lengths.py --corpus switchboard --components 100 \
        --few-labels 1 5 20 --json benchmarks/results/topic-id-lengths-switchboard.json

A model of weighted counts (log-idf) and the classifiers are trained on whole training
documents, and everything they choose is chosen on those. Test documents are then cut to
their first words (after `--start` words), and each length is looked at once.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression

from docsigma import (
    BayesianSMM,
    EvidenceClassifier,
    TokenWeights,
    Vocabulary,
    load_corpus,
)
from docsigma.classifiers import CountsClassifier
from docsigma.experiments.evaluation import evaluate
from docsigma_paper.corpora import register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.corpora import Corpus, Documents

LENGTHS = (200, 100, 50, 25, 10, 1)
SHORT_TEXTS = ("searchsnippets", "stackoverflow")


def load(name: str, data: Path) -> Corpus:
    """Load a named corpus, or one of the short texts from the folder `data`."""
    register()
    if name not in SHORT_TEXTS:
        return load_corpus(name)
    folder = data / "short-texts" / name
    return load_corpus(folder / "train.jsonl.xz", test=folder / "test.jsonl.xz")


def cut(documents: Documents, start: int, n_words: int) -> Documents:
    """Keep some words of each text."""
    assert documents.texts is not None
    texts = [" ".join(t.split()[start : start + n_words]) for t in documents.texts]
    return replace(documents, texts=texts)


def losses(log_proba: Any, labels: Any, classes: Any) -> NDArray[np.float64]:
    """Return the cross-entropy per document."""
    columns = np.searchsorted(classes, labels)
    return -np.asarray(log_proba)[np.arange(len(columns)), columns]


class Setting:
    """One corpus, its model and its counts."""

    def __init__(self, options: argparse.Namespace) -> None:
        corpus = load(options.corpus, options.data)
        train, labels = corpus.train.labelled()
        self.labels = np.array(labels)
        self.test, test_labels = corpus.test.labelled()
        self.test_labels = np.array(test_labels)
        assert train.texts is not None
        self.words, counted = Vocabulary.fit_count(train.texts, min_df=2)
        self.plain = counted.counts
        self.weights = TokenWeights().fit(self.plain)
        self.counts = self.weights.transform(self.plain)
        self.start = options.start
        if options.model is not None and (options.model / "config.json").is_file():
            self.model: Any = BayesianSMM.load(options.model)
        else:
            self.model = BayesianSMM(options.components, random_state=options.seed)
            self.model.fit(self.counts)
            if options.model is not None:
                self.model.save(options.model)
        self.posterior = self.model.posterior(self.counts)
        self.tfidf = TfidfTransformer(sublinear_tf=True).fit(self.plain)

    def test_counts(self, n_words: int | None) -> tuple[Any, Any]:
        """Return plain and weighted counts of the test documents, cut or whole."""
        documents = self.test
        if n_words is not None:
            documents = cut(documents, self.start, n_words)
        plain = self.words.count_documents(documents).counts
        return plain, self.weights.transform(plain)


def by_length(
    setting: Setting, lengths: list[int | None], baselines: list[str]
) -> tuple[list[dict[str, Any]], CountsClassifier]:
    """Train on whole documents, evaluate at each length."""
    s, fitted, seconds = setting, {}, {}
    q = s.posterior
    for kind in ("evidence", *baselines):
        given = s.counts if kind == "evidence" else q
        begun = time.perf_counter()
        fitted[kind] = CountsClassifier.fit(s.model, given, s.labels, kind=kind)
        seconds[kind] = time.perf_counter() - begun
        print(f"{kind} fitted in {seconds[kind]:.1f} s", flush=True)
    classes, counts = np.unique(s.labels, return_counts=True)
    prior = np.log(counts / counts.sum())
    rows = []
    for n_words in lengths:
        _, weighted = s.test_counts(n_words)
        found = {
            kind: topics.predict_log_proba(topics.embed(weighted))
            for kind, topics in fitted.items()
        }
        found["prior"] = np.broadcast_to(prior, found["evidence"].shape)
        ours = losses(found["evidence"], s.test_labels, classes)
        for kind, log_proba in found.items():
            worse = losses(log_proba, s.test_labels, classes) - ours
            row = {
                "n_words": n_words,
                "kind": kind,
                **evaluate(log_proba, s.test_labels, classes),
                "behind_evidence": float(worse.mean()),
                "standard_error": float(worse.std() / len(worse) ** 0.5),
                "fit_seconds": seconds.get(kind),
            }
            rows.append(row)
            print(
                f"{n_words or 'whole':>6} {kind:9} {row['accuracy']:5.1f} % "
                f"{row['cross_entropy']:.3f} ({worse.mean():+.3f} "
                f"+- {row['standard_error']:.3f})",
                flush=True,
            )
    chosen = fitted["evidence"].classifier
    rows.append({"kind": "evidence", "tempering": list(chosen.tempering_)})
    return rows, fitted["evidence"]


def few_labels(
    setting: Setting, per_class: list[int], n_draws: int
) -> list[dict[str, Any]]:
    """Hide the labels of all but a few documents of each class."""
    s = setting
    plain, weighted = s.test_counts(None)
    embedded = s.model.posterior(weighted)
    test_tfidf, train_tfidf = s.tfidf.transform(plain), s.tfidf.transform(s.plain)
    rows = []
    for n_labels in per_class:
        for draw in range(n_draws):
            random = np.random.default_rng(draw)
            shown = np.concatenate(
                [
                    random.permutation(np.flatnonzero(s.labels == label))[:n_labels]
                    for label in np.unique(s.labels)
                ]
            )
            labels = np.full(len(s.labels), None, dtype=object)
            labels[shown] = s.labels[shown]
            # What CountsClassifier does where labels are too few to turn the model.
            clf = EvidenceClassifier(covariance="diagonal").fit(s.posterior, labels)
            log_proba = clf.predict_log_proba(embedded)
            baseline = LogisticRegression(C=10, max_iter=1000)
            baseline.fit(train_tfidf[shown], s.labels[shown])
            found = {
                "evidence": log_proba,
                "tfidf-lr": baseline.predict_log_proba(test_tfidf),
            }
            for kind, values in found.items():
                judged = evaluate(values, s.test_labels, clf.classes_)
                weight = clf.unlabelled_weight_
                rows.append(
                    {
                        "n_labels": n_labels,
                        "draw": draw,
                        "kind": kind,
                        **judged,
                        "unlabelled_weight": weight if kind == "evidence" else None,
                    }
                )
                print(
                    f"{n_labels:3d} labels, draw {draw} {kind:9} "
                    f"{judged['accuracy']:5.1f} % {judged['cross_entropy']:.3f}",
                    flush=True,
                )
    return rows


def error_of_the_factor(
    setting: Setting, lengths: list[int | None], topics: CountsClassifier
) -> list[dict[str, Any]]:
    """Return how far the Gaussian factor is from the multinomial, by length.

    For each document, the mean absolute difference of the centred log likelihoods of
    the class means: the factor's, and the multinomial's.
    """
    s = setting
    means = topics.classifier.means_
    words = topics._embedding.components_.T.astype(np.float64)
    logits = s.model.log_unigram_ + means @ words.T
    log_theta = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    rows = []
    for n_words in lengths:
        _, weighted = s.test_counts(n_words)
        q = topics.embed(weighted)
        P = 1 / q.variance.astype(np.float64) - float(q.prior.precision)
        h = q.mean / q.variance.astype(np.float64)
        gaussian = h @ means.T - 0.5 * P @ (means**2).T
        exact = weighted @ log_theta.T
        apart = [v - v.mean(axis=1, keepdims=True) for v in (gaussian, exact)]
        error = np.abs(apart[0] - apart[1]).mean(axis=1)
        size = np.abs(apart[1]).mean(axis=1)
        rows.append(
            {
                "n_words": n_words,
                "median_error": float(np.median(error)),
                "median_size": float(np.median(size)),
                "rank_correlation": float(spearmanr(*(v.ravel() for v in apart))[0]),
            }
        )
        print(
            f"{n_words or 'whole':>6} Gaussian factor off by {np.median(error):.2f} "
            f"of {np.median(size):.2f} nats",
            flush=True,
        )
    return rows


def main() -> None:
    """Run what is asked for and write its numbers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", default="docstrings")
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("DOCSIGMA_DATA", "data"))
    )
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="first word of a cut")
    parser.add_argument("--lengths", type=int, nargs="*", default=list(LENGTHS))
    parser.add_argument("--few-labels", type=int, nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--baselines", nargs="*", default=["glcu", "lr"])
    parser.add_argument("--no-lengths", action="store_true")
    parser.add_argument("--model", type=Path, help="folder that keeps the model")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    setting = Setting(options)
    lengths: list[int | None] = [None, *options.lengths]
    result: dict[str, Any] = {
        "corpus": options.corpus,
        "n_components": options.components,
        "seed": options.seed,
        "start": options.start,
    }
    if not options.no_lengths:
        result["lengths"], topics = by_length(setting, lengths, options.baselines)
        result["gaussian_factor"] = error_of_the_factor(setting, lengths, topics)
    if options.few_labels:
        result["few_labels"] = few_labels(setting, options.few_labels, options.draws)
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
