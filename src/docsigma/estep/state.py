"""The documents in the Newton loop, and one step of all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.kernels.rounding import relative_rounding

if TYPE_CHECKING:
    from docsigma.covariances import Gaussians
    from docsigma.estep.anderson import Anderson
    from docsigma.estep.curvature import Curvature
    from docsigma.estep.evaluator import Evaluation, Evaluator
    from docsigma.likelihoods import DocumentLikelihood
    from docsigma.priors import PriorTensors


@dataclass(frozen=True)
class Iterate:
    """A point of the iteration: a posterior, and the centre of its bound."""

    q: Gaussians
    centre: Tensor

    def towards(self, other: Iterate, step: Tensor) -> Iterate:
        """Return the point a fraction `step` of the way to `other`."""
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
        n_views = self.centre.shape[1] // k
        spread = root.new_ones(n, self.vector().shape[1] - (1 + n_views) * k)
        return torch.cat([root, spread, *[1 / root] * n_views], dim=1)

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
    """The documents in the loop: the best point so far, and the next to evaluate."""

    likelihood: DocumentLikelihood
    words: Evaluator
    # That of these documents, whose means may differ.
    prior: PriorTensors
    index: Tensor
    open: Tensor
    stuck: Tensor
    # Weight of the next answer relative to the previous ones: less than one if the
    # document was nearly done, so that answers do not jump when rounding decides that.
    weight: Tensor
    # The bound at `current`, and the gradient of its mean there.
    value: Tensor
    gradient: Tensor
    # Fraction of the way from `current` to `proposal` to evaluate next.
    step_size: Tensor
    # Tokens times the trace of the covariance of t, and that of the document's words.
    trace: Tensor
    own_trace: Tensor
    # How far rounding may move the mean, in standard deviations.
    blur: Tensor
    current: Iterate
    proposal: Iterate
    # The plain step, if `proposal` is an extrapolated one, which may fail.
    plain: Iterate | None = None
    memory: Anderson | None = None
    curvature: Curvature | None = None

    @classmethod
    def start_at(
        cls,
        likelihood: DocumentLikelihood,
        words: Evaluator,
        prior: PriorTensors,
        q: Gaussians,
        own_trace: Tensor,
    ) -> State:
        """Begin at given posteriors."""
        counts, projected = likelihood.counts, likelihood.projected
        n, device = len(counts), projected.device
        tokens = counts.n_tokens[:, None]
        at = Iterate(q, words.basis.means.flatten().expand(n, -1))
        return cls(
            likelihood=likelihood,
            words=words,
            prior=prior,
            index=torch.arange(n, device=device),
            open=torch.ones(n, dtype=torch.bool, device=device),
            stuck=torch.zeros(n, dtype=torch.bool, device=device),
            weight=torch.ones_like(tokens),
            value=torch.full((n,), -math.inf, dtype=torch.float64, device=device),
            gradient=torch.zeros_like(projected),
            step_size=torch.ones_like(tokens),
            trace=torch.zeros_like(tokens),
            own_trace=own_trace,
            blur=torch.zeros_like(tokens[:, 0]),
            current=at,
            proposal=at,
        )

    @classmethod
    def begin(
        cls, likelihood: DocumentLikelihood, words: Evaluator, prior: PriorTensors
    ) -> State:
        """Begin at the prior's mean, one Newton step ahead."""
        family, basis = words.family, words.basis
        counts, projected = likelihood.counts, likelihood.projected
        tokens = counts.n_tokens[:, None]
        squares = counts.project(words.squares)
        own = squares - projected * projected / tokens.clamp(min=1)
        own = own.clamp_(min=0)
        # The mean of the corpus's spread and the document's own.
        information = 0.5 * own + 0.5 * tokens * basis.variance
        start = prior.start(projected)
        q = family.with_information(start, prior, family.from_diagonal(information))
        own_trace = own.sum(dim=1, keepdim=True)
        state = cls.start_at(likelihood, words, prior, q, own_trace)
        state.trace = information.sum(dim=1, keepdim=True)
        # At w = 0 the probabilities are the uni-gram: the first step needs no pass.
        gradient = projected - basis.expected(counts)
        state.curvature = words.curvature(state, q)
        step = words.settings.damping * state.curvature.solve(gradient)
        state.proposal = Iterate(
            q.with_mean(start + state._reachable(step)), state.current.centre
        )
        if words.frequent is not None:
            for _ in range(words.settings.frequent_steps):
                state.step(0.0, frequent=True)
            # The bound over frequent words is not comparable with that over all.
            state.value = torch.full_like(state.value, -math.inf)
            state.stuck = torch.zeros_like(state.stuck)
            state.weight = torch.ones_like(state.weight)
        return state

    def _reachable(self, step: Tensor) -> Tensor:
        longest = step.abs().amax(dim=1, keepdim=True)
        reach = self.words.settings.reach * self.prior.scale
        shorter: Tensor = step * (reach / longest).clamp(max=1.0)
        return shorter

    def step(self, tol: float, *, frequent: bool = False) -> Tensor:
        """Evaluate the next point; return which documents are done."""
        words, prior = self.words, self.prior
        trial = self.current.towards(self.proposal, self.step_size)
        seen = words.evaluate(
            self.likelihood, trial.q, trial.centre, prior, frequent=frequent
        )
        rose = self._rose(trial, seen)
        self._shorten(rose)

        target = self._target(trial, seen)
        precision = target.precision
        trace = (precision - prior.diagonal).sum(dim=1, keepdim=True)
        self.trace = torch.where(rose[:, None], trace, self.trace)
        self.curvature = words.curvature(self, target)
        newton = self.curvature.solve(seen.gradient)
        move = self._reachable(self._length(trial, seen.gradient) * newton)
        proposal = Iterate(target.with_mean(trial.q.mean + move), seen.centre)

        size = self.curvature.size(newton, seen.gradient, precision)
        change = (target.log_precision - trial.q.log_precision).square()
        # The centre is weighted by what it could gain; it lags one pass.
        away = self._lag(trial, seen) / precision
        self._accept(trial, seen, proposal, precision, rose)
        to_go = torch.maximum(size, (change + away).mean(dim=1).sqrt())
        # The relative error of a sum of loadings, times N for a gradient.
        moved = (seen.first.square() / precision).mean(dim=1).sqrt()
        self.blur = relative_rounding(precision) * seen.tokens[:, 0] * moved
        # Extrapolated steps vary too much for a gradual transition.
        ramp = 0.0 if self.memory is not None else self.words.settings.ramp * tol
        ramp = max(ramp, torch.finfo(to_go.dtype).tiny)
        weight = torch.where(rose, ((to_go - tol) / ramp).clamp(0, 1), 1.0)
        self.weight = torch.minimum(self.weight, weight[:, None])
        return rose & (to_go < tol)

    def sharp(self, tol: float) -> Tensor:
        """Return which documents rounding moves by less than the tolerance."""
        return self.blur < tol

    def answer(self) -> Gaussians:
        """Return the current posteriors.

        The covariance that is stationary at the current point is a step ahead of the
        current one, and documents that are nearly done get the small step of their mean
        too: neither needs a pass. Extrapolated points may mislead: with them, means
        stay, and only documents that are nearly done get the covariance.
        """
        ahead = self.proposal.q if self.plain is None else self.plain.q
        # A step that was just undone is not the next one.
        near = (self.weight < 1) & (self.step_size == 1)
        current = self.current.q
        best = ahead.with_mean(current.mean)
        if self.memory is None:
            return current.where(self.stuck[:, None], ahead.where(near, best))
        return best.where(near, current)

    def _rose(self, trial: Iterate, seen: Evaluation) -> Tensor:
        """Return which documents have a higher bound at `trial`, in spite of rounding.

        A bound of thousands of nats does not resolve a change of a thousandth:
        rounding, and so the rest of the block, would decide. The slopes at both ends of
        the step do: to the second order the bound rises by the mean of the two.
        """
        tokens = self.likelihood.counts.n_tokens.double()
        rounding = relative_rounding(seen.gradient) * tokens
        gained = seen.value - self.value
        if self.memory is not None:
            # Extrapolated steps move more than the mean: only the bound can decide.
            return gained >= -rounding
        moved = trial.q.mean - self.current.q.mean
        before = (self.gradient * moved).sum(dim=1)
        after = (seen.gradient * moved).sum(dim=1)
        settings = self.words.settings
        unclear = (settings.unclear * before.double()).clamp(0, settings.most_unclear)
        unclear = unclear + settings.rounding * rounding
        # In the first pass, `value` is minus infinity and every bound a gain.
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

    def _target(self, trial: Iterate, seen: Evaluation) -> Gaussians:
        """Return posteriors with the stationary covariances at these probabilities."""
        family, information = self.words.family, seen.information
        if self.memory is not None:
            # An extrapolated centre may be off: this derivative holds at any centre.
            off = self._lag(trial, seen)
            information = information + family.from_diagonal(off)
        return family.with_information(trial.q.mean, self.prior, information)

    def _lag(self, trial: Iterate, seen: Evaluation) -> Tensor:
        """Return tokens times the squared distance of the centre from its best, (n, K).

        With several views, their sum.
        """
        away = (seen.centre - trial.centre).square()
        counts = self.likelihood.counts
        if counts.views is None:
            return away * seen.tokens
        each = away.view(len(away), len(counts.views), -1)
        lag: Tensor = (each * counts.view_tokens[:, :, None]).sum(dim=1)
        return lag

    def _accept(
        self,
        trial: Iterate,
        seen: Evaluation,
        proposal: Iterate,
        precision: Tensor,
        rose: Tensor,
    ) -> None:
        """Continue from `trial` where the bound rose."""
        better = rose[:, None]
        self.current = trial.where(better, self.current)
        self.gradient = torch.where(better, seen.gradient, self.gradient)
        self.value = torch.where(rose, seen.value, self.value)
        if self.memory is not None:
            before = proposal if self.plain is None else self.plain
            self.plain = proposal.where(better, before)
            # In standard deviations, for equal weights in the least squares.
            scale = trial.scale(precision.sqrt())
            point = trial.vector()
            step = scale * (proposal.vector() - point)
            step = self.memory.extrapolate(scale * point, step, rose)
            proposal = trial.moved(step / scale)
        self.proposal = proposal.where(better, self.proposal)

    def _length(self, trial: Iterate, gradient: Tensor) -> Tensor:
        """Return the fraction of a Newton step to take, from the observed curvature."""
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
        """Return the state of the open documents."""
        keep = self.open
        kept = {
            field.name: getattr(self, field.name)[keep]
            for field in fields(self)
            if field.name not in ("likelihood", "words", "curvature")
            and getattr(self, field.name) is not None
        }
        likelihood = self.likelihood.select(torch.nonzero(keep)[:, 0])
        return replace(self, likelihood=likelihood, curvature=None, **kept)
