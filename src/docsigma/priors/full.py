"""A prior whose mean and full precision are learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from docsigma.posterior import GaussianPrior
from docsigma.priors._base import LearnedPrior

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from docsigma.covariances import Gaussians


class LearnedFullPrior(LearnedPrior):
    r"""A prior :math:`N(m_0, C)` whose mean and correlations are learned.

    After each pass :math:`m_0` and :math:`C` are mean and covariance of the documents'
    posteriors together (empirical Bayes), with `pseudo_documents` more of mean zero
    and variance :math:`1/\lambda`. As in :class:`LearnedDiagonalPrior`, and for the
    same reason, **the mean of the variances stays** :math:`1/\lambda`.

    With unpenalised T, a linear map of the embeddings and a shift of m make any such
    prior isotropic: gains can only come from the penalty on T and from diagonal
    posterior covariances.

    Parameters
    ----------
    precision, pseudo_documents : float, default=10.0 and 100.0
        As for :class:`LearnedDiagonalPrior`.

    Attributes
    ----------
    mean_ : array of shape (n_components,)
        :math:`m_0`; absent before training.
    covariance_ : array of shape (n_components, n_components)
        :math:`C`; absent before training.

    Examples
    --------
    >>> from docsigma import BayesianSMM, load_corpus
    >>> counts = load_corpus("synthetic").train.counts
    >>> smm = BayesianSMM(3, prior="full", max_iter=20, random_state=0).fit(counts)
    >>> smm.posterior(counts).prior
    GaussianPrior(3 components, full precision)
    """

    learned: ClassVar[tuple[str, ...]] = ("mean", "covariance")
    mean_: np.ndarray[Any, Any]
    covariance_: np.ndarray[Any, Any]

    def _learned_gaussian(self) -> GaussianPrior:
        return GaussianPrior(self.mean_, np.linalg.inv(self.covariance_))

    def moments(self, q: Gaussians) -> dict[str, Tensor]:
        """Return the sums of means and second moments, and the number of documents."""
        mean = q.mean.double()
        covariance = getattr(q, "covariance", None)
        if covariance is None:
            spread = torch.diag(q.variance.double().sum(dim=0))
        else:
            spread = covariance.double().sum(dim=0)
        return {
            "mean": mean.sum(dim=0),
            "square": mean.t() @ mean + spread,
            "n": torch.tensor(float(len(q)), dtype=torch.float64),
        }

    def update(self, sums: Mapping[str, Tensor]) -> None:
        """Learn the mean and the covariance; the mean variance stays."""
        total, square = (sums[name].cpu().numpy() for name in ("mean", "square"))
        more, mean_variance = self.pseudo_documents, 1 / self.precision
        n = float(sums["n"]) + more
        self.mean_ = total / n
        own = square + more * mean_variance * np.eye(len(total))
        own = own - n * np.outer(self.mean_, self.mean_)
        self.covariance_ = own * (mean_variance / own.diagonal().mean())
