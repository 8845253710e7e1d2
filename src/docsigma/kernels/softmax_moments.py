"""The one primitive: moments of the word loadings under softmax(m + T w)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["SoftmaxMoments", "block_rows", "softmax_moments"]

# One block of logits. Measured in benchmarks/primitive.py: from 2 to 64 MiB the
# speed is flat on a CPU, so the small end keeps memory low; a GPU wants larger.
CPU_BLOCK_BYTES = 16 * 2**20
GPU_BLOCK_BYTES = 512 * 2**20


@dataclass(frozen=True)
class SoftmaxMoments:
    r"""What one pass over the words gives, for n latent points :math:`w`.

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


def block_rows(n_features: int, like: Tensor) -> int:
    """Give the number of points whose logits fit in one block on `like`'s device."""
    budget = CPU_BLOCK_BYTES if like.device.type == "cpu" else GPU_BLOCK_BYTES
    rows = budget // (n_features * like.element_size())
    return max(16, rows // 16 * 16)


def softmax_moments(
    points: Tensor,
    loadings: Tensor,
    bias: Tensor,
    *,
    first: bool = False,
    second: bool = False,
    weights: Tensor | None = None,
    squared_loadings: Tensor | None = None,
) -> SoftmaxMoments:
    r"""Log-sum-exp of ``bias + loadings @ w`` and its derivatives, block by block.

    For a block of points :math:`W` the logits :math:`L = m + W T^\top` exist only
    until the next block; no array of size n x V is kept.

    Parameters
    ----------
    points : Tensor of shape (n, K)
        Latent points :math:`w`.
    loadings : Tensor of shape (V, K)
        Word loadings :math:`T`.
    bias : Tensor of shape (V,)
        Log uni-gram :math:`m`.
    first, second : bool, default=False
        Also give :math:`E_\theta[t]` and :math:`E_\theta[t^2]`.
    weights : Tensor of shape (n,), default=None
        If given, also give the gradients of ``(weights * lse).sum()`` in
        `loadings` and `bias`.
    squared_loadings : Tensor of shape (V, K), default=None
        ``loadings ** 2`` where the caller has it already.

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
    >>> moments.lse.item(), moments.first.item()
    (0.0, 0.0)
    """
    n_points, n_components = points.shape
    n_features = loadings.shape[0]
    lse = points.new_empty(n_points)
    factors: Tensor | None = None
    if second:
        squares = loadings * loadings if squared_loadings is None else squared_loadings
        factors = torch.cat([loadings, squares], dim=1)
    elif first:
        factors = loadings
    averages = points.new_empty(n_points, 0 if factors is None else factors.shape[1])
    loading_gradient = None if weights is None else torch.zeros_like(loadings)
    bias_gradient = None if weights is None else torch.zeros_like(bias)

    rows = min(block_rows(n_features, points), max(n_points, 1))
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
