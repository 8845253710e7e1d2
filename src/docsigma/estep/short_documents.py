"""Documents of a few words, finished on the paper's own bound where that pays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.estep import newton
from docsigma.estep.curvature import LoadingsBasis, own_trace
from docsigma.estep.settings import RefineSettings
from docsigma.objective import SampledLse, document_bound, kl_divergence
from docsigma.random import Stream, antithetic_normals, generator

if TYPE_CHECKING:
    from docsigma.covariances import Gaussians
    from docsigma.kernels import CountTensor
    from docsigma.likelihoods import DocumentLikelihood
    from docsigma.objective import Model


def looseness(counts: CountTensor, words: newton.Evaluator, q: Gaussians) -> Tensor:
    r"""Return about how many nats draws could gain per document.

    The deterministic bound is exact to the second order. What it leaves is, to the
    next, :math:`\tfrac N4\,\mathrm{tr}(\Sigma C \Sigma C)` with the covariance C of the
    loadings, taken to have the shape of the corpus's. Posteriors can move to gain it
    where few directions make it up: where many do, as in a model of 100 dimensions, it
    is nearly the same for all posteriors, and draws add more noise than they find. So
    the number is weighed by the concentration
    :math:`\mathrm{tr}(\Sigma C\Sigma C) / \mathrm{tr}(\Sigma C)^2`, one over the number
    of directions.
    """
    variance, covariance = q.variance, words.basis.covariance
    information = q.precision - words.model.prior.diagonal
    tokens = counts.n_tokens.clamp(min=1)
    trace = (variance * information).sum(dim=1).clamp(min=0) / tokens
    shared = (variance * words.basis.variance).sum(dim=1)
    crossed = ((variance @ covariance.square()) * variance).sum(dim=1)
    tiny = torch.finfo(variance.dtype).tiny
    concentration = crossed / shared.square().clamp(min=tiny)
    return 0.25 * tokens * (concentration * trace).square()


def refine(
    counts: CountTensor,
    model: Model,
    words: newton.Evaluator,
    found: newton.Inferred,
    settings: RefineSettings | None = None,
) -> None:
    """Raise the Monte-Carlo bound of short documents, in place, where it is loose.

    With few tokens a posterior is nearly as wide as the prior, and a bound that is
    exact to the second order may be loose. The same Newton loop then goes on with fixed
    antithetic draws. What is better on other draws is kept, document by document: none
    gets worse, and the draws being always the same, none depends on a seed or on its
    neighbours. All of it is float64: a comparison that rounding decides would make them
    depend.
    """
    settings = settings or RefineSettings()
    few, tokens = words.settings.few_tokens, counts.n_tokens
    if not words.family.diagonal or found.posterior.is_point:
        return
    short = torch.nonzero((tokens > 0) & (tokens <= few))[:, 0]
    if not len(short):
        return
    candidates = counts.select(short)
    promise = looseness(candidates, words, found.posterior[short]).double().cpu()
    rows = short.cpu()
    worth = promise > settings.worth_trying * found.bound[rows].abs()
    rows = rows[worth | ~found.converged[rows]]
    if not len(rows):
        return
    double = model.to(torch.empty(0, dtype=torch.float64, device=model.loadings.device))
    refiner = _Refiner(double, words, settings)
    for n_draws in settings.n_draws:
        unsure = []
        for some in torch.split(rows, max(1, settings.points // n_draws)):
            block = counts.like(double.bias, some.numpy())
            where = some.to(tokens.device)
            q, again = refiner.run(block, found.posterior[where], n_draws)
            found.posterior[where] = q
            unsure.append(some[again.cpu()])
        rows = torch.cat(unsure)
        if not len(rows):
            return


class _Refiner:
    def __init__(
        self, model: Model, words: newton.Evaluator, settings: RefineSettings
    ) -> None:
        self.model = model
        self.family = words.family
        # Extrapolation would follow the noise of the draws, and so would slopes.
        plain = replace(
            words.settings, patience=settings.max_iter + 1, most_unclear=0.0
        )
        self.settings, self.plain = settings, plain
        self.basis = LoadingsBasis(model.loadings, model.bias, model.prior)
        self.norms = model.loadings.square().sum(dim=1)

    def run(
        self, counts: CountTensor, found: Gaussians, n_draws: int
    ) -> tuple[Gaussians, Tensor]:
        """Climb; return the better posteriors, and where the draws were too few."""
        model, settings = self.model, self.settings
        climbing, checking = (
            SampledLse(model, self._noise(stream, n_draws))
            for stream in (Stream.CLIMB, Stream.CHECK)
        )
        likelihood = model.likelihood.bind(counts, model.loadings, model.bias)
        n, k = found.mean.shape
        found = found.like({a: b.double() for a, b in found.tensors().items()})
        nothing = torch.zeros(n, k).to(model.bias)
        prior = self.family.with_information(
            model.prior.start(nothing), model.prior, self.family.from_diagonal(nothing)
        )
        better = self._value(likelihood, prior, climbing) > self._value(
            likelihood, found, climbing
        )
        start = prior.where(better[:, None], found)
        words = newton.Evaluator(
            model, self.family, self.plain, self.basis, expected_lse=climbing
        )
        trace = own_trace(counts, self.norms, likelihood.projected)
        state = newton.State.start_at(likelihood, words, start, trace)
        reached = newton.Inferred.before(start[torch.arange(n)])
        newton.climb(state, torch.arange(n), reached, settings.max_iter, 0.03)
        best = reached.posterior
        before, after = (self._value(likelihood, q, checking) for q in (found, best))
        gained = after - before > settings.worth_keeping * before.abs()
        value = self._value(likelihood, best, climbing)
        unsure = (value - after).abs() > settings.noise * after.abs()
        return best.where(gained[:, None], found), unsure

    def _noise(self, stream: Stream, n_draws: int) -> Tensor:
        source = generator(0, stream, n_draws)
        k = self.model.n_components
        return antithetic_normals(n_draws, k, source, self.model.bias)[None]

    def _value(
        self, likelihood: DocumentLikelihood, q: Gaussians, lse: SampledLse
    ) -> Tensor:
        value = likelihood.value(q.mean, lse(q, q.mean).value)
        return document_bound(value, kl_divergence(q, self.model.prior))
