r"""Topic identification: embed, classify, judge. The paper's second half as a recipe.

    python -m docsigma.experiments.topic_id --corpus 20newsgroups --json FILE
    python -m docsigma.experiments.topic_id --corpus switchboard --words 201 400 \
        --components 200 --l1 0.1 --json FILE

K and l1 are chosen on the training part alone: for each pair a model is trained without
labels, and GLCU on its embeddings is judged by cross-validation. The pair with
the least cross-entropy is then judged on the test part, by GLC, GLCU and LR.
A run that was stopped goes on with the pairs its FILE does not have yet.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression

from docsigma._files import atomic_file
from docsigma.classifiers import (
    CrossValidatedLogisticRegression,
    GaussianLinearClassifier,
    UncertainGaussianClassifier,
)
from docsigma.corpora import load_corpus
from docsigma.counts import Vocabulary
from docsigma.exceptions import InputError
from docsigma.experiments.early_stopping import cross_validate
from docsigma.metrics.calibration import expected_calibration_error
from docsigma.metrics.classification import accuracy, brier_score, cross_entropy
from docsigma.models import BayesianSMM

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp

    from docsigma.corpora import Corpus
    from docsigma.posterior import GaussianPosterior

__all__ = [
    "AUTHORS_STEPS",
    "Task",
    "classify",
    "count_parts",
    "judge",
    "load_task",
    "tfidf_baseline",
]

# Steps of EM that the authors' published code takes from its command line, converged
# or not; their paper says "until convergence".
AUTHORS_STEPS = 10


class Task:
    """Counts and labels of a corpus's two parts.

    Attributes
    ----------
    train, test : csr_matrix
        Word counts.
    train_labels, test_labels : list of str
        One a document.
    train_texts, test_texts : list of str or None
        The documents themselves, where the corpus has them.
    """

    def __init__(
        self,
        train: sp.csr_matrix,
        test: sp.csr_matrix,
        train_labels: list[str],
        test_labels: list[str],
        train_texts: list[str] | None = None,
        test_texts: list[str] | None = None,
    ) -> None:
        self.train = train
        self.test = test
        self.train_labels = train_labels
        self.test_labels = test_labels
        self.train_texts = train_texts
        self.test_texts = test_texts


def load_task(name: str, **options: Any) -> Task:
    """Load a corpus with labels and count it; words of two training documents stay."""
    corpus = load_corpus(name, **options)
    train, train_labels = corpus.train.labelled()
    test, test_labels = corpus.test.labelled()
    counts = count_parts(replace(corpus, train=train, test=test))
    return Task(*counts, train_labels, test_labels, train.texts, test.texts)


def count_parts(corpus: Corpus) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Count both parts of a corpus by the words of two training documents."""
    train, test = corpus.train, corpus.test
    if train.texts is not None:
        words, counted = Vocabulary.fit_count(train.texts, min_df=2)
        return counted.counts, words.count_documents(test).counts
    assert train.counts is not None
    assert test.counts is not None
    return train.counts, test.counts


def judge(log_proba: Any, labels: list[str], classes: Any) -> dict[str, float]:
    """Give accuracy (per cent), cross-entropy (nats), Brier score and ECE."""
    proba = np.exp(log_proba)
    return {
        "accuracy": 100 * accuracy(proba, labels, classes=classes),
        "cross_entropy": cross_entropy(log_proba, labels, classes=classes, log=True),
        "brier": brier_score(proba, labels, classes=classes),
        "ece": expected_calibration_error(proba, labels, classes=classes),
    }


def classify(
    train: GaussianPosterior,
    train_labels: list[str],
    test: GaussianPosterior,
    test_labels: list[str],
    kinds: Sequence[str] = ("glc", "glcu", "lr"),
) -> dict[str, dict[str, float]]:
    """Train GLC, GLCU and LR on posteriors and judge them on others.

    ``"glcu-stopped"`` is GLCU after the ten steps of EM of the authors' code.
    """
    means = train.mean, test.mean
    em: dict[str, Any] = {"max_iter": AUTHORS_STEPS, "tol": 0, "accelerate": False}
    known: dict[str, tuple[Any, Any]] = {
        "glc": (GaussianLinearClassifier(), means),
        "glcu": (UncertainGaussianClassifier(tol=1e-5), (train, test)),
        "glcu-stopped": (UncertainGaussianClassifier(**em), (train, test)),
        "lr": (CrossValidatedLogisticRegression(), means),
    }
    results = {}
    for name in kinds:
        classifier, inputs = known[name]
        started = time.perf_counter()
        with warnings.catch_warnings():
            if name == "glcu-stopped":
                # It is meant not to converge.
                warnings.simplefilter("ignore", ConvergenceWarning)
            classifier.fit(inputs[0], train_labels)
        fitted = time.perf_counter()
        log_proba = classifier.predict_log_proba(inputs[1])
        results[name] = judge(log_proba, test_labels, classifier.classes_) | {
            "fit_seconds": fitted - started,
            "predict_seconds": time.perf_counter() - fitted,
        }
    return results


