"""The documents under way in the Newton loop, and one step of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.estep.curvature import WordCurvature
from docsigma.kernels.precision import rounding_of
from docsigma.objective import document_bound, kl_divergence

if TYPE_CHECKING:
    from docsigma.estep.anderson import Anderson
    from docsigma.estep.newton import Evaluator, Lse
    from docsigma.likelihoods import DocumentLikelihood
    from docsigma.objective import LseTerms
    from docsigma.posteriors import Gaussians


@dataclass(frozen=True)
class Iterate:
    """What is moved: a posterior, and the centre of its bound."""

    q: Gaussians
    centre: Tensor

    def towards(self, other: Iterate, step: Tensor) -> Iterate:
        """Return the point a part `step` of the way to `other`."""
        centre = self.centre + step * (other.centre - self.centre)
        return Iterate(self.q.towards(other.q, step), centre)

    def where(self, condition: Tensor, other: Iterate) -> Iterate:
        """Return this point where `condition` holds, else `other`."""
        centre = torch.where(condition, self.centre, other.centre)
        return Iterate(self.q.where(condition, other.q), centre)

    def __getitem__(self, rows: Tensor) -> Iterate:
        return Iterate(self.q[rows], self.centre[rows])

    def vector(self) -> Tensor:
        """Return all numbers of a document in one row."""
        tensors = [t.flatten(1) for t in self.q.tensors().values()]
        return torch.cat([*tensors, self.centre], dim=1)

    def scale(self, root: Tensor) -> Tensor:
        """Return the units of :meth:`vector`, for roots of precisions (n, K)."""
        n, k = root.shape
        spread = root.new_ones(n, self.vector().shape[1] - 2 * k)
        return torch.cat([root, spread, 1 / root], dim=1)

    def moved(self, step: Tensor) -> Iterate:
        """Return the point at `vector() + step`."""
        moved, tensors = self.vector() + step, {}
        for name, tensor in self.q.tensors().items():
            size = tensor[0].numel()
            tensors[name] = moved[:, :size].view_as(tensor)
            moved = moved[:, size:]
        return Iterate(self.q.like(tensors), moved)


@dataclass
class State:
    """Documents under way: the best point so far, and the next to evaluate."""

    likelihood: DocumentLikelihood
    words: Evaluator
    index: Tensor
    open: Tensor
    stuck: Tensor
    # What the next answer counts beside the ones before: less than one where it was
    # nearly done, so that answers do not jump where rounding decides that.
    weight: Tensor
    # The bound at `current`, and the gradient of its mean there.
    value: Tensor
    gradient: Tensor
    # Part of the way from `current` to `proposal` to evaluate next.
    step_size: Tensor
    # Tokens times the trace of the covariance of t, and that of the document's words.
    trace: Tensor
    own_trace: Tensor
    current: Iterate
    proposal: Iterate
    # The plain step, where `proposal` is an extrapolated one that may fail.
    plain: Iterate | None = None
    memory: Anderson | None = None
    curvature: WordCurvature | None = None

    @classmethod
    def start_at(
        cls,
        likelihood: DocumentLikelihood,
        words: Evaluator,
        q: Gaussians,
        own_trace: Tensor,
    ) -> State:
        """Begin at given posteriors."""
        counts, projected = likelihood.counts, likelihood.projected
        n, device = len(counts), projected.device
        tokens = counts.n_tokens[:, None]
        at = Iterate(q, words.basis.mean.expand_as(q.mean))
        return cls(
            likelihood=likelihood,
            words=words,
            index=torch.arange(n, device=device),
            open=torch.ones(n, dtype=torch.bool, device=device),
            stuck=torch.zeros(n, dtype=torch.bool, device=device),
            weight=torch.ones_like(tokens),
            value=torch.full((n,), -math.inf, dtype=torch.float64, device=device),
            gradient=torch.zeros_like(projected),
            step_size=torch.ones_like(tokens),
            trace=torch.zeros_like(tokens),
            own_trace=own_trace,
            current=at,
            proposal=at,
        )

    @classmethod
    def begin(cls, likelihood: DocumentLikelihood, words: Evaluator) -> State:
        """Begin at the prior's mean, one Newton step ahead."""
        model, family, basis = words.model, words.family, words.basis
        counts, projected = likelihood.counts, likelihood.projected
        tokens = counts.n_tokens[:, None]
        squares = counts.project(words.squares)
        own = squares - projected * projected / tokens.clamp(min=1)
        own = own.clamp_(min=0)
        # Between the corpus's spread and the document's own.
        information = 0.5 * own + 0.5 * tokens * basis.variance
        start = model.prior.start(projected)
        q = family.with_information(
            start, model.prior, family.from_diagonal(information)
        )
        state = cls.start_at(likelihood, words, q, own.sum(dim=1, keepdim=True))
        state.trace = information.sum(dim=1, keepdim=True)
        # At w = 0 the probabilities are the uni-gram: the first step needs no pass.
        gradient = projected - tokens * basis.mean
        step = words.settings.damping * state._newton(gradient)
        state.proposal = Iterate(
            q.with_mean(start + state._reachable(step)), state.current.centre
        )
        if words.frequent is not None:
            for _ in range(words.settings.frequent_steps):
                state.step(0.0, words.frequent)
            # The bound over frequent words is not comparable with the whole.
            state.value = torch.full_like(state.value, -math.inf)
            state.stuck = torch.zeros_like(state.stuck)
            state.weight = torch.ones_like(state.weight)
        return state

    def _newton(self, gradient: Tensor) -> Tensor:
        self.curvature = WordCurvature(
            self.likelihood.counts,
            self.likelihood.loadings,
            self.words.basis,
            self.words.model.prior,
            self.likelihood.projected,
            self.own_trace,
            self.trace,
        )
        return self.curvature.solve(gradient)

    def _reachable(self, step: Tensor) -> Tensor:
        longest = step.abs().amax(dim=1, keepdim=True)
        reach = self.words.settings.reach * self.words.model.prior.scale
        shorter: Tensor = step * (reach / longest).clamp(max=1.0)
        return shorter

    def step(self, tol: float, expected_lse: Lse | None = None) -> Tensor:
        """Evaluate the next point; return which documents are done."""
        prior = self.words.model.prior
        trial = self.current.towards(self.proposal, self.step_size)
        lse = (expected_lse or self.words.expected_lse)(trial.q, trial.centre)
        terms = self.likelihood.at(trial.q.mean, lse.value)
        value = document_bound(terms.value, kl_divergence(trial.q, prior))
        effective = terms.tokens[:, None]
        gradient = terms.linear_gradient - effective * lse.gradient
        gradient = gradient - prior.penalty_gradient(trial.q.mean)
        rose = self._rose(trial, value, gradient)
        self._shorten(rose)

        target = self._target(trial, lse, effective)
        precision = target.precision
        trace = (precision - prior.diagonal).sum(dim=1, keepdim=True)
        self.trace = torch.where(rose[:, None], trace, self.trace)
        newton = self._newton(gradient)
        move = self._reachable(self._length(trial, gradient) * newton)
        proposal = Iterate(target.with_mean(trial.q.mean + move), lse.first)

        size = (newton.square() * precision).mean(dim=1).sqrt()
        change = (target.log_precision - trial.q.log_precision).square()
        # The centre is weighted by what it could gain; it lags one pass.
        away = (lse.first - trial.centre).square() * effective / precision
        change = change + self.words.settings.centre_weight * away
        self._accept(trial, value, gradient, proposal, precision, rose)
        to_go = torch.maximum(size, change.mean(dim=1).sqrt())
        # Extrapolated steps come and go: with them, a document is done or is not.
        ramp = 0.0 if self.memory is not None else self.words.settings.ramp * tol
        ramp = max(ramp, torch.finfo(to_go.dtype).tiny)
        weight = torch.where(rose, ((to_go - tol) / ramp).clamp(0, 1), 1.0)
        self.weight = torch.minimum(self.weight, weight[:, None])
        return rose & (to_go < tol)

    def answer(self) -> Gaussians:
        """Return the posteriors as they stand.

        The covariance that is stationary at the current point is a step ahead of the
        current one, and documents that are nearly done get the small step of their mean
        too: neither needs a pass. Extrapolated points may mislead: from them on means
        stay, and only documents that are nearly done get the covariance.
        """
        ahead = self.proposal.q if self.plain is None else self.plain.q
        near, current = self.weight < 1, self.current.q
        best = ahead.with_mean(current.mean)
        if self.memory is None:
            return ahead.where(near, best)
        return best.where(near, current)

    def _rose(self, trial: Iterate, value: Tensor, gradient: Tensor) -> Tensor:
        """Return whose bound is higher at `trial`, whatever the rounding.

        A bound of thousands of nats does not tell a change of a thousandth: rounding,
        and with it the documents beside, would decide. The slopes at both ends of the
        step do tell: to the second order the bound rises by the mean of the two.
        """
        tokens = self.likelihood.counts.n_tokens.double()
        rounding = rounding_of(gradient) * tokens
        gained = value - self.value
        if self.memory is not None:
            # Extrapolated steps move more than the mean: only the bound can tell.
            return gained >= -rounding
        moved = trial.q.mean - self.current.q.mean
        before = (self.gradient * moved).sum(dim=1)
        after = (gradient * moved).sum(dim=1)
        settings = self.words.settings
        unclear = (settings.unclear * before.double()).clamp(0, settings.most_unclear)
        unclear = unclear + settings.rounding * rounding
        # From nowhere, as at the first pass, everything is a gain.
        return (gained > unclear) | ((gained >= -unclear) & (after >= -before))

    def _shorten(self, rose: Tensor) -> None:
        """Halve the steps of documents whose bound fell."""
        column = rose[:, None]
        if self.plain is not None:
            # A failed extrapolation falls back to the plain step.
            failed = ~column & (self.step_size == 1.0)
            self.proposal = self.plain.where(failed, self.proposal)
        self.step_size = torch.where(column, 1.0, 0.5 * self.step_size)
        shortest = self.words.settings.shortest_step
        self.stuck = ~rose & (self.step_size[:, 0] < shortest)

    def _target(self, trial: Iterate, lse: LseTerms, tokens: Tensor) -> Gaussians:
        """Return the covariances that are stationary at these probabilities."""
        family, spread = self.words.family, lse.spread
        if self.memory is not None:
            # An extrapolated centre may be off: this is the derivative at any centre.
            spread = spread + family.from_diagonal((lse.first - trial.centre).square())
        weight = tokens if spread.ndim == 2 else tokens[:, :, None]
        return family.with_information(
            trial.q.mean, self.words.model.prior, weight * spread
        )

    def _accept(
        self,
        trial: Iterate,
        value: Tensor,
        gradient: Tensor,
        proposal: Iterate,
        precision: Tensor,
        rose: Tensor,
    ) -> None:
        """Go on from `trial` where the bound rose."""
        better = rose[:, None]
        self.current = trial.where(better, self.current)
        self.gradient = torch.where(better, gradient, self.gradient)
        self.value = torch.where(rose, value, self.value)
        if self.memory is not None:
            before = proposal if self.plain is None else self.plain
            self.plain = proposal.where(better, before)
            # In standard deviations, for the least squares to weigh alike.
            scale = trial.scale(precision.sqrt())
            point = trial.vector()
            step = scale * (proposal.vector() - point)
            step = self.memory.extrapolate(scale * point, step, rose)
            proposal = trial.moved(step / scale)
        self.proposal = proposal.where(better, self.proposal)

    def _length(self, trial: Iterate, gradient: Tensor) -> Tensor:
        """Return the part of a Newton step to go, from the curvature just seen."""
        assert self.curvature is not None
        settings = self.words.settings
        moved = trial.q.mean - self.current.q.mean
        bend = (moved * (self.gradient - gradient)).sum(dim=1, keepdim=True)
        expected = (moved * self.curvature.times(moved)).sum(dim=1, keepdim=True)
        known = (bend > 0) & (self.value > -math.inf)[:, None]
        ratio: Tensor = expected / torch.where(known, bend, 1.0)
        ratio = ratio.clamp(settings.shortest_length, settings.longest_length)
        return torch.where(known, settings.caution * ratio, settings.damping)

    def compact(self) -> State:
        """Keep the documents under way only."""
        keep = self.open
        kept = {
            field.name: getattr(self, field.name)[keep]
            for field in fields(self)
            if field.name not in ("likelihood", "words", "curvature")
            and getattr(self, field.name) is not None
        }
        likelihood = self.likelihood.select(torch.nonzero(keep)[:, 0])
        return replace(self, likelihood=likelihood, curvature=None, **kept)
