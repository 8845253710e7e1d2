"""The one primitive: moments of the word loadings under softmax(m + T w)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.kernels.rounding import rounding
from docsigma.kernels.settings import BLOCK_BYTES, MAX_COMPONENTS, TileSizes
from docsigma.kernels.tiles import Workspace, augment, tiled_moments

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self


@dataclass(frozen=True)
class SoftmaxMoments:
    r"""Result of one pass over the words, for n latent points :math:`w`.

    Attributes
    ----------
    lse : Tensor of shape (n,)
        :math:`\log\sum_j \exp(m_j + t_j w)`.
    first : Tensor of shape (n, K) or None
        :math:`E_\theta[t]`, the gradient of ``lse`` in :math:`w`.
    second : Tensor of shape (n, K) or None
        :math:`E_\theta[t^2]`; ``second - first**2`` is the diagonal curvature.
    loading_gradient : Tensor of shape (V, K) or None
        Gradient of ``(weights * lse).sum()`` in the loadings.
    bias_gradient : Tensor of shape (V,) or None
        Gradient of ``(weights * lse).sum()`` in the bias.
    """

    lse: Tensor
    first: Tensor | None = None
    second: Tensor | None = None
    loading_gradient: Tensor | None = None
    bias_gradient: Tensor | None = None


class SoftmaxWords:
    """Loadings (V, K) and bias (V,), with the tables that the kernels read, cached."""

    def __init__(self, loadings: Tensor, bias: Tensor) -> None:
        self.loadings = loadings
        self.bias = bias
        self._table: Tensor | None = None
        self._fused: dict[bool, Callable[..., SoftmaxMoments] | None] = {}

    @classmethod
    def of_table(cls, table: Tensor) -> Self:
        """Wrap a table ``[T, m, 1]`` as it is, without a copy of T."""
        words = cls(table[:, :-2], table[:, -2])
        words._table = table
        return words

    @property
    def table(self) -> Tensor:
        """The table ``[T, m, 1]``, of shape (V, K + 2)."""
        if self._table is None:
            self._table = augment(self.loadings, self.bias)
        return self._table

    def fused(self, *, second: bool) -> Callable[..., SoftmaxMoments] | None:
        """Return the fused kernels for these words, or None where they cannot run."""
        words, m = self.loadings, self.bias
        if second not in self._fused:
            # Importing the module imports Triton, which only a GPU needs.
            from docsigma.kernels import fused

            self._fused[second] = None
            fits = words.shape[1] <= MAX_COMPONENTS
            if fits and fused.available(words):
                prepared = fused.PreparedLoadings.of(words, m, second=second)
                self._fused[second] = partial(
                    fused.fused_moments, loadings=words, bias=m, prepared=prepared
                )
        return self._fused[second]


def softmax_moments(
    points: Tensor,
    loadings: Tensor | SoftmaxWords,
    bias: Tensor | None = None,
    *,
    first: bool = False,
    second: bool = False,
    weights: Tensor | None = None,
    workspace: Workspace | None = None,
    sizes: TileSizes | None = None,
) -> SoftmaxMoments:
    r"""Return the log-sum-exp of ``bias + loadings @ w`` and its derivatives.

    The logits :math:`L = m + W T^\top` exist only for a tile of words or a block of
    points; no array of size n x V is kept. A CPU uses tiles of words
    (:mod:`~docsigma.kernels.tiles`); a GPU uses the fused kernels
    (:mod:`~docsigma.kernels.fused`) if the current
    :func:`~docsigma.kernels.rounding.rounding` allows them, else plain torch.

    Parameters
    ----------
    points : Tensor of shape (n, K)
        Latent points :math:`w`.
    loadings : Tensor of shape (V, K), or SoftmaxWords
        Word loadings :math:`T`, or T and m prepared for many calls.
    bias : Tensor of shape (V,)
        Log uni-gram :math:`m`, unless `loadings` has it.
    first, second : bool, default=False
        Also return :math:`E_\theta[t]` and :math:`E_\theta[t^2]`.
    weights : Tensor of shape (n,), default=None
        If given, also return the gradients of ``(weights * lse).sum()`` in
        `loadings` and `bias`. Not negative.
    workspace : Workspace, default=None
        A reusable buffer, for callers with many small batches.
    sizes : TileSizes, default=None
        Sizes of tiles on a CPU.

    Examples
    --------
    >>> import torch
    >>> bias = torch.tensor([0.5, 0.5], dtype=torch.float64).log()
    >>> loadings = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    >>> point = torch.zeros(1, 1, dtype=torch.float64)
    >>> moments = softmax_moments(point, loadings, bias, first=True)
    >>> round(moments.lse.item(), 12) + 0.0, moments.first.item()
    (0.0, 0.0)
    """
    words = loadings
    if not isinstance(words, SoftmaxWords):
        if bias is None:
            raise TypeError("`bias` is needed with `loadings`")
        words = SoftmaxWords(words, bias)
    if not words.loadings.is_cpu:
        if rounding() == "tf32" and words.loadings.is_cuda:
            fused = words.fused(second=second)
            if fused is not None:
                return fused(points, first=first, second=second, weights=weights)
        return _blocked(points, words, first, second, weights)
    lse, averages, squares, gradient, usable = tiled_moments(
        points,
        words.table,
        first=first,
        second=second,
        weights=weights,
        workspace=Workspace() if workspace is None else workspace,
        sizes=TileSizes() if sizes is None else sizes,
    )
    if not bool(usable.all()):
        again = torch.nonzero(~usable)[:, 0]
        some = None if weights is None else weights[again]
        rest = _blocked(points[again], words, first, second, some)
        lse[again] = rest.lse
        if rest.first is not None:
            averages[again] = rest.first
        if rest.second is not None:
            squares[again] = rest.second
        if gradient is not None:
            assert rest.loading_gradient is not None
            assert rest.bias_gradient is not None
            gradient[:, :-1] += rest.loading_gradient
            gradient[:, -1] += rest.bias_gradient
    return SoftmaxMoments(
        lse=lse,
        first=averages if first or second else None,
        second=squares if second else None,
        loading_gradient=None if gradient is None else gradient[:, :-1],
        bias_gradient=None if gradient is None else gradient[:, -1],
    )


def _blocked(
    points: Tensor,
    words: SoftmaxWords,
    first: bool,
    second: bool,
    weights: Tensor | None,
    block_bytes: int = BLOCK_BYTES,
) -> SoftmaxMoments:
    """Return the moments by plain torch, in blocks of points, with exact maxima."""
    loadings, bias = words.loadings, words.bias
    n_points, n_components = points.shape
    n_features = loadings.shape[0]
    lse = points.new_empty(n_points)
    factors: Tensor | None = None
    if second:
        factors = torch.cat([loadings, loadings * loadings], dim=1)
    elif first:
        factors = loadings
    averages = points.new_empty(n_points, 0 if factors is None else factors.shape[1])
    loading_gradient = None if weights is None else torch.zeros_like(loadings)
    bias_gradient = None if weights is None else torch.zeros_like(bias)

    fitting = block_bytes // (n_features * points.element_size())
    rows = min(max(16, fitting // 16 * 16), max(n_points, 1))
    buffer = points.new_empty(rows, n_features)
    transposed = loadings.t()
    for start in range(0, n_points, rows):
        block = slice(start, min(start + rows, n_points))
        w = points[block]
        logits = torch.addmm(bias, w, transposed, out=buffer[: w.shape[0]])
        top = logits.amax(dim=1)
        # From here on `logits` holds unnormalised probabilities: dividing the small
        # results is cheaper than another pass over the block.
        logits.sub_(top[:, None]).exp_()
        normaliser = logits.sum(dim=1)
        lse[block] = top + normaliser.log()
        if factors is not None:
            averages[block] = (logits @ factors) / normaliser[:, None]
        if weights is not None:
            assert loading_gradient is not None
            assert bias_gradient is not None
            scale = weights[block] / normaliser
            loading_gradient.addmm_(logits.t(), w * scale[:, None])
            bias_gradient.addmv_(logits.t(), scale)
    return SoftmaxMoments(
        lse=lse,
        first=averages[:, :n_components] if factors is not None else None,
        second=averages[:, n_components:] if second else None,
        loading_gradient=loading_gradient,
        bias_gradient=bias_gradient,
    )
