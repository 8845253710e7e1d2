"""Probabilities of several classifiers pooled, with weights from held-out documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from docsigma._array_checks import Floats

if TYPE_CHECKING:
    from collections.abc import Sequence


def pooled(weights: Floats, parts: Sequence[Floats]) -> Floats:
    """Return weighted sums of the parts' log probabilities, as log probabilities."""
    scores = sum(w * np.asarray(part) for w, part in zip(weights, parts, strict=True))
    return np.asarray(log_softmax(np.asarray(scores), axis=1))


def fit_pool(parts: Sequence[Floats], targets: Floats) -> Floats:
    """Return the weights of the parts with the least cross-entropy, which is convex.

    No weight is negative, and any may be zero. With one part the weight is the inverse
    of a temperature.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n_documents, n_classes)
        Log probabilities by each part, which has not seen these documents' labels.
    targets : ndarray of shape (n_documents, n_classes)
        The documents' weights in the classes.
    """
    stacked = np.stack(parts, axis=2)
    own, total = targets.sum(axis=1, keepdims=True), float(targets.sum())
    start = np.full(len(parts), 1 / len(parts))

    def objective(weights: Floats) -> tuple[float, Floats]:
        log_proba = log_softmax(stacked @ weights, axis=1)
        slopes = own * np.exp(log_proba) - targets
        # As if one more document held the weights where they start.
        away = weights - start
        loss = (away**2).sum() / 2 - (targets * log_proba).sum()
        gradient = np.tensordot(slopes, stacked) + away
        return float(loss) / total, gradient / total

    bounds = [(0.0, None)] * len(start)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(found.x)
