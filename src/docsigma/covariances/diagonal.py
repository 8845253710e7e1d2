"""The diagonal covariance family of the variational posterior."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from docsigma.covariances._base import CovarianceFamily, Gaussians

if TYPE_CHECKING:
    import numpy as np

    from docsigma.kernels import SoftmaxMoments
    from docsigma.priors import PriorTensors


class DiagonalGaussians(Gaussians):
    r"""Posteriors :math:`q(w_d) = N(\nu_d, \mathrm{diag}(\exp 2\varsigma_d))`.

    Parameters
    ----------
    mean : Tensor of shape (n, K)
        :math:`\nu`.
    log_std : Tensor of shape (n, K)
        :math:`\varsigma`.
    precision : Tensor of shape (n, K), default=None
        :math:`\exp(-2\varsigma)`, if already computed.
    """

    names: ClassVar[tuple[str, ...]] = ("mean", "log_std")

    def __init__(
        self, mean: Tensor, log_std: Tensor, precision: Tensor | None = None
    ) -> None:
        self.mean = mean
        self.log_std = log_std
        self._precision = precision

    @classmethod
    def of_precision(cls, mean: Tensor, precision: Tensor) -> DiagonalGaussians:
        """Return posteriors with given precisions."""
        return cls(mean, -0.5 * precision.log(), precision)

    @property
    def family(self) -> Diagonal:
        """The family of these posteriors."""
        return Diagonal()

    @property
    def variance(self) -> Tensor:
        """Variances, of shape (n, K)."""
        return (2 * self.log_std).exp()

    @property
    def precision(self) -> Tensor:
        """Inverse variances, of shape (n, K)."""
        if self._precision is not None:
            return self._precision
        return (-2 * self.log_std).exp()

    @property
    def log_precision(self) -> Tensor:
        """Logarithm of :attr:`precision`."""
        return -2 * self.log_std

    def points(self, noise: Tensor) -> Tensor:
        r"""Re-parametrise: :math:`w_{dr} = \nu_d + \exp(\varsigma_d) \epsilon_{dr}`."""
        return self.mean[:, None, :] + self.log_std.exp()[:, None, :] * noise

    def trace(self, prior: PriorTensors) -> Tensor:
        r"""Return :math:`\mathrm{tr}(\Lambda\Sigma)` per document, float64."""
        scaled = self.variance * prior.diagonal
        return scaled.sum(dim=1, dtype=torch.float64)

    def log_determinant(self) -> Tensor:
        r"""Return :math:`\log|\Sigma|` per document, float64."""
        return 2 * self.log_std.sum(dim=1, dtype=torch.float64)

    def tilted(self, centre: Tensor) -> Tensor:
        """Return the factor of the word features ``[t, t**2]``."""
        variance = self.variance
        return torch.cat([self.mean - variance * centre, 0.5 * variance], dim=1)

    def square(self, vectors: Tensor) -> Tensor:
        r"""Return :math:`v^\top\Sigma v` per document, float64."""
        scaled = self.variance * vectors * vectors
        return scaled.sum(dim=1, dtype=torch.float64)

    def like(self, tensors: dict[str, Tensor]) -> DiagonalGaussians:
        """Return posteriors with other tensors."""
        return DiagonalGaussians(**tensors)

    def with_mean(self, mean: Tensor) -> DiagonalGaussians:
        """Return the same covariances around other means."""
        return DiagonalGaussians(mean, self.log_std, self._precision)

    def __setitem__(self, rows: slice | Tensor, other: Gaussians) -> None:
        self._precision = None
        super().__setitem__(rows, other)

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return means and variances, for users."""
        return {
            "mean": self.mean.cpu().numpy(),
            "variance": self.variance.cpu().numpy(),
        }

    def halfway(self, other: Gaussians) -> DiagonalGaussians:
        """Return these means with the average of both precisions."""
        precision = 0.5 * (self.precision + other.precision)
        return DiagonalGaussians.of_precision(self.mean, precision)

    def gradients(
        self,
        prior: PriorTensors,
        linear_gradient: Tensor,
        tokens: Tensor,
        first: Tensor,
        noise: Tensor,
    ) -> tuple[Tensor, Tensor]:
        r"""Return gradients of the bound in the mean and the log standard deviation.

        .. math::
            \nabla\nu &= \tfrac1R\sum_r (c_r T - n_r E_{\theta_r}[t])
                - \Lambda(\nu - m_0) \\
            \nabla\varsigma &= 1 - \Lambda_{kk} e^{2\varsigma}
                + \tfrac1R\sum_r (c_r T - n_r E_{\theta_r}[t])
                \odot e^{\varsigma} \odot \epsilon_r

        with effective counts c and their sums n; for the multinomial c = x, and these
        are the appendix's two boxed equations (the second there omits :math:`xT`, whose
        noise has mean zero).

        Parameters
        ----------
        prior : PriorTensors
        linear_gradient : Tensor of shape (n, K) or (n, R, K)
            :math:`c T`: one for all draws, or one per draw.
        tokens : Tensor of shape (n,) or (n, R)
            Sums of the effective counts.
        first : Tensor of shape (n, R, K)
            :math:`E_{\theta_r}[t]` at the draws.
        noise : Tensor of shape (n, R, K) or (1, R, K)
            The standard normals of the draws.
        """
        std = self.log_std.exp()
        if linear_gradient.ndim == 2:
            tokens = tokens[:, None]
            slope = linear_gradient - tokens * first.mean(dim=1)
            spread = -tokens * (first * noise).mean(dim=1)
        else:
            slopes = linear_gradient - tokens[..., None] * first
            slope, spread = slopes.mean(dim=1), (slopes * noise).mean(dim=1)
        mean_gradient = slope - prior.penalty_gradient(self.mean)
        log_std_gradient = 1.0 - prior.diagonal * std * std + spread * std
        return mean_gradient, log_std_gradient


class Diagonal(CovarianceFamily):
    """One variance per document and dimension, as in the paper."""

    diagonal: ClassVar[bool] = True

    def constant(
        self, n: int, k: int, variance: float, like: Tensor
    ) -> DiagonalGaussians:
        """Return n posteriors with mean zero and one variance, the paper's start."""
        mean = like.new_zeros(n, k)
        return DiagonalGaussians(mean, mean.new_full((n, k), 0.5 * math.log(variance)))

    def word_features(self, loadings: Tensor) -> Tensor:
        """Return ``[t, t**2]``."""
        return torch.cat([loadings, loadings * loadings], dim=1)

    def spread(self, moments: SoftmaxMoments, n_components: int) -> Tensor:
        """Return the variance of t under the tilted words, (n, K)."""
        assert moments.first is not None
        first = moments.first[:, :n_components]
        second = moments.first[:, n_components : 2 * n_components]
        return (second - first * first).clamp_(min=0)

    def with_information(
        self, mean: Tensor, prior: PriorTensors, information: Tensor
    ) -> DiagonalGaussians:
        """Return posteriors whose precision is the prior's plus `information`."""
        return DiagonalGaussians.of_precision(mean, prior.diagonal + information)
