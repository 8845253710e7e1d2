"""Softmax regression on words and embeddings, each with its own l2 weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from docsigma._array_checks import Floats


@dataclass(frozen=True)
class Features:
    """What the regression sees of documents: a sparse part and a dense one.

    `words` is documents x words, `embedding` is documents x components.
    """

    words: sp.csr_matrix
    embedding: Floats

    def __len__(self) -> int:
        return int(self.words.shape[0])

    def __getitem__(self, rows: Any) -> Features:
        return Features(self.words[rows], self.embedding[rows])


@dataclass(frozen=True)
class Coefficients:
    """Weights of the classes: of words, of components, and intercepts.

    Words x classes, components x classes, and classes. `scale` multiplies the
    embedding: the squares of `embedding` are what the penalty sees.
    """

    words: Floats
    embedding: Floats
    intercept: Floats
    scale: float

    @classmethod
    def zeros(cls, features: Features, n_classes: int, scale: float) -> Coefficients:
        """Return where a first fit starts."""
        words = np.zeros((features.words.shape[1], n_classes))
        embedding = np.zeros((features.embedding.shape[1], n_classes))
        return cls(words, embedding, np.zeros(n_classes), scale)

    def scores(self, features: Features) -> Floats:
        """Return the scores whose softmax are the probabilities."""
        words = features.words @ self.words + self.intercept
        return np.asarray(words + features.embedding @ (self.scale * self.embedding))

    def rescaled(self, scale: float) -> Coefficients:
        """Return the same function of documents, to start from at another scale."""
        factor = self.scale / scale if scale else 0.0
        return Coefficients(
            self.words, self.embedding * factor, self.intercept, float(scale)
        )


def fit_regression(
    features: Features,
    targets: Floats,
    start: Coefficients,
    C: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 300,
) -> Coefficients:
    r"""Maximise the penalised likelihood of soft labels, from `start` on.

    .. math::
        \sum_d \sum_\ell r_{d\ell} \log p_\ell(x_d)
        - \frac{1}{2C} (\|W\|^2 + \|U\|^2), \qquad
        p(x) = \mathrm{softmax}(x W + \beta z U + b),

    with words :math:`x`, embedding :math:`z` and its scale :math:`\beta`. It is the
    objective of scikit-learn's LogisticRegression on both side by side.

    Parameters
    ----------
    features : Features
        Of the training documents.
    targets : ndarray of shape (n_documents, n_classes)
        Weights :math:`r` of the classes for each document; one 1 per row for plain
        labels.
    start : Coefficients
        Where to start; its scale is the one that is used.
    C : float
        Inverse l2 weight.
    tol : float
        It ends when an iteration gains less than this part of the objective.
    max_iter : int
        Most iterations.
    """
    n_words, n_classes = start.words.shape
    scale, total = start.scale, float(targets.sum())
    weights = targets.sum(axis=1)
    X, Z = features.words, features.embedding
    Xt = X.T.tocsr()
    penalty = 1 / (C * total)
    used = Z.shape[1] if scale else 0
    split = np.cumsum([n_words * n_classes, used * n_classes])

    def unpack(flat: Floats) -> list[Floats]:
        W, U, b = np.split(flat, split)
        return [W.reshape(n_words, n_classes), U.reshape(used, n_classes), b]

    def objective(flat: Floats) -> tuple[float, Floats]:
        W, U, b = unpack(flat)
        scores = X @ W + b
        if used:
            scores += scale * (Z @ U)
        norm = logsumexp(scores, axis=1, keepdims=True)
        loss = float(weights @ norm[:, 0] - np.vdot(targets, scores)) / total
        rest = (np.exp(scores - norm) * weights[:, None] - targets) / total
        gradient = np.empty_like(flat)
        dW, dU, db = unpack(gradient)
        dW[:] = Xt @ rest + penalty * W
        if used:
            dU[:] = scale * (Z.T @ rest) + penalty * U
        db[:] = rest.sum(axis=0)
        inner = np.vdot(flat[: split[1]], flat[: split[1]])
        return float(loss + penalty * inner / 2), gradient

    first = np.concatenate(
        [start.words.ravel(), start.embedding[:used].ravel(), start.intercept]
    )
    options: Any = {"maxiter": max_iter, "gtol": 0.0, "ftol": tol}
    # Steps of a tenth of a millisecond: threads of BLAS only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        found = minimize(
            objective, first, jac=True, method="L-BFGS-B", options=options
        ).x
    W, U, b = unpack(found)
    embedding = U if used else np.zeros((Z.shape[1], n_classes))
    return Coefficients(W, embedding, b, scale)
