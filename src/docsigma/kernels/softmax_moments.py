"""The one primitive: moments of the word loadings under softmax(m + T w)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from docsigma.kernels.moments import SoftmaxMoments
from docsigma.kernels.precision import precision
from docsigma.kernels.tiles import Workspace, tiled_moments
from docsigma.kernels.words import SoftmaxWords

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["softmax_moments"]

# One block of logits on a device without tiles of its own.
BLOCK_BYTES = 512 * 2**20


def softmax_moments(
    points: Tensor,
    loadings: Tensor | SoftmaxWords,
    bias: Tensor | None = None,
    *,
    first: bool = False,
    second: bool = False,
    weights: Tensor | None = None,
    workspace: Workspace | None = None,
) -> SoftmaxMoments:
    r"""Log-sum-exp of ``bias + loadings @ w`` and its derivatives, in one sweep.

    The logits :math:`L = m + W T^\top` exist only for a tile of words or a block of
    points; no array of size n x V is kept. On a CPU the words go by in tiles
    (:mod:`~docsigma.kernels.tiles`); on a GPU the fused kernels
    (:mod:`~docsigma.kernels.fused`) are taken where the current
    :func:`~docsigma.kernels.precision.precision` allows them, else plain torch.

    Parameters
    ----------
    points : Tensor of shape (n, K)
        Latent points :math:`w`.
    loadings : Tensor of shape (V, K), or SoftmaxWords
        Word loadings :math:`T`, or T and m made ready for many calls.
    bias : Tensor of shape (V,)
        Log uni-gram :math:`m`; left out where `loadings` has it.
    first, second : bool, default=False
        Also give :math:`E_\theta[t]` and :math:`E_\theta[t^2]`.
    weights : Tensor of shape (n,), default=None
        If given, also give the gradients of ``(weights * lse).sum()`` in
        `loadings` and `bias`. Not negative.
    workspace : Workspace, default=None
        A buffer to use again, for callers with many small batches.

    Returns
    -------
    SoftmaxMoments

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
    words = (
        loadings
        if isinstance(loadings, SoftmaxWords)
        else SoftmaxWords(loadings, _given(bias))
    )
    if words.loadings.device.type == "cpu":
        return _tiled(points, words, first, second, weights, workspace)
    mode = precision()
    if mode != "float32" and words.loadings.is_cuda:
        fused = words.fused(mode, second=second)
        if fused is not None:
            return fused(points, first=first, second=second, weights=weights)
    return _blocked(points, words, first, second, weights)


def _given(bias: Tensor | None) -> Tensor:
    if bias is None:
        raise TypeError("`bias` is needed beside `loadings`")
    return bias


def _tiled(
    points: Tensor,
    words: SoftmaxWords,
    first: bool,
    second: bool,
    weights: Tensor | None,
    workspace: Workspace | None,
) -> SoftmaxMoments:
    lse, averages, squares, gradient, usable = tiled_moments(
        points,
        words.table,
        first=first,
        second=second,
        weights=weights,
        workspace=Workspace() if workspace is None else workspace,
    )
    if not bool(usable.all()):
        again = torch.nonzero(~usable)[:, 0]
        rest = _blocked(
            points[again],
            words,
            first,
            second,
            None if weights is None else weights[again],
        )
        lse[again] = rest.lse
        if first or second:
            averages[again] = _given(rest.first)
        if second:
            squares[again] = _given(rest.second)
        if gradient is not None:
            gradient[:, :-1] += _given(rest.loading_gradient)
            gradient[:, -1] += _given(rest.bias_gradient)
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
) -> SoftmaxMoments:
    """Plain torch, blocks of points, every row with its own maximum."""
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

    fitting = BLOCK_BYTES // (n_features * points.element_size())
    rows = min(max(16, fitting // 16 * 16), max(n_points, 1))
    buffer = points.new_empty(rows, n_features)
    transposed = loadings.t()
    for start in range(0, n_points, rows):
        block = slice(start, min(start + rows, n_points))
        w = points[block]
        logits = torch.addmm(bias, w, transposed, out=buffer[: w.shape[0]])
        top = logits.amax(dim=1)
        # From here on `logits` holds theta times its row's normaliser: dividing the
        # small results is cheaper than one more pass over the block.
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
