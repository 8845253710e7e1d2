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
    Then all are scaled so that **their mean stays at** :math:`1/\lambda`: words and
    embeddings can trade their scale, T for T/c and w for c w, which leaves the
    likelihood as it is and lowers the penalty on T. A scale that is learned would run
    away; only the shape says something of the documents.

    Parameters
    ----------
    precision : float, default=10.0
        :math:`\lambda`, the inverse of the mean variance.
    pseudo_documents : float, default=100.0
        What the hyper-prior is worth. A corpus of fewer documents stays near the
        isotropic prior.

    Attributes
    ----------
    variance_ : array of shape (n_components,)
        What was learned; absent before.

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
