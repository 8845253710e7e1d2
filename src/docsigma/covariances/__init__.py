"""Covariances of :math:`q(w)`: which Gaussians a posterior may be.

:class:`~docsigma.posterior.GaussianPosterior` is what users get; these are what the
trainers and the E-step move.
"""

from __future__ import annotations

from docsigma.covariances._base import CovarianceFamily, Gaussians
from docsigma.covariances.diagonal import Diagonal, DiagonalGaussians
from docsigma.covariances.full import Full, FullGaussians
from docsigma.covariances.point import Point, Points

__all__ = [
    "COVARIANCES",
    "CovarianceFamily",
    "Diagonal",
    "DiagonalGaussians",
    "Full",
    "FullGaussians",
    "Gaussians",
    "Point",
    "Points",
]

COVARIANCES: dict[str, type[CovarianceFamily]] = {
    "diagonal": Diagonal,
    "full": Full,
    "point": Point,
}
