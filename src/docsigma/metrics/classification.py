"""Accuracy, cross-entropy and Brier score of predicted probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from docsigma.exceptions import InputError
from docsigma.metrics._probabilities import check_labels, check_probabilities

__all__ = ["accuracy", "brier_score", "cross_entropy"]


def accuracy(probabilities: Any, labels: Any, *, classes: Any = None) -> float:
    """Share of documents whose most probable class is the right one.

    Parameters
    ----------
    probabilities : array-like of shape (n_documents, n_classes)
        Predicted probabilities.
    labels : array-like of shape (n_documents,)
        True classes: column numbers, or names out of `classes`.
    classes : array-like of shape (n_classes,), optional
        Names of the columns, as a classifier's ``classes_``.

    Returns
    -------
    float
        Accuracy between 0 and 1; of equally probable classes the first counts.

    Examples
    --------
    >>> accuracy([[0.9, 0.1], [0.8, 0.2]], ["a", "b"], classes=["a", "b"])
    0.5
    """
    values, codes = check_probabilities(probabilities, labels, classes)
    return float(np.mean(values.argmax(axis=1) == codes))


def cross_entropy(
    probabilities: Any, labels: Any, *, classes: Any = None, log: bool = False
) -> float:
    r"""Mean :math:`-\log p(\text{true class})`, in nats.

    A probability of zero counts as the smallest normal float64, 708 nats, so that
    one document that underflowed does not make the mean infinite. Log
    probabilities that are finite are taken as they are.

    Parameters
    ----------
    probabilities : array-like of shape (n_documents, n_classes)
        Predicted probabilities, or their logarithms if `log`.
    labels : array-like of shape (n_documents,)
        True classes: column numbers, or names out of `classes`.
    classes : array-like of shape (n_classes,), optional
        Names of the columns, as a classifier's ``classes_``.
    log : bool
        Whether `probabilities` holds logarithms, which cannot underflow.

    Returns
    -------
    float
        Cross-entropy, not negative.

    Examples
    --------
    >>> round(cross_entropy([[0.5, 0.5], [0.25, 0.75]], [0, 1]), 4)
    0.4904
    >>> cross_entropy([[-1000.0, 0.0]], [0], log=True)
    1000.0
    """
    lowest = float(np.log(np.finfo(np.float64).tiny))
    if not log:
        values, codes = check_probabilities(probabilities, labels, classes)
        chosen = values[np.arange(len(codes)), codes]
        with np.errstate(divide="ignore"):
            nats = -np.maximum(np.log(chosen), lowest)
        return float(nats.mean()) + 0.0
    values = np.asarray(probabilities, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(
            f"`probabilities` must be documents x classes, got the shape {values.shape}"
        )
    codes = check_labels(labels, len(values), values.shape[1], classes)
    bad = np.argwhere(np.isnan(values) | (values > 1e-6))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"`probabilities` has {values[row, column]} in row {row}, column "
            f"{column}; log probabilities are not above 0"
        )
    chosen = values[np.arange(len(codes)), codes]
    return float(-np.where(np.isneginf(chosen), lowest, chosen).mean()) + 0.0


def brier_score(probabilities: Any, labels: Any, *, classes: Any = None) -> float:
    r"""Mean squared distance to the truth, summed over classes.

    .. math::
        \frac1n \sum_d \sum_\ell (p_{d\ell} - [\ell = y_d])^2,

    between 0 and 2. With two classes it is twice the binary Brier score.

    Parameters
    ----------
    probabilities : array-like of shape (n_documents, n_classes)
        Predicted probabilities.
    labels : array-like of shape (n_documents,)
        True classes: column numbers, or names out of `classes`.
    classes : array-like of shape (n_classes,), optional
        Names of the columns, as a classifier's ``classes_``.

    Returns
    -------
    float
        The score; lower is better.

    Examples
    --------
    >>> brier_score([[1.0, 0.0], [0.5, 0.5]], [0, 1])
    0.25
    """
    values, codes = check_probabilities(probabilities, labels, classes)
    errors = values.copy()
    errors[np.arange(len(codes)), codes] -= 1
    return float(np.mean((errors**2).sum(axis=1)))
