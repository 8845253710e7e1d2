"""Selective prediction: the trade-off of accuracy and unanswered documents."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError
from docsigma.metrics._probabilities import check_probabilities


@dataclass(frozen=True)
class RiskCoverageCurve:
    """Error rate among the most confident documents.

    Attributes
    ----------
    coverage : ndarray of shape (n_documents,)
        Shares 1/n, 2/n, ..., 1 of the documents that are answered.
    risk : ndarray of shape (n_documents,)
        Error rate among them.
    """

    coverage: Floats
    risk: Floats

    @property
    def area(self) -> float:
        """Area under the curve (AURC): the risk averaged over coverages."""
        return float(self.risk.mean())


def entropies(log_proba: Floats) -> Floats:
    """Return the entropy of each row of log probabilities, in nats.

    It is high where the most probable class may be wrong.
    """
    proba = np.exp(log_proba)
    surprise = np.where(proba > 0, log_proba, 0.0)
    return np.asarray(-(proba * surprise).sum(axis=1)) + 0.0


def risk_coverage_curve(
    probabilities: Any, labels: Any, *, confidence: Any = None, classes: Any = None
) -> RiskCoverageCurve:
    """Return the error rate if only the most confident documents are answered.

    Documents of equal confidence each count with their mean error, so the curve does
    not depend on the order of documents.

    Parameters
    ----------
    probabilities, labels, classes
        As for :func:`~docsigma.metrics.classification.accuracy`.
    confidence : array-like of shape (n_documents,), optional
        Ranks the documents, highest first; by default the largest probability. The
        negative total variance of an embedding is another choice.
    """
    values, codes = check_probabilities(probabilities, labels, classes)
    errors = (values.argmax(axis=1) != codes).astype(np.float64)
    n = len(codes)
    if confidence is None:
        rank = values.max(axis=1)
    else:
        rank = np.asarray(confidence, dtype=np.float64)
        if rank.shape != (n,):
            raise InputError(
                f"`confidence` has the shape {rank.shape}, but there are {n} documents"
            )
        if np.isnan(rank).any():
            raise InputError(f"`confidence` is NaN in row {np.isnan(rank).argmax()}")
    _, group = np.unique(-rank, return_inverse=True)
    group = group.reshape(-1)
    shared = (np.bincount(group, errors) / np.bincount(group))[np.sort(group)]
    answered = np.arange(1, n + 1)
    return RiskCoverageCurve(answered / n, np.cumsum(shared) / answered)


def accuracy_at_coverage(
    probabilities: Any,
    labels: Any,
    coverage: float,
    *,
    confidence: Any = None,
    classes: Any = None,
) -> float:
    """Return the accuracy among the most confident share of the documents.

    Parameters
    ----------
    probabilities, labels, confidence, classes
        As for :func:`risk_coverage_curve`.
    coverage : float
        Share of documents to answer, above 0 and at most 1, rounded up to a document.
    """
    if not 0 < coverage <= 1:
        raise InputError(f"`coverage` must be above 0 and at most 1, got {coverage}")
    curve = risk_coverage_curve(
        probabilities, labels, confidence=confidence, classes=classes
    )
    # The product of a share and a count may round to just above a whole number.
    answered = math.ceil(coverage * len(curve.risk) - 1e-9)
    return float(1 - curve.risk[max(answered, 1) - 1])


def error_detection_area(doubt: Any, wrong: Any) -> float:
    """Return the area under the ROC curve of finding wrong predictions by their doubt.

    It is the probability that a wrong prediction has more doubt than a right one, where
    ties count half; NaN if all predictions are right, or all wrong.

    Examples
    --------
    >>> error_detection_area([0.1, 0.2, 0.9, 0.2], [False, False, True, True])
    0.875
    """
    wrong = np.asarray(wrong, dtype=bool)
    if wrong.all() or not wrong.any():
        return float("nan")
    return float(roc_auc_score(wrong, np.asarray(doubt, dtype=np.float64)))
