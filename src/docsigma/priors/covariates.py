"""A prior whose mean depends on covariates of the documents."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from docsigma._array_checks import check_finite
from docsigma.exceptions import InputError
from docsigma.posterior import GaussianPrior
from docsigma.priors._base import Prior, PriorTensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from docsigma.covariances import Gaussians
    from docsigma.kernels import CountTensor
    from docsigma.objective import Model

Array = NDArray[np.float64]


class CovariatePrior(Prior):
    r"""A prior :math:`w_d \sim N(A(c_d - \bar c), I/\lambda)` for covariates c.

    Covariates are numbers known of each document besides its words: who wrote it, and
    when. The weights A say how they move embeddings. :math:`\bar c` is their mean over
    the training documents, so that m stays the log uni-gram. A document without
    covariates has the prior :math:`N(0, I/\lambda + A\,\mathrm{Cov}(c)\,A^\top)`.

    A has a prior too, :math:`N(0, 1/b)` per entry. Training alternates between the
    posteriors of the documents and A given their means (:meth:`sums`). When the words
    are final, every w is integrated out (:meth:`integrate`): documents are then
    Gaussian factors :math:`\exp(h_d^\top w - \tfrac12 w^\top P_d w)`, and with
    :math:`\tilde P_d = (P_d^{-1} + I/\lambda)^{-1}` and
    :math:`\tilde h_d = (I + P_d/\lambda)^{-1} h_d` the posterior of A is Gaussian with

    .. math::
        \text{precision } bI + \sum_d c_d c_d^\top \otimes \tilde P_d, \qquad
        \text{linear term } \sum_d \tilde h_d c_d^\top .

    In mean field, where only :math:`E[w_d]` counts, the documents' variances never
    enter, and intervals are too narrow. The information of documents differs in size
    more than in shape: :math:`P_d = s_d G` with one G for all. In the axes of G the
    posterior of A is one Gaussian per dimension. The bound of a training's history is
    that given A, without its prior.

    Parameters
    ----------
    precision : float, default=10.0
        :math:`\lambda`, of an embedding given its covariates.
    weight_precision : float, default=None
        b. None means :math:`\lambda`: a covariate that changes by one is expected to
        move an embedding about as far as documents with the same covariates differ.

    Attributes
    ----------
    weights_ : array of shape (n_covariates, n_components)
        The posterior mean of A, transposed.
    axes_ : array of shape (n_components, n_components)
        The axes of G, as columns.
    weight_covariance_ : array (n_components, n_covariates, n_covariates)
        Posterior covariance of the weights along each of these axes.
    covariate_mean_, covariate_covariance_ : arrays
        Of the training documents.
    last_move_ : float
        How far the last :meth:`update` moved a weight, in standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from docsigma import BayesianSMM, load_corpus
    >>> counts = load_corpus("synthetic").train.counts
    >>> long = np.asarray(counts.sum(axis=1) > 100, dtype=float)
    >>> smm = BayesianSMM(3, prior="covariates", max_iter=20, random_state=0)
    >>> smm = smm.fit(counts, covariates=long)
    >>> smm.parts_.prior.weights_.shape
    (1, 3)
    >>> smm.posterior(counts, covariates=long).prior
    GaussianPrior(3 components, isotropic precision 10)
    """

    learns: ClassVar[bool] = True
    takes_covariates: ClassVar[bool] = True
    learned: ClassVar[tuple[str, ...]] = (
        *("covariate_mean", "covariate_covariance"),
        *("weights", "axes", "weight_covariance"),
    )

    covariate_mean_: Array
    covariate_covariance_: Array
    weights_: Array
    axes_: Array
    weight_covariance_: Array

    def __init__(
        self, precision: float = 10.0, weight_precision: float | None = None
    ) -> None:
        self.precision = precision
        self.weight_precision = weight_precision

    @property
    def _ridge(self) -> float:
        """The prior precision of an entry of A."""
        given = self.weight_precision
        return float(self.precision if given is None else given)

    def describe(self, covariates: Array) -> None:
        """Note mean and covariance of the training documents' covariates."""
        check_finite("`covariates`", covariates)
        same = np.flatnonzero((covariates == covariates[:1]).all(axis=0))
        if len(same):
            raise InputError(
                f"column {same[0]} of `covariates` is {covariates[0, same[0]]:g} for "
                f"all {len(covariates)} documents, so it cannot explain how they "
                "differ: leave it out"
            )
        self.covariate_mean_ = covariates.mean(axis=0)
        away = covariates - self.covariate_mean_
        self.covariate_covariance_ = away.T @ away / len(covariates)

    def gaussian(self, n_components: int) -> GaussianPrior:
        """Return the prior of a document whose covariates are not known."""
        if not hasattr(self, "weights_"):
            return GaussianPrior.isotropic(self.precision, n_components)
        covariance = self.weights_.T @ self.covariate_covariance_ @ self.weights_
        covariance += np.eye(n_components) / self.precision
        return GaussianPrior(np.zeros(n_components), np.linalg.inv(covariance))

    def given(self, covariates: Array) -> GaussianPrior:
        """Return the prior of documents with these covariates."""
        mean = (covariates - self.covariate_mean_) @ self.weights_
        return GaussianPrior(mean, self.precision)

    def tensors(
        self, n_components: int, like: Tensor, covariates: Tensor | None = None
    ) -> PriorTensors:
        """Return the prior as tensors; with `covariates`, that of these documents."""
        if covariates is None:
            return super().tensors(n_components, like)
        shape = covariates.shape[1], n_components
        weights = torch.from_numpy(getattr(self, "weights_", np.zeros(shape)))
        centre = torch.from_numpy(self.covariate_mean_).to(covariates)
        conditional = GaussianPrior.isotropic(self.precision, n_components)
        return GivenCovariates(conditional, like, covariates - centre, weights.to(like))

    def sums(
        self,
        counts: CountTensor,  # noqa: ARG002
        q: Gaussians,
        model: Model,
    ) -> dict[str, Tensor]:
        """Return the moments of covariates with themselves and the posterior means."""
        assert isinstance(model.prior, GivenCovariates)
        covariates = model.prior.covariates.double()
        return {
            "gram": covariates.t() @ covariates,
            "cross": covariates.t() @ q.mean.double(),
        }

    def update(self, sums: Mapping[str, Tensor]) -> None:
        """Learn A given the means of the documents."""
        gram = sums["gram"].cpu().numpy() * self.precision
        cross = sums["cross"].cpu().numpy() * self.precision
        gram += self._ridge * np.eye(len(gram))
        before = getattr(self, "weights_", np.zeros_like(cross))
        self.weights_ = np.asarray(np.linalg.solve(gram, cross), dtype=np.float64)
        # In standard deviations given the means, which are less than the true ones.
        scale = np.sqrt(np.linalg.inv(gram).diagonal())[:, None]
        self.last_move_ = float((np.abs(self.weights_ - before) / scale).max())

    def set_axes(self, information: Tensor) -> None:
        """Set the axes from the mean information of a token, (K, K)."""
        matrix = information.double().cpu().numpy()
        axes = np.linalg.eigh((matrix + matrix.T) / 2)[1]
        # An axis and its opposite are equivalent: the largest entry becomes positive.
        largest = np.abs(axes).argmax(axis=0)
        self.axes_ = axes * np.sign(axes[largest, np.arange(len(axes))])

    def integrated_sums(
        self, gradient: Tensor, precision: Tensor, mean: Tensor, covariates: Tensor
    ) -> dict[str, Tensor]:
        r"""Return sums over documents with every w integrated out.

        Parameters
        ----------
        gradient : Tensor of shape (n, K)
            Of the log likelihoods at `mean`, along :attr:`axes_`.
        precision : Tensor of shape (n, K)
            :math:`P_d` along the axes.
        mean : Tensor of shape (n, K)
            Along the axes.
        covariates : Tensor of shape (n, P)
            Less their mean.
        """
        share = 1 / (1 + precision / self.precision)
        linear = share * (gradient + precision * mean)
        left = precision * share
        weighted = [
            covariates.t() @ (column[:, None] * covariates) for column in left.t()
        ]
        return {"precision": torch.stack(weighted), "linear": linear.t() @ covariates}

    def integrate(self, sums: Mapping[str, Tensor]) -> None:
        """Set the posterior of A from the totals of :meth:`integrated_sums`."""
        precision, linear = (
            sums[name].cpu().numpy() for name in ("precision", "linear")
        )
        precision = precision + self._ridge * np.eye(precision.shape[1])
        covariance = np.linalg.inv(precision)
        self.weight_covariance_ = (covariance + covariance.transpose(0, 2, 1)) / 2
        along = np.einsum("kpq,kq->kp", self.weight_covariance_, linear)
        self.weights_ = np.ascontiguousarray((self.axes_ @ along).T)


class GivenCovariates(PriorTensors):
    """The prior of documents with covariates: a mean per document.

    Attributes
    ----------
    covariates : Tensor of shape (n, P)
        Less their mean over the training documents.
    """

    def __init__(
        self, gaussian: GaussianPrior, like: Tensor, covariates: Tensor, weights: Tensor
    ) -> None:
        super().__init__(gaussian, like)
        self.covariates, self._weights = covariates, weights

    @property
    def mean(self) -> Tensor:
        """The mean of each document, of shape (n, K)."""
        return self.covariates @ self._weights

    def __getitem__(self, rows: slice | Tensor) -> GivenCovariates:
        """Return the prior of some documents."""
        some = copy.copy(self)
        some.covariates = self.covariates[rows]
        return some
