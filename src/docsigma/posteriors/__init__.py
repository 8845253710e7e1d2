"""Families of :math:`q(w)`: what is known of an embedding after reading.

:class:`~docsigma.posterior.GaussianPosterior` is what users get; these are what the
trainers and the E-step move.
"""

from __future__ import annotations

from docsigma.posteriors._base import Gaussians, PosteriorFamily
from docsigma.posteriors.diagonal import Diagonal, DiagonalGaussians
from docsigma.posteriors.full import Full, FullGaussians
from docsigma.posteriors.low_rank import LowRank, LowRankGaussians
from docsigma.posteriors.point import Point, Points

__all__ = [
    "COVARIANCES",
    "Diagonal",
    "DiagonalGaussians",
    "Full",
    "FullGaussians",
    "Gaussians",
    "LowRank",
    "LowRankGaussians",
    "Point",
    "Points",
    "PosteriorFamily",
]

COVARIANCES: dict[str, type[PosteriorFamily]] = {
    "diagonal": Diagonal,
    "full": Full,
    "low_rank": LowRank,
    "point": Point,
}
