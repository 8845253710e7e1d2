"""Texts of Arrow batches to labels with their uncertainty."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma.classifiers.counts_classifier import CountsClassifier
from docsigma.metrics import entropies
from docsigma.workers.embed_batches import token_columns
from docsigma.workers.text_batches import TextBatches

if TYPE_CHECKING:
    from docsigma.classifiers.documents import EmbeddedDocuments


class ClassifyBatches(TextBatches):
    """Classifies the texts of Arrow batches, as `docsigma classifier predict` does.

    Parameters
    ----------
    classifier : path
        Folder of a classifier; every worker must be able to read it.
    text_column, keep, threads
        As in :class:`~docsigma.workers.text_batches.TextBatches`.
    coverage : float, default=0.9
        Share of documents whose prediction set has the right label, for a calibrated
        classifier.
    probabilities : bool, default=False
        Whether to add a column per class, ``probability[CLASS]``.
    """

    def __init__(
        self,
        classifier: str | os.PathLike[str],
        text_column: str = "text",
        keep: Sequence[str] | None = None,
        threads: int | None = None,
        coverage: float = 0.9,
        probabilities: bool = False,
    ) -> None:
        super().__init__(text_column, keep, threads)
        self.classifier = str(Path(classifier).absolute())
        self.coverage = coverage
        self.probabilities = probabilities

    def columns(self, texts: list[str]) -> dict[str, Any]:
        """Return the columns of the predictions."""
        classifier = _loaded(self.classifier)
        counted = classifier.count(texts)
        documents = classifier.embed(counted.counts, counted.n_unknown)
        found = predicted_columns(classifier, documents, self.coverage)
        every = found.pop("probabilities")
        found |= token_columns(counted)
        return found | every if self.probabilities else found


@functools.lru_cache(maxsize=2)
def _loaded(folder: str) -> CountsClassifier:
    return CountsClassifier.load(folder)


def predicted_columns(
    classifier: CountsClassifier, documents: EmbeddedDocuments, coverage: float
) -> dict[str, Any]:
    """Return the columns of a table of predictions.

    `probabilities` holds the columns ``probability[CLASS]`` of all classes.
    """
    names = np.array([str(name) for name in classifier.classes_], dtype=object)
    log_proba = classifier.predict_log_proba(documents)
    proba = np.exp(log_proba)
    rows, best = np.arange(len(proba)), proba.argmax(axis=1)
    others = proba.copy()
    others[rows, best] = -1
    second = others.argmax(axis=1)
    columns: dict[str, Any] = {
        "predicted": names[best].tolist(),
        "probability": proba[rows, best],
        "second": names[second].tolist(),
        "second_probability": proba[rows, second],
        "entropy": entropies(log_proba),
    }
    if classifier.is_calibrated:
        chosen = classifier.sets_of(documents, proba, coverage)
        columns["prediction_set"] = ["|".join(names[row]) for row in chosen]
        columns["unknown_p_value"] = classifier.unknown_p_value(documents)
    if documents.posterior is not None:
        columns["total_variance"] = documents.posterior.total_variance
    columns["probabilities"] = {
        f"probability[{name}]": np.ascontiguousarray(column)
        for name, column in zip(names, proba.T, strict=True)
    }
    return columns
