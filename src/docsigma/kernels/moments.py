"""What the one primitive gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["SoftmaxMoments"]


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
