"""What users get of a document: its Gaussian, and the prior it was made under."""

from __future__ import annotations

from docsigma.posterior.gaussian_posterior import GaussianPosterior
from docsigma.posterior.gaussian_prior import GaussianPrior

__all__ = ["GaussianPosterior", "GaussianPrior"]
