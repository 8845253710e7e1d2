r"""Distances and divergences between Gaussians.

Each function returns a matrix, documents of `a` by documents of `b`; its ``pairwise_``
variant returns one number per pair of rows. Covariances may be diagonal or full, and
of different forms in `a` and `b`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.posterior import GaussianPosterior


def wasserstein2(a: GaussianPosterior, b: GaussianPosterior) -> Floats:
    r"""Return Wasserstein-2 distances, documents of `a` x documents of `b`.

    .. math::

        W_2^2 = \|\mu_a - \mu_b\|^2 + \mathrm{tr}\,\bigl(\Sigma_a + \Sigma_b
        - 2 (\Sigma_a^{1/2} \Sigma_b \Sigma_a^{1/2})^{1/2}\bigr)

    For diagonal covariances it is the Euclidean distance of means and standard
    deviations.

    Examples
    --------
    >>> from docsigma import GaussianPosterior
    >>> a = GaussianPosterior([[0.0], [0.0]], [[1.0], [4.0]])
    >>> wasserstein2(a, GaussianPosterior([[0.0], [3.0]], [[1.0], [1.0]])).round(2)
    array([[0.  , 3.  ],
           [1.  , 3.16]])
    """
    return _matrix(_wasserstein2, a, b)


def pairwise_wasserstein2(a: GaussianPosterior, b: GaussianPosterior) -> Floats:
    """Return the distance of :func:`wasserstein2` for each pair of rows."""
    return _pairs(_wasserstein2, a, b)


def kl(a: GaussianPosterior, b: GaussianPosterior) -> Floats:
    r"""Return KL divergences in nats, documents of `a` x documents of `b`.

    .. math::

        \mathrm{KL}(a \| b) = \tfrac12 \bigl( \mathrm{tr}(\Sigma_b^{-1} \Sigma_a)
        + (\mu_a - \mu_b)^T \Sigma_b^{-1} (\mu_a - \mu_b) - K
        + \log|\Sigma_b| - \log|\Sigma_a| \bigr)

    The divergence from a posterior to its own prior is
    :meth:`~docsigma.posterior.GaussianPosterior.kl`.

    Examples
    --------
    >>> from docsigma import GaussianPosterior
    >>> a = GaussianPosterior([[0.0]], [[1.0]])
    >>> kl(a, GaussianPosterior([[0.0], [2.0]], [[1.0], [1.0]]))
    array([[0., 2.]])
    """
    return _matrix(_kl, a, b)


def pairwise_kl(a: GaussianPosterior, b: GaussianPosterior) -> Floats:
    """Return the divergence of :func:`kl` for each pair of rows."""
    return _pairs(_kl, a, b)


def expected_likelihood(
    a: GaussianPosterior, b: GaussianPosterior, *, log: bool = True
) -> Floats:
    r"""Return the (log) likelihood that two documents have the same embedding.

    .. math::

        \log \int q_a(w)\, q_b(w)\, dw
        = \log N(\mu_a - \mu_b;\, 0,\, \Sigma_a + \Sigma_b)

    The default is the log, in nats: densities in 100 dimensions leave the range of
    floating-point numbers.

    Examples
    --------
    >>> from docsigma import GaussianPosterior
    >>> a = GaussianPosterior([[0.0]], [[0.5]])
    >>> expected_likelihood(a, a, log=False).round(4)
    array([[0.3989]])
    """
    found = _matrix(_log_expected_likelihood, a, b)
    return found if log else np.exp(found)


def pairwise_expected_likelihood(
    a: GaussianPosterior, b: GaussianPosterior, *, log: bool = True
) -> Floats:
    """Return the :func:`expected_likelihood` of each pair of rows."""
    found = _pairs(_log_expected_likelihood, a, b)
    return found if log else np.exp(found)


def same_document(a: GaussianPosterior, b: GaussianPosterior) -> Floats:
    r"""Return how much likelier two texts are as one document than as two, in nats.

    The log ratio of the probability that both have one embedding, drawn from the
    prior, to that of two independent ones, documents of `a` by documents of `b`:

    .. math::

        \log \int \frac{q_a(w)\, q_b(w)}{p(w)}\, dw

    It is meant for texts that share no words because they are in different languages;
    words that one text copied from the other are more evidence than it counts.

    Examples
    --------
    >>> from docsigma import GaussianPosterior, GaussianPrior
    >>> prior = GaussianPrior.isotropic(1.0, 1)
    >>> a = GaussianPosterior([[1.0], [0.0]], [[0.1], [1.0]], prior=prior)
    >>> same_document(a, a).round(2)
    array([[1.36, 0.  ],
           [0.  , 0.  ]])
    """
    left, right = _prepared(a, b)
    prior = a.prior or b.prior
    if prior is None or (b.prior is not None and b.prior != prior):
        raise InputError("`a` and `b` must have the same prior")
    full = left.root is not None or prior.form == "full"
    found = np.empty((len(a), len(b)))
    own = np.asarray(prior.precision_matrix() if full else prior.precision_diagonal())
    parts = [(q.mean - prior.mean, _precisions(q, full)) for q in (left, right)]
    linear = [(p * m) if not full else (p @ m[:, :, None])[:, :, 0] for m, p in parts]
    alone = [
        _log_determinant(p, full) - (m * h).sum(axis=1)
        for (m, p), h in zip(parts, linear, strict=True)
    ]
    constant = float(_log_determinant(own[None], full)[0])
    for i in range(len(a)):
        both, h = parts[0][1][i] + parts[1][1] - own, linear[0][i] + linear[1]
        mean = h / both if not full else np.linalg.solve(both, h[:, :, None])[:, :, 0]
        together = (h * mean).sum(axis=1) - _log_determinant(both, full)
        found[i] = 0.5 * (together + alone[0][i] + alone[1] - constant)
    return found


def _precisions(q: _Gaussians, full: bool) -> Floats:
    if not full:
        return 1 / q.variance
    if q.root is None:
        return np.asarray((1 / q.variance)[:, :, None] * np.eye(q.mean.shape[1]))
    return np.asarray(np.linalg.inv(q.root @ q.root.transpose(0, 2, 1)))


def _log_determinant(precisions: Floats, full: bool) -> Floats:
    if full:
        return np.asarray(np.linalg.slogdet(precisions)[1])
    return np.asarray(np.log(precisions).sum(axis=1))


@dataclass(frozen=True)
class _Gaussians:
    """Means, variances and, for covariances that are not diagonal, their roots."""

    mean: Floats
    variance: Floats
    root: Floats | None  # lower triangular

    @classmethod
    def of(cls, q: GaussianPosterior, full: bool) -> _Gaussians:
        root: Any = None
        if full:
            covariance = q._full_covariance().astype(np.float64)
            try:
                root = np.linalg.cholesky(covariance)
            except np.linalg.LinAlgError as error:
                raise InputError(
                    "a covariance matrix is not positive definite"
                ) from error
        return cls(q.mean.astype(np.float64), q.variance.astype(np.float64), root)

    def row(self, i: int) -> _Gaussians:
        some = slice(i, i + 1)
        root = None if self.root is None else self.root[some]
        return _Gaussians(self.mean[some], self.variance[some], root)


Measure = Callable[[_Gaussians, _Gaussians], Any]


def _prepared(
    a: GaussianPosterior, b: GaussianPosterior
) -> tuple[_Gaussians, _Gaussians]:
    if a.n_components != b.n_components:
        raise InputError(
            f"`a` has {a.n_components} components, `b` has {b.n_components}"
        )
    full = not (a._form == b._form == "diagonal")
    return _Gaussians.of(a, full), _Gaussians.of(b, full)


def _matrix(measure: Measure, a: GaussianPosterior, b: GaussianPosterior) -> Floats:
    left, right = _prepared(a, b)
    found = np.empty((len(a), len(b)))
    for i in range(len(a)):
        found[i] = measure(left.row(i), right)
    return found


def _pairs(measure: Measure, a: GaussianPosterior, b: GaussianPosterior) -> Floats:
    if len(a) != len(b):
        raise InputError(f"`a` has {len(a)} documents, but `b` has {len(b)}")
    return np.asarray(measure(*_prepared(a, b)))


def _wasserstein2(a: _Gaussians, b: _Gaussians) -> Floats:
    square = np.square(a.mean - b.mean).sum(axis=1)
    if a.root is None or b.root is None:
        apart = np.sqrt(a.variance) - np.sqrt(b.variance)
        return np.asarray(np.sqrt(square + np.square(apart).sum(axis=1)))
    # With roots A and B the trace of the square root is the sum of the singular values
    # of A^T B, which needs no matrix square root and is at least as exact.
    shared = np.linalg.svdvals(a.root.transpose(0, 2, 1) @ b.root).sum(axis=1)
    spread = a.variance.sum(axis=1) + b.variance.sum(axis=1) - 2 * shared
    return np.asarray(np.sqrt(np.maximum(square + spread, 0.0)))


def _kl(a: _Gaussians, b: _Gaussians) -> Floats:
    away = a.mean - b.mean
    if a.root is None or b.root is None:
        ratio = a.variance / b.variance
        terms = ratio - 1 - np.log(ratio) + np.square(away) / b.variance
        return np.asarray(0.5 * terms.sum(axis=1))
    shared = np.linalg.solve(b.root, np.broadcast_to(a.root, b.root.shape))
    solved = np.linalg.solve(b.root, away[:, :, None])
    trace = np.square(shared).sum(axis=(1, 2)) - away.shape[1]
    logs = _log_diagonal(b.root) - _log_diagonal(a.root)
    return np.asarray(0.5 * (trace + np.square(solved).sum(axis=(1, 2))) + logs)


def _log_expected_likelihood(a: _Gaussians, b: _Gaussians) -> Floats:
    away = a.mean - b.mean
    constant = away.shape[1] * np.log(2 * np.pi)
    if a.root is None or b.root is None:
        variance = a.variance + b.variance
        terms = np.square(away) / variance + np.log(variance)
        return np.asarray(-0.5 * (terms.sum(axis=1) + constant))
    covariance = a.root @ a.root.transpose(0, 2, 1) + b.root @ b.root.transpose(0, 2, 1)
    root: Any = np.linalg.cholesky(covariance)
    solved = np.linalg.solve(root, away[:, :, None])
    square = np.square(solved).sum(axis=(1, 2))
    return np.asarray(-0.5 * (square + constant) - _log_diagonal(root))


def _log_diagonal(root: Floats) -> Floats:
    return np.asarray(np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1))
