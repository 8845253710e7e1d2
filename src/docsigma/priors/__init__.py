"""What an embedding is before a word is read: :math:`p(w)`."""

from __future__ import annotations

from docsigma.priors._base import Prior, PriorTensors
from docsigma.priors.isotropic import IsotropicPrior

__all__ = ["PRIORS", "IsotropicPrior", "Prior", "PriorTensors"]

PRIORS: dict[str, type[Prior]] = {"isotropic": IsotropicPrior}
