r"""Does search by Gaussians pay? Queries of ten words, and pairs of documents.

    docsigma fit 20newsgroups --out model --components 100 --seed 0
    docsigma classifier fit model 20newsgroups --out clf
    python benchmarks/search.py 20newsgroups --classifier clf \
        --json benchmarks/results/search-20newsgroups.json

Ten words of each test document, of some 1000 of them, look for training documents; a
training document with the same label is right. It prints the mean average precision
of the log ratio of one topic to two, Wasserstein-2, KL, the cosine of means and the
cosine of TF-IDF, for these queries and for whole documents. Then it calibrates
probabilities of one topic on training documents and prints their calibration error on
pairs of test documents.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from docsigma import distances, load_corpus
from docsigma.classifiers import CountsClassifier
from docsigma.classifiers._words import inverse_document_frequencies, tfidf
from docsigma.metrics import expected_calibration_error
from docsigma.metrics.environment import environment
from docsigma.search import SameTopicCalibration
from docsigma.search.documents import evidence_of

N_WORDS = 10
# Calls begin with small talk and the question that was set.
STARTS = {"switchboard": 200}


def mean_average_precision(scores: Any, right: Any) -> float:
    """Return the mean over queries, rows, of the precision at each right document."""
    found = []
    for row, same in zip(scores, right, strict=True):
        hits = same[np.argsort(-row, kind="stable")]
        ranks = np.flatnonzero(hits) + 1
        if len(ranks):
            found.append((np.arange(1, len(ranks) + 1) / ranks).mean())
    return float(np.mean(found))


def cosine(a: Any, b: Any) -> Any:
    norms = [np.linalg.norm(x, axis=1, keepdims=True).clip(1e-12) for x in (a, b)]
    return (a / norms[0]) @ (b / norms[1]).T


def pair_error(probabilities: Any, same: Any) -> float:
    """Return the calibration error of the probability of one topic, 15 bins."""
    p = probabilities.ravel()
    both = np.stack([1 - p, p], axis=1)
    # Of two classes both columns have the same error.
    return float(
        expected_calibration_error(
            both, same.ravel(), classes=[False, True], scope="classwise"
        )
    )


def measure(name: str, folder: Path, n_queries: int) -> dict[str, Any]:
    topics = CountsClassifier.load(folder)
    words, evidence = topics.model.vocabulary_, evidence_of(topics)
    assert words is not None
    assert evidence is not None
    corpus = load_corpus(name)
    train, train_labels = corpus.train.labelled()
    test, test_labels = corpus.test.labelled()
    y, z = np.array(train_labels), np.array(test_labels)
    random = np.random.default_rng(0)
    rows = np.sort(random.permutation(len(z))[:n_queries])
    start = STARTS.get(name, 0)
    whole = [test.texts[row] for row in rows]
    cut = [" ".join(text.split()[start : start + N_WORDS]) for text in whole]
    counts = words.count(train.texts).counts
    documents: Any = topics.embed(counts)
    idf = inverse_document_frequencies(counts)
    right = z[rows][:, None] == y[None]
    report: dict[str, Any] = {
        "corpus": name,
        "n_documents": len(y),
        "n_queries": len(rows),
        "n_components": int(documents.n_components),
        "kind": topics.kind,
    }
    pairs: Any = {}
    for what, texts in (("ten_words", cut), ("whole", whole)):
        asked = words.count(texts).counts
        q: Any = topics.embed(asked)
        pairs[what] = q
        scores = {
            "log_ratio": evidence.same_topic_log_ratio(q, documents),
            "wasserstein2": -distances.wasserstein2(q, documents),
            "kl": -distances.kl(documents, q).T,
            "cosine_of_means": cosine(q.mean, documents.mean),
            "tfidf_cosine": (tfidf(asked, idf) @ tfidf(counts, idf).T).toarray(),
        }
        report[what] = {k: mean_average_precision(s, right) for k, s in scores.items()}
    calibration = SameTopicCalibration.fit(evidence, documents, train_labels)
    assert calibration is not None
    different = ~np.eye(len(rows), dtype=bool)
    same = (z[rows][:, None] == z[rows][None])[different]
    errors = {}
    for what, q in pairs.items():
        ratios = evidence.same_topic_log_ratio(q, q)[different]
        errors[what] = pair_error(calibration.predict(ratios), same)
    ratios = evidence.same_topic_log_ratio(pairs["whole"], documents)
    best = np.argsort(-ratios, axis=1)[:, :10]
    top = calibration.predict(np.take_along_axis(ratios, best, axis=1))
    hits = np.take_along_axis(right, best, axis=1)
    report["ece_pairs_of_test_documents"] = errors
    report["ece_first_ten_results"] = pair_error(top, hits)
    report["precision_first_ten_results"] = float(hits.mean())
    report["share_of_pairs_with_one_label"] = float(same.mean())
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--classifier", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    report = measure(given.corpus, given.classifier, given.queries)
    report["environment"] = environment(on_gpu=False)
    text = json.dumps(report, indent=1)
    print(text)
    if given.json is not None:
        given.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
