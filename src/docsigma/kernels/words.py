"""The words as the primitive reads them, made ready once for many calls."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from docsigma.kernels.tiles import augment

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from torch import Tensor

    from docsigma.kernels.moments import SoftmaxMoments
    from docsigma.kernels.precision import Precision

__all__ = ["SoftmaxWords"]


class SoftmaxWords:
    """Loadings and bias, and what a device wants made of them.

    Parameters
    ----------
    loadings : Tensor of shape (V, K)
        :math:`T`.
    bias : Tensor of shape (V,)
        :math:`m`.
    """

    def __init__(self, loadings: Tensor, bias: Tensor) -> None:
        self.loadings = loadings
        self.bias = bias
        self._table: Tensor | None = None
        self._fused: dict[tuple[str, bool], Callable[..., SoftmaxMoments] | None] = {}

    @classmethod
    def of_table(cls, table: Tensor) -> Self:
        """Take a table ``[T, m, 1]`` as it is, without a copy of T."""
        words = cls(table[:, :-2], table[:, -2])
        words._table = table
        return words

    @property
    def table(self) -> Tensor:
        """The table ``[T, m, 1]``, of shape (V, K + 2)."""
        if self._table is None:
            self._table = augment(self.loadings, self.bias)
        return self._table

    def fused(
        self, precision: Precision, *, second: bool
    ) -> Callable[..., SoftmaxMoments] | None:
        """Give the fused kernels for these words, or None where they cannot run."""
        key = precision, second
        if key not in self._fused:
            self._fused[key] = self._prepare(precision, second)
        return self._fused[key]

    def _prepare(
        self, precision: Precision, second: bool
    ) -> Callable[..., SoftmaxMoments] | None:
        # Importing the module imports Triton, which only a GPU needs.
        from docsigma.kernels import fused

        usable = fused.available(self.loadings)
        if (
            not usable
            or precision == "float32"
            or self.loadings.shape[1] > fused.MAX_COMPONENTS
        ):
            return None
        prepared = fused.PreparedLoadings.of(
            self.loadings, self.bias, second=second, precision=precision
        )
        return partial(
            fused.fused_moments,
            loadings=self.loadings,
            bias=self.bias,
            prepared=prepared,
        )
