"""The weights of covariates, with every document integrated out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from docsigma.estep.evaluator import Evaluator
from docsigma.estep.settings import NewtonSettings
from docsigma.kernels import SoftmaxWords, softmax_moments
from docsigma.priors import GivenCovariates
from docsigma.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from docsigma.covariances import CovarianceFamily, Gaussians
    from docsigma.kernels import CountTensor
    from docsigma.objective import Model
    from docsigma.priors import CovariatePrior, PriorTensors

# Documents that determine the shape of the information, one matrix (K, K): with more,
# it does not change, and they take a pass over the words.
SHAPE_DOCUMENTS = 1024


def integrate_documents(
    weights: CovariatePrior,
    model: Model,
    family: CovarianceFamily,
    documents: Iterable[tuple[CountTensor, Gaussians, PriorTensors]],
    ranks: Ranks | None = None,
) -> None:
    r"""Set the posterior of the weights A, given posteriors of the documents.

    One pass over the words at each posterior gives the gradient g of the expected log
    likelihood in the mean, and its curvature P. So the document is the Gaussian factor
    :math:`\exp(h^\top w - \tfrac12 w^\top P w)` with :math:`h = g + P\nu`, whatever
    prior it was inferred under.

    Parameters
    ----------
    weights : CovariatePrior
        Changed in place.
    model : Model
        The words.
    family : CovarianceFamily
        Of the posteriors.
    documents : iterable of tuples
        Counts, posteriors and the prior of some documents of this process. There is at
        least one tuple, maybe empty; the shape of the information is that of the first
        process's first one.
    ranks : Ranks, default=None
        The processes that the documents are divided among; None means this one alone.
    """
    ranks = ranks or Ranks()
    words = Evaluator(model, family, NewtonSettings())
    matrix: Tensor | None = None
    totals: dict[str, Tensor] = {}
    for counts, q, prior in documents:
        assert isinstance(prior, GivenCovariates)
        likelihood = model.likelihood.bind(counts, model.loadings, model.bias)
        # Where the bound is best centred if q is its maximum.
        pull = likelihood.projected - prior.penalty_gradient(q.mean)
        tokens = counts.n_tokens[:, None]
        mean = words.basis.means[0]
        centre = torch.where(tokens > 0, pull / tokens.clamp(min=1), mean)
        seen = words.evaluate(likelihood, q, centre, prior)
        if matrix is None:
            matrix = ranks.first(mean_information(model, counts, q, ranks))
            weights.set_axes(matrix)
            axes = torch.from_numpy(weights.axes_).to(matrix)
        gradient = seen.gradient + prior.penalty_gradient(q.mean)
        size = _sizes(seen.information.to(matrix), matrix)
        along = ((axes.t() @ matrix) * axes.t()).sum(dim=1).clamp(min=0)
        found = weights.integrated_sums(
            gradient.to(matrix) @ axes,
            size[:, None] * along,
            q.mean.to(matrix) @ axes,
            prior.covariates.to(matrix),
        )
        for name, value in found.items():
            totals[name] = totals[name] + value if name in totals else value
    weights.integrate({name: ranks.sum(totals[name]) for name in sorted(totals)})


def mean_information(
    model: Model, counts: CountTensor, q: Gaussians, ranks: Ranks
) -> Tensor:
    r"""Return the mean over tokens of :math:`\mathrm{Cov}_\theta(t)`, (K, K), float64.

    By the law of total covariance it is that of all tokens together less that of the
    documents' means, so that no document needs a matrix of its own.
    """
    most = -(-SHAPE_DOCUMENTS // ranks.size)
    if len(counts) > most:
        rows = torch.linspace(0, len(counts) - 1, most, dtype=torch.float64)
        rows = rows.long().to(q.mean.device)
        counts, q = counts.select(rows), q[rows]
    words = SoftmaxWords(model.loadings, model.bias)
    tokens = counts.n_tokens
    moments = softmax_moments(q.mean, words, first=True, weights=tokens)
    assert moments.first is not None
    assert moments.bias_gradient is not None
    # Less one point, so that no small difference of large numbers is lost.
    origin = model.loadings.double().mean(dim=0)
    loadings = model.loadings.double() - origin
    means = moments.first.double() - origin
    matrix = loadings.t() @ (moments.bias_gradient.double()[:, None] * loadings)
    matrix = ranks.sum(matrix - means.t() @ (tokens.double()[:, None] * means))
    n_tokens = ranks.sum(tokens.double().sum())
    return 0.5 * (matrix + matrix.t()) / n_tokens.clamp(min=1)


def _sizes(information: Tensor, matrix: Tensor) -> Tensor:
    """Return the multiples of `matrix` that fit the documents' information best."""
    own = matrix if information.ndim == 3 else matrix.diagonal()
    scale = own.square().sum().clamp(min=torch.finfo(own.dtype).tiny)
    return (information * own).flatten(1).sum(dim=1).clamp(min=0) / scale