def tfidf_baseline(task: Task) -> dict[str, float]:
    """TF-IDF (sublinear) and logistic regression (C = 10): the words themselves."""
    weights = TfidfTransformer(sublinear_tf=True).fit(task.train)
    model = LogisticRegression(C=10, max_iter=1000)
    model.fit(weights.transform(task.train), task.train_labels)
    log_proba = model.predict_log_proba(weights.transform(task.test))
    return judge(log_proba, task.test_labels, model.classes_)


def _fit(task: Task, k: int, l1: float, passes: int, device: str) -> BayesianSMM:
    model = BayesianSMM(
        k,
        l1=l1,
        solver="paper",
        max_iter=passes,
        tol=0,
        device=device,
        random_state=0,
    )
    model.fit(task.train)
    return model


def main(arguments: list[str] | None = None) -> None:
    """Run the recipe and print (and write) its numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="20newsgroups")
    parser.add_argument("--words", type=int, nargs=2, help="window of each document")
    parser.add_argument("--components", type=int, nargs="+", default=[200, 400, 600])
    parser.add_argument("--l1", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--max-iter", type=int, default=500)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", default=["glc", "glcu", "lr"])
    parser.add_argument(
        "--tf32", action="store_true", help="TF32 products on a GPU: faster, coarser"
    )
    parser.add_argument("--tfidf", action="store_true", help="add TF-IDF + LR")
    parser.add_argument("--test-all", action="store_true", help="judge every pair")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    if chosen.tf32:
        torch.set_float32_matmul_precision("high")
    options = {"words": tuple(chosen.words)} if chosen.words else {}
    task = load_task(chosen.corpus, **options)
    report: dict[str, Any] = {
        "corpus": chosen.corpus,
        "words": chosen.words,
        "max_iter": chosen.max_iter,
        "folds": chosen.folds,
        "tf32": chosen.tf32,
        "n_features": int(task.train.shape[1]),
        "grid": [],
    }
    best = None
    done = _resume(chosen.json, report) if chosen.json else []
    for old in done:
        report["grid"].append(old)
        if best is None or old["cv_cross_entropy"] < best[0]["cv_cross_entropy"]:
            best = (old,)
    judged = {(row["n_components"], row["l1"]) for row in done}
    for k in chosen.components:
        for l1 in chosen.l1:
            if (k, l1) in judged:
                continue
            model = _fit(task, k, l1, chosen.max_iter, chosen.device)
            q = model.posterior(task.train)
            # A loose tolerance is enough to tell the pairs apart.
            seen = cross_validate(
                q,
                task.train_labels,
                UncertainGaussianClassifier(tol=1e-3),
                n_folds=chosen.folds,
            )
            row: dict[str, Any] = {
                "n_components": k,
                "l1": l1,
                "cv_accuracy": seen.accuracy,
                "cv_cross_entropy": seen.cross_entropy,
                "fit_seconds": model.history_[-1]["seconds"],
            }
            better = best is None or seen.cross_entropy < best[0]["cv_cross_entropy"]
            if better or chosen.test_all:
                row["test"] = classify(
                    q,
                    task.train_labels,
                    model.posterior(task.test),
                    task.test_labels,
                    chosen.kinds,
                )
            if better:
                best = (row,)
            report["grid"].append(row)
            print(json.dumps(row), flush=True)
            if chosen.json:
                _write(chosen.json, report | {"chosen": best and best[0]})
    assert best is not None
    report["chosen"] = best[0]
    if chosen.tfidf:
        report["tfidf_lr"] = tfidf_baseline(task)
    print(json.dumps(report["chosen"], indent=1), report.get("tfidf_lr", ""))
    if chosen.json:
        _write(chosen.json, report)


def _resume(path: Path, report: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the pairs that an earlier run with the same settings has judged."""
    if not path.exists():
        return []
    before = json.loads(path.read_text())
    settings = {name: value for name, value in report.items() if name != "grid"}
    if any(before.get(name) != value for name, value in settings.items()):
        raise InputError(f"{path} holds another run: other settings than {settings}")
    grid: list[dict[str, Any]] = before["grid"]
    return grid


def _write(path: Path, report: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
