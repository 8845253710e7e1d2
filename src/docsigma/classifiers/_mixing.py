"""Probabilities of several classifiers mixed, with weights that depend on length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from docsigma._array_checks import Floats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# The weights are drawn to those that hold without evidence as by this many documents.
PULL = 3.0
# A document of this many tokens is half short.
SHORT = 10.0


@dataclass(frozen=True)
class Mixture:
    r"""Log-linear mixture: scores are weighted sums of the parts' log probabilities.

    The weight of part i for a document of N tokens is
    :math:`(1 - r)\, a_i + r\, b_i` with :math:`r = 1 / (1 + N / 10)`: :math:`a_i` for
    long documents, :math:`b_i` for those of a few words, and none is negative.

    Attributes
    ----------
    weights : ndarray of shape (n_parts, 2)
        :math:`a_i` and :math:`b_i`.
    """

    weights: Floats

    @classmethod
    def constant(cls, weights: Sequence[float]) -> Mixture:
        """Return weights that are the same for all lengths."""
        return cls(np.repeat(np.asarray(weights)[:, None], 2, axis=1))

    def at(self, n_tokens: Floats) -> Floats:
        """Return the weights of the parts, documents x parts."""
        return np.asarray(_shares(n_tokens) @ self.weights.T)


def _shares(n_tokens: Floats) -> Floats:
    """Return how long and how short documents are, documents x 2."""
    short = 1 / (1 + n_tokens / SHORT)
    return np.stack([1 - short, short], axis=1)


def fit_mixture(
    parts: Sequence[Floats],
    codes: NDArray[np.intp],
    document_weights: Floats,
    n_tokens: Floats,
    start: Mixture,
) -> tuple[Mixture, Floats, Floats]:
    """Choose the weights of the parts by the least cross-entropy, which is convex.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n_documents, n_classes)
        Log probabilities by each part, which has not seen these documents' labels.
    codes, document_weights, n_tokens : ndarray of shape (n_documents,)
        The documents' classes, weights and lengths.
    start : Mixture
        Weights without evidence.

    Returns
    -------
    Mixture, ndarray, ndarray
        The mixture, and its log probabilities of each document's true class and of its
        most probable one.
    """
    shares = _shares(n_tokens)
    stacked = np.stack(parts, axis=2)
    rows = np.arange(len(codes))
    truth = stacked[rows, codes]
    total = float(document_weights.sum())
    shape = start.weights.shape

    def log_probabilities(weights: Floats) -> Floats:
        scores = stacked @ (shares @ weights.T)[:, :, None]
        return np.asarray(log_softmax(scores[:, :, 0], axis=1))

    def objective(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        log_proba = log_probabilities(weights)
        expected = (np.exp(log_proba)[:, None, :] @ stacked)[:, 0, :]
        slopes = document_weights[:, None] * (expected - truth)
        away = weights - start.weights
        loss = PULL * (away**2).sum() / 2 - document_weights @ log_proba[rows, codes]
        gradient = slopes.T @ shares + PULL * away
        return float(loss) / total, gradient.ravel() / total

    found = minimize(
        objective,
        start.weights.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * start.weights.size,
    ).x.reshape(shape)
    log_proba = log_probabilities(found)
    return Mixture(found), log_proba[rows, codes], log_proba.max(axis=1)
