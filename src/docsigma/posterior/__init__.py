"""Documents as Gaussians, with the prior they were inferred under."""

from __future__ import annotations

from docsigma.posterior.gaussian_posterior import GaussianPosterior
from docsigma.posterior.gaussian_prior import GaussianPrior

__all__ = ["GaussianPosterior", "GaussianPrior"]
