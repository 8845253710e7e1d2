"""The diagonal covariance family of the variational posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.inference.prior import IsotropicPrior

__all__ = ["DiagonalGaussian"]


@dataclass
class DiagonalGaussian:
    r"""Posteriors :math:`q(w_d) = N(\nu_d, \mathrm{diag}(\exp 2\varsigma_d))`.

    Parameters
    ----------
    mean : Tensor of shape (n, K)
        :math:`\nu`.
    log_std : Tensor of shape (n, K)
        :math:`\varsigma`.
    """

    mean: Tensor
    log_std: Tensor

    @classmethod
    def constant(
        cls, n: int, k: int, variance: float, like: Tensor
    ) -> DiagonalGaussian:
        """Give n posteriors with mean zero and one variance, as the paper starts."""
        mean = like.new_zeros(n, k)
        return cls(mean, mean.new_full((n, k), 0.5 * math.log(variance)))

    def __getitem__(self, rows: slice | Tensor) -> DiagonalGaussian:
        return DiagonalGaussian(self.mean[rows], self.log_std[rows])

    def points(self, noise: Tensor) -> Tensor:
        r"""Re-parametrise: :math:`w_{dr} = \nu_d + \exp(\varsigma_d) \epsilon_{dr}`.

        Parameters
        ----------
        noise : Tensor of shape (n, R, K) or (1, R, K)
            Standard normal draws.

        Returns
        -------
        Tensor of shape (n, R, K)
        """
        return self.mean[:, None, :] + self.log_std.exp()[:, None, :] * noise

    def kl(self, prior: IsotropicPrior) -> Tensor:
        r"""Kullback-Leibler divergence to the prior, one number a document, float64.

        .. math::
            \tfrac12\bigl[\lambda\,\mathrm{tr}\,\Gamma^{-1} + \log|\Gamma|
            - K\log\lambda + \lambda\,\nu^\top\nu - K\bigr]

        (the paper's equation for :math:`D_{KL}(q\,\|\,p)`).
        """
        lam = prior.precision
        mean, log_std = self.mean.double(), self.log_std.double()
        terms = lam * (2 * log_std).exp() - 2 * log_std + lam * mean * mean
        return 0.5 * (terms - math.log(lam) - 1.0).sum(dim=1)

    def gradients(
        self,
        prior: IsotropicPrior,
        linear: Tensor,
        n_tokens: Tensor,
        first: Tensor,
        noise: Tensor,
    ) -> tuple[Tensor, Tensor]:
        r"""Gradients of the bound in the mean and in the log standard deviation.

        .. math::
            \nabla\nu &= x T - N \tfrac1R\sum_r E_{\theta_r}[t] - \lambda\nu \\
            \nabla\varsigma &= 1 - \lambda e^{2\varsigma}
                - N \tfrac1R\sum_r E_{\theta_r}[t] \odot e^{\varsigma} \odot \epsilon_r

        (the appendix's two boxed equations).

        Parameters
        ----------
        prior : IsotropicPrior
            The prior.
        linear : Tensor of shape (n, K)
            :math:`x T`, the gradient of the linear part of the likelihood.
        n_tokens : Tensor of shape (n,)
            :math:`N`.
        first : Tensor of shape (n, R, K)
            :math:`E_{\theta_r}[t]` at the points drawn.
        noise : Tensor of shape (n, R, K) or (1, R, K)
            The draws that gave the points.

        Returns
        -------
        tuple of two Tensors of shape (n, K)
        """
        lam = prior.precision
        std = self.log_std.exp()
        tokens = n_tokens[:, None]
        mean_gradient = linear - tokens * first.mean(dim=1) - lam * self.mean
        spread = (first * noise).mean(dim=1)
        log_std_gradient = 1.0 - lam * std * std - tokens * spread * std
        return mean_gradient, log_std_gradient
