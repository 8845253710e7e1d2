r"""Topic identification, the paper's second half: embed, classify, evaluate.

    python -m docsigma_paper.topic_id --corpus 20newsgroups --json FILE
    python -m docsigma_paper.topic_id --corpus switchboard --words 201 400 \
        --components 200 --l1 0.1 --json FILE

K and l1 are chosen on the training part alone: for each pair a model is trained without
labels, and GLCU on its embeddings is evaluated by cross-validation. The pair with
the least cross-entropy is then evaluated on the test part, by GLC, GLCU and LR.
A stopped run continues with the pairs that its FILE lacks.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid

from docsigma._files import atomic_file
from docsigma.classifiers import (
    CrossValidatedLogisticRegression,
    GaussianLinearClassifier,
    UncertainGaussianClassifier,
)
from docsigma.corpora import load_corpus
from docsigma.counts import Vocabulary
from docsigma.exceptions import InputError
from docsigma.metrics.evaluation import evaluate, tfidf_baseline
from docsigma.models import BayesianSMM
from docsigma_paper.corpora import register
from docsigma_paper.early_stopping import cross_validate

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp

    from docsigma.posterior import GaussianPosterior


# Steps of EM that the authors' published code takes from its command line, converged
# or not; their paper says "until convergence".
AUTHORS_STEPS = 10


@dataclass(frozen=True)
class Task:
    """Word counts and labels of the two parts of a corpus, and texts if it has them."""

    train: sp.csr_matrix
    test: sp.csr_matrix
    train_labels: list[str]
    test_labels: list[str]
    train_texts: list[str] | None = None
    test_texts: list[str] | None = None


def load_task(name: str, **options: Any) -> Task:
    """Load a labelled corpus; count words found in two training documents or more."""
    corpus = load_corpus(name, **options)
    train, train_labels = corpus.train.labelled()
    test, test_labels = corpus.test.labelled()
    seen: Any = train.counts
    unseen: Any = test.counts
    if train.texts is not None:
        words, counted = Vocabulary.fit_count(train.texts, min_df=2)
        seen, unseen = counted.counts, words.count_documents(test).counts
    return Task(seen, unseen, train_labels, test_labels, train.texts, test.texts)


def classify(
    train: GaussianPosterior,
    train_labels: list[str],
    test: GaussianPosterior,
    test_labels: list[str],
    kinds: Sequence[str] = ("glc", "glcu", "lr"),
) -> dict[str, dict[str, float]]:
    """Train GLC, GLCU and LR on posteriors and evaluate them on others.

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
        results[name] = evaluate(log_proba, test_labels, classifier.classes_) | {
            "fit_seconds": fitted - started,
            "predict_seconds": time.perf_counter() - fitted,
        }
    return results


def _fit(task: Task, pair: dict[str, Any], passes: int, device: str) -> BayesianSMM:
    model = BayesianSMM(
        **pair,
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
    parser.add_argument("--test-all", action="store_true", help="test every pair")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    register()
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
    }
    rows = report["grid"] = _resume(chosen.json, report) if chosen.json else []
    for pair in ParameterGrid({"n_components": chosen.components, "l1": chosen.l1}):
        if any(row.items() >= pair.items() for row in rows):
            continue
        model = _fit(task, pair, chosen.max_iter, chosen.device)
        q = model.posterior(task.train)
        # A loose tolerance is enough to rank the pairs.
        seen = cross_validate(
            q,
            task.train_labels,
            UncertainGaussianClassifier(tol=1e-3),
            n_folds=chosen.folds,
        )
        row: dict[str, Any] = {
            **pair,
            "cv_accuracy": seen.accuracy,
            "cv_cross_entropy": seen.cross_entropy,
            "fit_seconds": model.history_[-1]["seconds"],
        }
        rows.append(row)
        report["chosen"] = min(rows, key=lambda row: row["cv_cross_entropy"])
        if row is report["chosen"] or chosen.test_all:
            row["test"] = classify(
                q,
                task.train_labels,
                model.posterior(task.test),
                task.test_labels,
                chosen.kinds,
            )
        print(json.dumps(row), flush=True)
        if chosen.json:
            _write(chosen.json, report)
    report["chosen"] = min(rows, key=lambda row: row["cv_cross_entropy"])
    if chosen.tfidf:
        report["tfidf_lr"] = tfidf_baseline(
            task.train, task.train_labels, task.test, task.test_labels
        )
    print(json.dumps(report["chosen"], indent=1), report.get("tfidf_lr", ""))
    if chosen.json:
        _write(chosen.json, report)


def _resume(path: Path, report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pairs that an earlier run with the same settings has evaluated."""
    if not path.exists():
        return []
    before = json.loads(path.read_text())
    if any(before.get(name) != value for name, value in report.items()):
        raise InputError(f"{path} holds another run: other settings than {report}")
    grid: list[dict[str, Any]] = before["grid"]
    return grid


def _write(path: Path, report: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
