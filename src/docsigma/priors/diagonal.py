"""A prior whose precision per dimension is learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from docsigma.posterior import GaussianPrior
from docsigma.priors._base import LearnedPrior

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from docsigma.covariances import Gaussians


class LearnedDiagonalPrior(LearnedPrior):
    r"""A prior :math:`N(0, \mathrm{diag}(v))` whose variances are learned.

    After each pass :math:`v_k` is the documents' mean of :math:`E[w_k^2]` (empirical
    Bayes), with `pseudo_documents` more that have the variance :math:`1/\lambda`.
    Then all are scaled so that **their mean stays** :math:`1/\lambda`: replacing T by
    T/c and w by c w does not change the likelihood and lowers the penalty on T, so a
    learned scale would diverge; only the shape is informative.

    Parameters
    ----------
    precision : float, default=10.0
        :math:`\lambda`, the inverse of the mean variance.
    pseudo_documents : float, default=100.0
        Weight of the hyper-prior: with fewer documents the prior stays nearly
        isotropic.

    Attributes
    ----------
    variance_ : array of shape (n_components,)
        The learned variances; absent before training.

    Examples
    --------
    >>> from docsigma import BayesianSMM, load_corpus
    >>> counts = load_corpus("synthetic").train.counts
    >>> smm = BayesianSMM(3, prior="diagonal", max_iter=20, random_state=0).fit(counts)
    >>> variance = 1 / smm.parts_.prior.gaussian(3).precision
    >>> len(set(variance)), round(float(variance.mean()), 6)
    (3, 0.1)
    """

    learned: ClassVar[tuple[str, ...]] = ("variance",)
    variance_: np.ndarray[Any, Any]

    def _learned_gaussian(self) -> GaussianPrior:
        return GaussianPrior(np.zeros(len(self.variance_)), 1 / self.variance_)

    def moments(self, q: Gaussians) -> dict[str, Tensor]:
        """Return the sum of the second moments."""
        square = q.mean.double().square() + q.variance.double()
        return {"square": square.sum(dim=0)}

    def update(self, sums: Mapping[str, Tensor]) -> None:
        """Learn the variances; their mean stays."""
        more, mean_variance = self.pseudo_documents, 1 / self.precision
        square = sums["square"].cpu().numpy() + more * mean_variance
        self.variance_ = square * (mean_variance / square.mean())
