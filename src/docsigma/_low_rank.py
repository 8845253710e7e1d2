"""Precisions that are a diagonal and a few directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from docsigma._array_checks import check_all, check_shape, floats

Array = NDArray[np.floating[Any]]


class LowRankPrecision:
    r"""Precision matrices :math:`D + U U^\top`; what follows from them is float64.

    The covariance is :math:`D^{-1} - F F^\top` with :math:`F = D^{-1} U L^{-\top}` and
    :math:`L L^\top = I + U^\top D^{-1} U` (Woodbury).

    Parameters
    ----------
    diagonal : array of shape (n, K)
        D, positive.
    factor : array of shape (n, K, r)
        U.
    shape : tuple
        What (n, K) must be.
    """

    def __init__(
        self, diagonal: ArrayLike, factor: ArrayLike, shape: tuple[int, ...]
    ) -> None:
        self.diagonal: Array = floats("precision_diagonal", diagonal, 2)
        check_shape("precision_diagonal", self.diagonal, shape)
        positive = self.diagonal > 0
        check_all("precision_diagonal", self.diagonal, positive, "be positive")
        self.factor: Array = floats("precision_factor", factor, 3)
        check_shape("precision_factor", self.factor, (*shape, self.rank))
        self._inverse = 1 / self.diagonal.astype(np.float64)
        scaled = self._inverse[:, :, None] * self.factor
        inner = np.eye(self.rank) + self.factor.transpose(0, 2, 1) @ scaled
        self._root = np.linalg.cholesky(inner)
        transposed = np.linalg.solve(self._root, scaled.transpose(0, 2, 1))
        self._lost = transposed.transpose(0, 2, 1)

    @property
    def rank(self) -> int:
        """Columns r of U."""
        return int(self.factor.shape[2])

    def variance(self) -> Array:
        """Return the diagonals of the covariances, of shape (n, K)."""
        return np.asarray(self._inverse - (self._lost**2).sum(axis=2))

    def covariance(self) -> Array:
        """Return the covariances, of shape (n, K, K)."""
        diagonal = self._inverse[:, :, None] * np.eye(self._inverse.shape[1])
        return np.asarray(diagonal - self._lost @ self._lost.transpose(0, 2, 1))

    def log_determinant(self) -> Array:
        """Return the log determinants of the covariances, of shape (n,)."""
        inner = np.log(np.diagonal(self._root, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(np.log(self._inverse).sum(axis=1) - 2 * inner)
