r"""The one primitive on a CPU: words in tiles that stay in the cache.

With the table ``[T, m, 1]``, each tile is two plain products: with ``[w, 1, 0]`` it
gives the logits, and its transpose times the exponentials gives :math:`\sum p\,t` and
:math:`\sum p`. Between them is one pass, the exponential. The maximum that keeps
exponentials in range is not computed: almost always the bias bounds the logits well
enough. Rows where it does not are recognised by their sum, and recomputed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from docsigma.kernels.settings import TileSizes


class Workspace(threading.local):
    """A reusable buffer, which saves allocating its pages in each call.

    Each thread has its own, and a copy gets a new one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._buffer: Tensor | None = None

    def __reduce__(self) -> tuple[type[Workspace], tuple[()]]:
        return Workspace, ()

    def take(self, n_rows: int, n_columns: int, like: Tensor) -> Tensor:
        """Return an uninitialised array."""
        size = n_rows * n_columns
        old = self._buffer
        if old is None or old.numel() < size or old.dtype != like.dtype:
            self._buffer = old = like.new_empty(size)
        return old[:size].view(n_rows, n_columns)


def augment(loadings: Tensor, bias: Tensor) -> Tensor:
    """Return the table ``[T, m, 1]`` of shape (V, K + 2), in column-major order.

    That is faster for few points, and as fast for many.
    """
    return torch.cat([loadings.t(), bias[None], torch.ones_like(bias)[None]]).t()


def tiled_moments(
    points: Tensor,
    table: Tensor,
    *,
    first: bool,
    second: bool,
    weights: Tensor | None,
    workspace: Workspace,
    sizes: TileSizes,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor]:
    """Pass over the words once; return lse, first, second, gradient and usable.

    `first` and `second` are empty unless requested. The last column of the gradient
    (V, K + 1) is of the bias. `usable` (n,) is false where the exponentials of a point
    left the range; its numbers and its part of the gradient are then zero.
    """
    n_points, n_features = len(points), len(table)
    lse = points.new_empty(n_points)
    averages = points.new_empty(n_points, points.shape[1] if first or second else 0)
    squares = points.new_empty(n_points, points.shape[1] if second else 0)
    usable = torch.empty(n_points, dtype=torch.bool)
    gradient = None
    rows = sizes.points
    if weights is not None:
        fitting = sizes.kept_bytes // (max(n_features, 1) * points.element_size())
        rows = max(16, min(sizes.points, fitting // 16 * 16))
    for start in range(0, n_points, rows):
        block = slice(start, min(start + rows, n_points))
        w = points[block]
        kept, sums, sums_of_squares = _one_pass(
            w, table, first or second, second, weights is not None, workspace, sizes
        )
        total = sums[:, -1]
        tiny = torch.finfo(total.dtype).tiny
        fine = torch.isfinite(sums).all(dim=1) & (total > tiny**0.5)
        if second:
            fine &= torch.isfinite(sums_of_squares).all(dim=1)
        usable[block] = fine
        total = torch.where(fine, total, 1.0)
        lse[block] = total.log()
        if first or second:
            averages[block] = sums[:, :-2] / total[:, None]
        if second:
            squares[block] = sums_of_squares / total[:, None]
        if weights is not None:
            scale = torch.where(fine, weights[block] / total, 0.0)
            # [w * scale, scale, 0, ...], padded to a multiple of eight columns: a
            # product with 101 columns takes a tenth longer than with 104.
            k = w.shape[1]
            factors = w.new_zeros(len(w), (k // 8 + 1) * 8)
            torch.mul(w, scale[:, None], out=factors[:, :k])
            factors[:, k] = scale
            if not bool(fine.all()):
                kept.nan_to_num_(0.0, 0.0, 0.0)
            if gradient is None:
                gradient = torch.mm(kept, factors)
            else:
                gradient.addmm_(kept, factors)
    if weights is not None and gradient is None:
        gradient = points.new_zeros(n_features, points.shape[1] + 1)
    if gradient is not None:
        gradient = gradient[:, : points.shape[1] + 1]
    return lse, averages, squares, gradient, usable


def _one_pass(
    w: Tensor,
    table: Tensor,
    first: bool,
    second: bool,
    keep: bool,
    workspace: Workspace,
    sizes: TileSizes,
) -> tuple[Tensor, Tensor, Tensor]:
    n, k = w.shape
    n_features = len(table)
    extended = torch.cat([w, w.new_ones(n, 1), w.new_zeros(n, 1)], dim=1)
    # Without moments only the sums are needed: the last column.
    columns = table if first else table[:, k + 1 :]
    if n <= sizes.few_points and not keep:
        sums, sums_of_squares = _rows_of_words(
            extended, table, columns, second, workspace, sizes
        )
        return sums, sums, sums_of_squares
    extended = extended.t().contiguous()
    sums = w.new_zeros(columns.shape[1], n)
    sums_of_squares = w.new_zeros(k if second else 0, n)
    kept = workspace.take(n_features if keep else min(sizes.words, n_features), n, w)
    for start in range(0, n_features, sizes.words):
        words = slice(start, min(start + sizes.words, n_features))
        tile = table[words]
        p = kept[words] if keep else kept[: len(tile)]
        torch.mm(tile, extended, out=p)
        p.exp_()
        sums.addmm_(columns[words].t(), p)
        if second:
            sums_of_squares.addmm_(tile[:, :k].square().t(), p)
    return kept, sums.t(), sums_of_squares.t()


def _rows_of_words(
    extended: Tensor,
    table: Tensor,
    columns: Tensor,
    second: bool,
    workspace: Workspace,
    sizes: TileSizes,
) -> tuple[Tensor, Tensor]:
    """Pass over the words for a few points; return the sums, one row per point."""
    n, k = len(extended), extended.shape[1] - 2
    sums = extended.new_zeros(n, columns.shape[1])
    sums_of_squares = extended.new_zeros(n, k if second else 0)
    for start in range(0, len(table), sizes.words):
        words = slice(start, min(start + sizes.words, len(table)))
        tile = table[words]
        p = workspace.take(n, len(tile), extended)
        torch.mm(extended, tile.t(), out=p)
        p.exp_()
        sums.addmm_(p, columns[words])
        if second:
            sums_of_squares.addmm_(p, tile[:, :k].square())
    return sums, sums_of_squares
