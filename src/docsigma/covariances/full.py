"""The full covariance family of the variational posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from docsigma.covariances._base import CovarianceFamily, Gaussians

if TYPE_CHECKING:
    import numpy as np

    from docsigma.covariances.diagonal import DiagonalGaussians
    from docsigma.kernels import SoftmaxMoments
    from docsigma.priors import PriorTensors


class FullGaussians(Gaussians):
    r"""Posteriors :math:`q(w_d) = N(\nu_d, L_d L_d^\top)`.

    Parameters
    ----------
    mean : Tensor of shape (n, K)
        :math:`\nu`.
    factor : Tensor of shape (n, K, K)
        :math:`L`, lower triangular.
    """

    names: ClassVar[tuple[str, ...]] = ("mean", "factor")

    def __init__(self, mean: Tensor, factor: Tensor) -> None:
        self.mean = mean
        self.factor = factor

    @property
    def variance(self) -> Tensor:
        """Diagonals of the covariances, of shape (n, K)."""
        return self.factor.square().sum(dim=2)

    @property
    def precision(self) -> Tensor:
        """Diagonals of the precisions, of shape (n, K)."""
        unit = torch.eye(self.mean.shape[1], dtype=self.mean.dtype).to(self.mean)
        inverse = torch.linalg.solve_triangular(
            self.factor, unit.expand_as(self.factor), upper=False
        )
        result: Tensor = inverse.square().sum(dim=1)
        return result

    @property
    def covariance(self) -> Tensor:
        """The covariances, of shape (n, K, K)."""
        return self.factor @ self.factor.mT

    @property
    def family(self) -> Full:
        """The family of these posteriors."""
        return Full()

    def points(self, noise: Tensor) -> Tensor:
        r"""Re-parametrise: :math:`w_{dr} = \nu_d + L_d \epsilon_{dr}`."""
        return self.mean[:, None, :] + noise @ self.factor.mT

    def trace(self, prior: PriorTensors) -> Tensor:
        r"""Return :math:`\mathrm{tr}(\Lambda\Sigma)` per document, float64."""
        factor = self.factor.double()
        precision = prior.precision
        if isinstance(precision, float):
            return precision * factor.square().sum(dim=(1, 2))
        if precision.ndim == 1:
            return (factor.square().sum(dim=2) @ precision.double()).double()
        return ((precision.double() @ factor) * factor).sum(dim=(1, 2))

    def log_determinant(self) -> Tensor:
        r"""Return :math:`\log|\Sigma|` per document, float64."""
        diagonal = self.factor.diagonal(dim1=1, dim2=2)
        return 2 * diagonal.double().abs().log().sum(dim=1)

    def tilted(self, centre: Tensor) -> Tensor:
        """Return the factor of the word features ``[t, t x t]``."""
        covariance = self.covariance
        shift = (covariance @ centre[:, :, None])[:, :, 0]
        quadratic = 0.5 * covariance.flatten(1)
        return torch.cat([self.mean - shift, quadratic], dim=1)

    def square(self, vectors: Tensor) -> Tensor:
        r"""Return :math:`v^\top\Sigma v` per document, float64."""
        return (self.factor.mT @ vectors[:, :, None]).double().square().sum(dim=(1, 2))

    def halfway(self, other: Gaussians) -> FullGaussians:
        """Return these means with the average of both precision matrices."""
        assert isinstance(other, FullGaussians)
        inverses = [torch.cholesky_inverse(q.factor) for q in (self, other)]
        covariance = torch.linalg.inv(0.5 * (inverses[0] + inverses[1]))
        return FullGaussians(self.mean, torch.linalg.cholesky(covariance))

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return means and covariances, for users."""
        return {
            "mean": self.mean.cpu().numpy(),
            "covariance": self.covariance.cpu().numpy(),
        }


class Full(CovarianceFamily):
    """One covariance matrix per document.

    The bound is nearly the evidence. In 100 dimensions inference takes 20 times as long
    as with diagonal covariances (:mod:`docsigma.estep.full`), and longer in more.
    Training needs a table of K (K + 1) numbers per word, so it is for few components.
    """

    def constant(self, n: int, k: int, variance: float, like: Tensor) -> Gaussians:
        """Return n posteriors with mean zero and the same variance."""
        unit = torch.eye(k, dtype=like.dtype, device=like.device)
        factor = (variance**0.5 * unit).expand(n, k, k).contiguous()
        return FullGaussians(like.new_zeros(n, k), factor)

    def word_features(self, loadings: Tensor) -> Tensor:
        """Return ``[t, t x t]``."""
        squares = loadings[:, :, None] * loadings[:, None, :]
        return torch.cat([loadings, squares.flatten(1)], dim=1)

    def spread(self, moments: SoftmaxMoments, n_components: int) -> Tensor:
        """Return the covariance of t under the tilted words, (n, K, K)."""
        assert moments.first is not None
        k = n_components
        first = moments.first[:, :k]
        second = moments.first[:, k : k + k * k].view(-1, k, k)
        return second - first[:, :, None] * first[:, None, :]

    def from_diagonal(self, information: Tensor) -> Tensor:
        """Return diagonal matrices."""
        return torch.diag_embed(information)

    def with_information(
        self, mean: Tensor, prior: PriorTensors, information: Tensor
    ) -> Gaussians:
        """Return posteriors whose precision is the prior's plus `information`."""
        _, factor = safe_precision(mean, prior, information)
        covariance = torch.cholesky_inverse(factor)
        return FullGaussians(mean, torch.linalg.cholesky(covariance))

    def widen(self, q: DiagonalGaussians) -> Gaussians:
        """Return diagonal posteriors as full ones."""
        return FullGaussians(q.mean, torch.diag_embed(q.log_std.exp()))


def safe_precision(
    mean: Tensor, prior: PriorTensors, information: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the prior's precision plus `information`, and its Cholesky factor.

    Rounding may make the information in some direction slightly negative; such a
    document keeps only the diagonal of its information.
    """
    own = prior.matrix(mean)
    precision = own + 0.5 * (information + information.mT)
    factor, failed = torch.linalg.cholesky_ex(precision)
    if bool(failed.any()):
        diagonal = information.diagonal(dim1=1, dim2=2).clamp(min=0)
        safe = own + torch.diag_embed(diagonal)
        wrong = (failed > 0)[:, None, None]
        precision = torch.where(wrong, safe, precision)
        factor = torch.where(wrong, torch.linalg.cholesky(safe), factor)
    return precision, factor
