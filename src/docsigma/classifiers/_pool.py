"""Probabilities of several classifiers pooled, with weights that depend on length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from docsigma._array_checks import Floats
from docsigma.classifiers.settings import KNOTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Pool:
    r"""Log-linear pool: scores are weighted sums of the parts' log probabilities.

    A weight is a piecewise linear function of :math:`\log(1 + N)`, N the length of a
    document, through three points: the least, the median and the greatest length among
    the documents it was fitted on. No weight is negative, and any may be zero. With one
    part the weight is the inverse of a temperature.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Logarithms of the lengths, rising.
    weights : ndarray of shape (n_parts, n_knots)
    """

    knots: Floats
    weights: Floats

    @classmethod
    def equal(cls, n_parts: int) -> Pool:
        """Return the pool without evidence: the parts' mean, at any length."""
        return cls.constant([1 / n_parts] * n_parts)

    @classmethod
    def constant(cls, weights: Sequence[float]) -> Pool:
        """Return weights that are the same at any length."""
        return cls(np.zeros(1), np.asarray(weights, dtype=np.float64)[:, None])

    @classmethod
    def fit(
        cls,
        parts: Sequence[Floats],
        codes: NDArray[np.intp],
        document_weights: Floats,
        lengths: Floats,
    ) -> Pool:
        """Choose the weights by the least cross-entropy, which is convex.

        Parameters
        ----------
        parts : sequence of ndarray of shape (n_documents, n_classes)
            Log probabilities by each part, which has not seen these documents' labels.
        codes, document_weights, lengths : ndarray of shape (n_documents,)
            The documents' classes, weights and lengths.
        """
        logs = np.log1p(lengths[lengths > 0])
        if not len(logs):
            return cls.equal(len(parts))
        start = cls.equal(len(parts))
        knots = np.unique(np.quantile(logs, KNOTS))
        shares = cls(knots, np.zeros((0, len(knots))))._shares(lengths)
        stacked = np.stack(parts, axis=2)
        rows = np.arange(len(codes))
        truth, total = stacked[rows, codes], float(document_weights.sum())
        first = np.repeat(start.weights, len(knots), axis=1)

        def objective(flat: Floats) -> tuple[float, Floats]:
            weights = flat.reshape(first.shape)
            scores = (stacked @ (shares @ weights.T)[:, :, None])[:, :, 0]
            log_proba = log_softmax(scores, axis=1)
            expected = (np.exp(log_proba)[:, None, :] @ stacked)[:, 0, :]
            slopes = document_weights[:, None] * (expected - truth)
            # As if one more document held the weights where they start.
            away = weights - first
            loss = (away**2).sum() / 2 - document_weights @ log_proba[rows, codes]
            gradient = slopes.T @ shares + away
            return float(loss) / total, gradient.ravel() / total

        found = minimize(
            objective,
            first.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * first.size,
        )
        return cls(knots, found.x.reshape(first.shape))

    def _shares(self, lengths: Floats) -> Floats:
        """Return how near each length is to each knot, documents x knots."""
        logs = np.log1p(lengths)
        return np.stack(
            [np.interp(logs, self.knots, row) for row in np.eye(len(self.knots))],
            axis=1,
        )

    def at(self, lengths: Floats) -> Floats:
        """Return the weights of the parts, documents x parts."""
        return np.asarray(self._shares(lengths) @ self.weights.T)

    def log_proba(self, parts: Sequence[Floats], lengths: Floats) -> Floats:
        """Return the pooled log probabilities."""
        weights = self.at(lengths)
        scores = sum(weights[:, [i]] * np.asarray(part) for i, part in enumerate(parts))
        return np.asarray(log_softmax(np.asarray(scores), axis=1))
