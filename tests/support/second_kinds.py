"""A second kind of each part, as someone else would write one."""

from __future__ import annotations

import numpy as np
import torch

from docsigma.covariances import Full, FullGaussians
from docsigma.loadings import PointLoadings
from docsigma.posterior import GaussianPrior
from docsigma.priors import Prior

__all__ = ["FixedGaussianLoadings", "FullPrior", "LowRank"]


class FullPrior(Prior):
    """A prior with a mean and a full precision."""

    def __init__(self, shift=0.0, correlation=0.0, precision=1.0):
        self.shift = shift
        self.correlation = correlation
        self.precision = precision

    def gaussian(self, n_components):
        off = np.full((n_components, n_components), self.correlation)
        matrix = off + (1 - self.correlation) * np.eye(n_components)
        mean = self.shift * np.arange(1, n_components + 1)
        return GaussianPrior(mean, self.precision * matrix)


class FixedGaussianLoadings(PointLoadings):
    """Means that are learned, with variances that are given."""

    has_variance = True

    def __init__(self, variance=0.05, l2=1.0):
        self.variance = variance
        self.l2 = l2
        self.l1 = 0.0

    def columns(self, loadings):
        return torch.cat([loadings, torch.full_like(loadings, self.variance)], dim=1)

    def second_moment(self, like):
        return torch.zeros_like(like[0])


class LowRank(Full):
    """The diagonal optimum plus the directions that the full one adds most in."""

    def __init__(self, rank=1):
        self.rank = rank

    def with_information(self, mean, prior, information):
        full = super().with_information(mean, prior, information)
        own = 1 / full.precision
        rest = full.covariance - torch.diag_embed(own)
        values, vectors = torch.linalg.eigh(rest)
        values, vectors = values[:, -self.rank :], vectors[:, :, -self.rank :]
        scaled = vectors * values.clamp(min=0)[:, None, :].sqrt()
        covariance = torch.diag_embed(own) + scaled @ scaled.mT
        return FullGaussians(mean, torch.linalg.cholesky(covariance))
