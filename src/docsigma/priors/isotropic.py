"""The paper's prior."""

from __future__ import annotations

from docsigma.posterior import GaussianPrior
from docsigma.priors._base import Prior


class IsotropicPrior(Prior):
    r"""The paper's prior :math:`p(w) = N(0, I/\lambda)` (its equation 1).

    Parameters
    ----------
    precision : float, default=10.0
        :math:`\lambda`, the inverse of the variance in each dimension.

    Examples
    --------
    >>> IsotropicPrior(10.0).gaussian(n_components=3)
    GaussianPrior(3 components, isotropic precision 10)
    """

    def __init__(self, precision: float = 10.0) -> None:
        self.precision = precision

    def gaussian(self, n_components: int) -> GaussianPrior:
        """Return the mean and the precision for embeddings of that size."""
        return GaussianPrior.isotropic(self.precision, n_components)
