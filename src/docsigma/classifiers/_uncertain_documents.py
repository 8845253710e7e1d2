"""Means and uncertainties of documents, from arrays or posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from docsigma._array_checks import Floats, check_all, check_shape, floats
from docsigma.exceptions import InputError


def is_posterior(X: Any) -> bool:
    """Whether `X` has its means as an attribute; arrays have a method instead."""
    mean = getattr(X, "mean", None)
    return mean is not None and not callable(mean)


def check_points(X: Any) -> None:
    """Refuse a posterior where points are needed."""
    if is_posterior(X):
        raise InputError(
            f"`X` must be an array, got {type(X).__name__}: its attribute `mean` is one"
        )


def half_of(X: Floats) -> int:
    """Return the number of means, that as many variances come after."""
    if X.shape[1] % 2:
        raise InputError(
            "`X` must have an even number of features, means and then as many "
            f"variances, got n_features = {X.shape[1]}; means alone need "
            '`layout="mean"`'
        )
    return int(X.shape[1] // 2)


@dataclass(frozen=True)
class UncertainDocuments:
    r"""Posterior means :math:`\nu_d` and covariances :math:`\Gamma_d^{-1}`.

    `spread` holds variances, documents x components, or covariances, documents x
    components x components; it is None where there is no uncertainty.
    """

    mean: Floats
    spread: Any

    def __len__(self) -> int:
        return len(self.mean)

    def take(self, rows: NDArray[np.intp]) -> UncertainDocuments:
        """Return some of the documents, in the order of `rows`."""
        spread = None if self.spread is None else self.spread[rows]
        return UncertainDocuments(self.mean[rows], spread)

    def mean_covariance(self, weights: Floats) -> Floats:
        r"""Return the weighted mean of the :math:`\Gamma_d^{-1}`."""
        mean = np.tensordot(weights / weights.sum(), self.spread, 1)
        return np.asarray(mean if mean.ndim == 2 else np.diag(mean))

    @classmethod
    def from_array(cls, X: Floats, *, exact: bool) -> UncertainDocuments:
        """Read means and then as many variances, or means alone that are `exact`."""
        half = X.shape[1] if exact else half_of(X)
        allowed = np.isfinite(X)
        allowed[:, half:] &= X[:, half:] >= 0
        rule = "be finite, without NaN, and have no negative variances"
        check_all("X", X, allowed, rule)
        return cls(X[:, :half], X[:, half:] if X[:, half:].any() else None)

    @classmethod
    def from_posterior(cls, posterior: Any) -> UncertainDocuments:
        """Read ``mean`` and ``covariance`` or ``variance`` of a posterior."""
        mean = floats("X.mean", _to_numpy(posterior.mean), 2).astype(np.float64)
        full = getattr(posterior, "covariance", None) is not None
        name = "covariance" if full else "variance"
        if getattr(posterior, name, None) is None:
            raise InputError("`X` has a `mean`, but no `variance` and no `covariance`")
        spread = _to_numpy(getattr(posterior, name))
        check_shape(f"X.{name}", spread, mean.shape + mean.shape[1:] * full)
        diagonal = np.diagonal(spread, axis1=1, axis2=2) if full else spread
        allowed = np.isfinite(diagonal) & (diagonal >= 0)
        check_all(f"X.{name}", diagonal, allowed, "have finite variances, not negative")
        return cls(mean, spread if spread.any() else None)


def _to_numpy(values: Any) -> NDArray[Any]:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values)
