"""Means and uncertainties of documents, from arrays or posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError


def is_posterior(X: Any) -> bool:
    """Whether `X` has its means as an attribute; arrays have a method instead."""
    mean = getattr(X, "mean", None)
    return mean is not None and not callable(mean)


@dataclass(frozen=True)
class UncertainDocuments:
    r"""Posterior means :math:`\nu_d` and covariances :math:`\Gamma_d^{-1}`.

    `spread` holds variances, documents x components, or covariances, documents x
    components x components; it is None where there is no uncertainty.
    """

    mean: Floats
    spread: NDArray[Any] | None

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def is_full(self) -> bool:
        """Whether the uncertainties are full covariances."""
        return self.spread is not None and self.spread.ndim == 3

    def take(self, rows: NDArray[np.intp]) -> UncertainDocuments:
        """Return some of the documents, in the order of `rows`."""
        spread = None if self.spread is None else self.spread[rows]
        return UncertainDocuments(self.mean[rows], spread)

    def mean_covariance(self, weights: Floats) -> Floats:
        r"""Return the weighted mean of the :math:`\Gamma_d^{-1}`."""
        K = self.mean.shape[1]
        if self.spread is None:
            return np.zeros((K, K))
        mean = weights @ self.spread.reshape(len(self), -1) / weights.sum()
        return np.asarray(mean.reshape(K, K) if self.is_full else np.diag(mean))

    def fill_covariance(
        self, rows: NDArray[np.intp], shared: torch.Tensor, out: torch.Tensor
    ) -> None:
        r"""Write :math:`W_d = D^{-1} + \Gamma_d^{-1}` of some documents to `out`."""
        out.copy_(shared)
        if self.spread is None:
            return
        spread = torch.from_numpy(self.spread[rows]).to(out)
        if self.is_full:
            out.add_(spread)
        else:
            out.diagonal(dim1=1, dim2=2).add_(spread)

    @classmethod
    def from_columns(cls, X: Floats) -> UncertainDocuments:
        """Split an array into its halves, means and variances."""
        n_columns = X.shape[1]
        if n_columns % 2:
            raise InputError(
                "`X` must have an even number of features, means and then as many "
                f"variances, got n_features = {n_columns}; means alone need "
                '`layout="mean"`'
            )
        half = n_columns // 2
        _refuse(X[:, half:] < 0, X[:, half:], "`X`", half)
        return cls._without_zeros(X[:, :half], X[:, half:])

    @classmethod
    def from_posterior(cls, posterior: Any) -> UncertainDocuments:
        """Read ``mean`` and ``covariance`` or ``variance`` of a posterior."""
        mean = _to_numpy(posterior.mean).astype(np.float64)
        if mean.ndim != 2 or 0 in mean.shape:
            raise InputError(
                f"`X.mean` must be documents x components, got the shape {mean.shape}"
            )
        _refuse(~np.isfinite(mean), mean, "`X.mean`", 0)
        full = getattr(posterior, "covariance", None)
        variance = getattr(posterior, "variance", None)
        if full is None and variance is None:
            raise InputError("`X` has a `mean`, but no `variance` and no `covariance`")
        name = "variance" if full is None else "covariance"
        spread = _to_numpy(variance if full is None else full)
        shape = mean.shape if full is None else (*mean.shape, mean.shape[1])
        if spread.shape != shape:
            raise InputError(
                f"`X.{name}` has the shape {spread.shape}, but {shape} fits `X.mean`"
            )
        if full is not None and not np.isfinite(spread).all():
            row = np.argwhere(~np.isfinite(spread))[0][0]
            raise InputError(f"`X.covariance` is not finite in row {row}")
        diagonal = spread if full is None else np.diagonal(spread, axis1=1, axis2=2)
        bad = ~np.isfinite(diagonal) | (diagonal < 0)
        _refuse(bad, diagonal, f"`X.{name}`", 0)
        return cls._without_zeros(mean, spread)

    @classmethod
    def _without_zeros(cls, mean: Floats, spread: NDArray[Any]) -> UncertainDocuments:
        return cls(mean, spread if spread.any() else None)


def _to_numpy(values: Any) -> NDArray[Any]:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def _refuse(
    bad: NDArray[np.bool_], values: NDArray[Any], name: str, offset: int
) -> None:
    if not bad.any():
        return
    row, column = np.argwhere(bad)[0]
    means, variances = (
        "means must be finite",
        "variances must be finite and not negative",
    )
    raise InputError(
        f"{name} has {values[row, column]} in row {row}, column {column + offset}; "
        f"{means if name == '`X.mean`' else variances}"
    )
