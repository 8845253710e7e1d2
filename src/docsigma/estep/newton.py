"""One safeguarded Newton loop for the posteriors of documents."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.estep.anderson import Anderson
from docsigma.estep.curvature import LoadingsBasis, WordCurvature
from docsigma.estep.exact_newton import ExactNewton, Point
from docsigma.estep.settings import NewtonSettings
from docsigma.kernels import SoftmaxWords
from docsigma.kernels.rounding import relative_rounding
from docsigma.objective import ExpectedLse, document_bound, kl_divergence

if TYPE_CHECKING:
    from collections.abc import Callable

    from docsigma.covariances import CovarianceFamily, Gaussians
    from docsigma.kernels import CountTensor
    from docsigma.likelihoods import DocumentLikelihood
    from docsigma.objective import LseTerms, Model

    Lse = Callable[[Gaussians, Tensor], LseTerms]


@dataclass(frozen=True)
class Inferred:
    r"""Posteriors and how they were reached.

    Attributes
    ----------
    posterior : Gaussians
        One per document.
    n_iter : Tensor of shape (n,)
        Passes over all words that each document took.
    converged : Tensor of shape (n,)
        Whether it met the tolerance.
    bound : Tensor of shape (n,)
        The bound that was maximised, before the last step.
    """

    posterior: Gaussians
    n_iter: Tensor
    converged: Tensor
    bound: Tensor

    @classmethod
    def before(cls, posterior: Gaussians) -> Inferred:
        """Return posteriors before the first pass, to be moved in place."""
        n_iter = torch.zeros(len(posterior), dtype=torch.int64)
        return cls(posterior, n_iter, n_iter > 0, n_iter.double())


def infer(
    counts: CountTensor,
    model: Model,
    family: CovarianceFamily,
    *,
    max_iter: int = 200,
    tol: float = 0.04,
    settings: NewtonSettings | None = None,
    words: Evaluator | None = None,
) -> Inferred:
    r"""Maximise the bound of each document over a family of posteriors.

    The bound is :func:`~docsigma.objective.document_bound` with the deterministic
    :class:`~docsigma.objective.ExpectedLse`. Its stationary points obey

    .. math::
        \Sigma^{-1} = \Lambda + n\,\mathrm{Cov}_{\hat\theta}(t), \qquad
        cT - n E_{\hat\theta}[t] = \Lambda(\nu - m_0)

    with the likelihood's effective counts c and their sum n (the counts and the tokens
    for the multinomial). Means move by Newton steps with the curvature of
    :class:`~docsigma.estep.curvature.WordCurvature`, their length taken from the
    last two gradients; covariances go to where the first equation has them. A step that
    lowers a document's bound is undone and halved; where the bound changes too little
    to tell, the slopes at both ends of the step do.
    Where there are many words, the first steps see the frequent ones, with one word in
    place of all others. Documents that still climb after 40 passes are finished with
    exact second derivatives (:mod:`~docsigma.estep.exact_newton`), where these are
    known: for diagonal covariances, point loadings and a linear likelihood, in up to 32
    dimensions.

    There are no draws: the answer depends on the document and the model, not on a
    seed, on neighbours or on order. Only documents of a handful of tokens whose
    uncertainty lies in few directions are finished on the paper's bound, with draws
    that are always the same (:mod:`~docsigma.estep.short_documents`).

    Parameters
    ----------
    counts : CountTensor
        The documents.
    model : Model
        Words, likelihood and prior.
    family : CovarianceFamily
        Which covariances a posterior may have.
    max_iter : int, default=200
        Passes over all words at the most.
    tol : float, default=0.04
        A document is done with the step that moves its mean by less than `tol`
        standard deviations and its variance by less than `tol` of itself, both in
        the root mean square over the dimensions.
    settings : NewtonSettings, default=None
        How the loop steps.
    words : Evaluator, default=None
        What was made of this model and family before, to save making it again.

    Returns
    -------
    Inferred
    """
    from docsigma.estep.short_documents import refine

    settings = settings or NewtonSettings()
    words = words or Evaluator(model, family, settings)
    n_documents = len(counts)
    q = family.constant(n_documents, model.n_components, 1.0, model.loadings)
    found = Inferred.before(q)
    chunk = settings.gpu_chunk if model.loadings.is_cuda else settings.chunk
    for start in range(0, n_documents, chunk):
        stop = min(start + chunk, n_documents)
        block = counts if stop - start == n_documents else counts[start:stop]
        likelihood = model.likelihood.bind(block, model.loadings, model.bias)
        state = State.begin(likelihood, words)
        climb(state, torch.arange(start, stop), found, max_iter, tol)
    refine(counts, model, words, found)
    return found


class Evaluator:
    """The words of a model as the loop evaluates them."""

    def __init__(
        self,
        model: Model,
        family: CovarianceFamily,
        settings: NewtonSettings,
        basis: LoadingsBasis | None = None,
        expected_lse: Lse | None = None,
    ) -> None:
        self.model, self.family, self.settings = model, family, settings
        self.basis = basis or LoadingsBasis(model.loadings, model.bias, model.prior)
        whole = ExpectedLse(model, family) if expected_lse is None else expected_lse
        self.expected_lse: Lse = whole
        self.frequent: Lse | None = None
        self.twice_differentiable = False
        if not isinstance(whole, ExpectedLse):
            return
        # What `exact_newton` knows: its second derivatives are written for this case.
        self.twice_differentiable = (
            family.diagonal
            and not family.is_point
            and model.likelihood.linear
            and model.n_components <= settings.exact_components
        )
        if len(model.bias) >= settings.large_vocabulary and model.bias.is_cpu:
            self.frequent = _frequent(whole, settings.frequent_part)

    @cached_property
    def squares(self) -> Tensor:
        """Squares of the loadings."""
        return self.model.loadings * self.model.loadings


def _frequent(whole: ExpectedLse, part: int) -> ExpectedLse:
    """Return the bound over frequent words and one that stands for all others."""
    features, bias = whole.words.loadings, whole.words.bias
    order = bias.argsort(descending=True, stable=True)
    frequent, rare = order.tensor_split([len(order) // part])
    mean = bias[rare].double().softmax(dim=0) @ features[rare].double()
    together = bias[rare].logsumexp(dim=0, keepdim=True)
    some = SoftmaxWords(
        torch.cat([features[frequent], mean[None].to(features)]),
        torch.cat([bias[frequent], together]),
    )
    return whole.with_words(some)


def climb(
    state: State, rows: Tensor, found: Inferred, max_iter: int, tol: float
) -> None:
    """Step until every document is done; `rows` says where in `found` they belong."""
    for iteration in range(1, max_iter + 1):
        under_way = state.open
        settings = state.words.settings
        if iteration == settings.patience:
            state.memory = Anderson()
            state.weight = torch.ones_like(state.weight)
        if iteration == settings.exact_from and state.words.twice_differentiable:
            finish(state, rows, found, max_iter - iteration + 1, tol)
            break
        weight = state.weight[under_way]
        done = state.step(tol)
        where = rows[state.index[under_way].cpu()]
        device_rows = where.to(state.value.device)
        answer = state.answer()[under_way]
        found.posterior[device_rows] = found.posterior[device_rows].towards(
            answer, weight
        )
        found.bound[where] = state.value[under_way].cpu()
        found.n_iter[where] = iteration
        found.converged[where] = done[under_way].cpu()
        state.open = under_way & ~done
        if not state.words.twice_differentiable:
            state.open &= ~state.stuck
        alive = int(state.open.sum())
        if alive == 0:
            break
        if alive < settings.alive * len(state.index):
            state = state.compact()


def finish(
    state: State, rows: Tensor, found: Inferred, max_iter: int, tol: float
) -> None:
    """Finish the documents under way by Newton's method in all they depend on."""
    state = state.compact()
    q, centre = state.current.q, state.current.centre
    exact = ExactNewton(state.likelihood, state.words.model)
    start = Point(q.mean.double(), q.variance.double(), centre.double())
    point, n_iter, converged = exact.climb(start, max_iter, tol)
    where = rows[state.index.cpu()]
    found.posterior[where.to(q.mean.device)] = point.q
    found.bound[where] = exact.bound(point).cpu()
    found.n_iter[where] += n_iter.cpu()
    found.converged[where] = converged.cpu()


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
        # A step that was just undone is not the one ahead.
        near = (self.weight < 1) & (self.step_size == 1)
        current = self.current.q
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
        rounding = relative_rounding(gradient) * tokens
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
