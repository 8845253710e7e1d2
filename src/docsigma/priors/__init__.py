"""Priors over embeddings: :math:`p(w)`."""

from __future__ import annotations

from docsigma.priors._base import Prior, PriorTensors
from docsigma.priors.covariates import CovariatePrior, GivenCovariates
from docsigma.priors.diagonal import LearnedDiagonalPrior
from docsigma.priors.full import LearnedFullPrior
from docsigma.priors.isotropic import IsotropicPrior

__all__ = [
    "PRIORS",
    "CovariatePrior",
    "GivenCovariates",
    "IsotropicPrior",
    "LearnedDiagonalPrior",
    "LearnedFullPrior",
    "Prior",
    "PriorTensors",
]

PRIORS: dict[str, type[Prior]] = {
    "isotropic": IsotropicPrior,
    "diagonal": LearnedDiagonalPrior,
    "full": LearnedFullPrior,
    "covariates": CovariatePrior,
}
