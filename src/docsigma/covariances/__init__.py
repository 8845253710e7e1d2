"""Covariance families of :math:`q(w)`, as trainers and the E-step move them.

Users get a :class:`~docsigma.posterior.GaussianPosterior`.
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
