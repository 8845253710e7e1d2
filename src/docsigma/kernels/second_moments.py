r"""Second moments of the word loadings, for full covariances.

:math:`E_\theta[t t^\top]` of n documents is one product of their probabilities, n x V,
with the words' products :math:`t_a t_b`, V x K (K + 1) / 2: :math:`n V K (K + 1)`
floating-point operations, at the speed of a large product. Both factors exist for one
tile of words at a time. Probabilities are first averaged over a document's draws, so
that draws cost :math:`2 R K` per document and word, not :math:`R K^2`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from docsigma.kernels.settings import BLOCK_BYTES, TileSizes


def second_moments(
    inputs: Tensor,
    lse: Tensor,
    weights: Tensor,
    columns: Tensor,
    bias: Tensor,
    loadings: Tensor,
    *,
    product_bytes: int | None = None,
    points: int | None = None,
) -> Tensor:
    r"""Return :math:`\sum_r a_r\,E_{\theta_r}[t t^\top]` per document.

    Parameters
    ----------
    inputs, lse : Tensors of shape (n, R, C) and (n, R)
        Points, and the log-sum-exp of the logits ``bias + columns @ inputs`` there.
    weights : Tensor of shape (n, R)
        :math:`a`, not negative.
    columns, bias : Tensors of shape (V, C) and (V,)
    loadings : Tensor of shape (V, K)
        :math:`t`; best centred, so that a covariance is not a small difference.
    product_bytes : int, default=None
        Size of the products of a tile of words; None chooses by device.
    points : int, default=None
        Number of points whose probabilities exist at a time; None chooses by device.

    Examples
    --------
    >>> t = torch.tensor([[1.0], [-2.0]])
    >>> nothing = torch.zeros(1, 1, 1)
    >>> lse, one = torch.full((1, 1), 2.0).log(), torch.ones(1, 1)
    >>> second_moments(nothing, lse, one, t, torch.zeros(2), t).item()
    2.5
    """
    n, n_draws, _ = inputs.shape
    n_words, k = loadings.shape
    n_products = k * (k + 1) // 2
    sizes, size = TileSizes(), inputs.element_size()
    if product_bytes is None:
        product_bytes = sizes.product_bytes if inputs.is_cpu else BLOCK_BYTES
    # With hundreds of components, narrower products than 64 words would be slow.
    tile = max(64, product_bytes // (n_products * size))
    if points is None:
        points = sizes.points if inputs.is_cpu else BLOCK_BYTES // (tile * size)
    documents = max(1, points // n_draws)
    # A weight is a term of the exponent: minus infinity for zero.
    shift = weights.log() - lse
    transposed = loadings.t().contiguous()
    products = inputs.new_empty(n_products, min(tile, n_words))
    sums = inputs.new_zeros(n_products, n)
    for start in range(0, n_words, tile):
        words = slice(start, min(start + tile, n_words))
        theta = _probabilities(inputs, shift, columns[words], bias[words], documents)
        some = products[:, : len(theta)]
        _fill_products(transposed[:, words], some)
        sums.addmm_(some, theta)
    return _symmetric(sums, k)


def _probabilities(
    inputs: Tensor, shift: Tensor, columns: Tensor, bias: Tensor, documents: int
) -> Tensor:
    """Return the weighted sums over draws of the words' probabilities, words x n."""
    theta = inputs.new_empty(len(bias), len(inputs))
    for start in range(0, len(inputs), documents):
        some = slice(start, start + documents)
        offset = bias[:, None] + shift[some].reshape(1, -1)
        logits = torch.addmm(offset, columns, inputs[some].flatten(0, 1).t())
        each = logits.exp_().view(len(bias), *shift[some].shape)
        torch.sum(each, dim=2, out=theta[:, some])
    return theta


def _fill_products(rows: Tensor, out: Tensor) -> None:
    """Write the products of rows a and b, a <= b, below each other into `out`."""
    first = 0
    for a in range(len(rows)):
        last = first + len(rows) - a
        torch.mul(rows[a:], rows[a], out=out[first:last])
        first = last


def _symmetric(sums: Tensor, k: int) -> Tensor:
    """Return the symmetric matrices with upper triangles `sums` (K (K + 1) / 2, n)."""
    upper = torch.triu_indices(k, k, device=sums.device)
    matrices = sums.new_empty(sums.shape[1], k, k)
    matrices[:, upper[0], upper[1]] = sums.t()
    matrices[:, upper[1], upper[0]] = sums.t()
    return matrices
