"""Posteriors of documents under a fixed model, without a single draw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from docsigma.inference.curvature import LoadingsBasis, WordCurvature
from docsigma.inference.diagonal import DiagonalGaussian
from docsigma.inference.polish import polish
from docsigma.kernels import SoftmaxWords, Workspace, softmax_moments

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.inference.multinomial import MultinomialCounts
    from docsigma.inference.prior import IsotropicPrior

__all__ = ["Inferred", "infer_posterior"]

# Documents at once. A GPU wants many: what it starts takes longer than what it does.
CHUNK, GPU_CHUNK = 4096, 2**17
# Part of a Newton step taken while nothing is known of the true curvature, and the
# bounds on it once two gradients have shown it.
DAMPING, LEAST, MOST, CAUTION = 0.8, 0.3, 2.0, 0.9
# Longest step, in standard deviations of the prior.
FARTHEST = 3.0
# A move that lowers the bound is halved up to this.
SHORTEST = 1.0 / 64
# With so few tokens the bound is loose, and the paper's own takes over at the end.
SHORT = 6
# A block is cut down to the documents under way when they are fewer than this part.
ALIVE = 0.7
# Of a vocabulary this large the first sweeps, so many, see the most frequent words, one
# in so many: they hold most of the tokens. Not measured, and not done, on a GPU.
LARGE, HEAD_SWEEPS, HEAD = 2**14, 2, 4


@dataclass(frozen=True)
class Inferred:
    r"""Posteriors and how they were reached.

    Attributes
    ----------
    posterior : DiagonalGaussian
        One Gaussian a document.
    n_iter : Tensor of shape (n,)
        Sweeps over all words each document took.
    converged : Tensor of shape (n,)
        Whether it met the tolerance.
    bound : Tensor of shape (n,)
        The bound that was maximised, at the last sweep; without the counts' own
        part :math:`x\cdot m`.
    """

    posterior: DiagonalGaussian
    n_iter: Tensor
    converged: Tensor
    bound: Tensor


def infer_posterior(
    counts: MultinomialCounts,
    loadings: Tensor,
    bias: Tensor,
    prior: IsotropicPrior,
    *,
    max_iter: int = 200,
    tol: float = 0.03,
) -> Inferred:
    r"""Maximise a deterministic bound of each document over the diagonal Gaussians.

    For any vector :math:`a`, Jensen's inequality bounds the expected log-sum-exp:

    .. math::
        E_q\log\sum_j e^{m_j + t_j w} \le a\cdot\nu +
        \log\sum_j \exp\bigl(m_j + (t_j - a)\nu
        + \tfrac12 \textstyle\sum_k s_k^2 (t_{jk} - a_k)^2\bigr),

    because the part :math:`a\cdot w` can be taken out before it is applied. The best
    :math:`a` is the mean of :math:`t` under the tilted probabilities
    :math:`\hat\theta` that the right side defines: the bound is then exact to the
    second order, where the plain one (:math:`a = 0`) is not. Its stationary points
    obey :math:`1/s^2 = \lambda + N\,\mathrm{Var}_{\hat\theta}(t)` and
    :math:`xT - N E_{\hat\theta}[t] = \lambda\nu`. With loadings ``[t, t**2]`` and
    points ``[nu - s**2 a, s**2 / 2]`` it is the one primitive again.

    Means move by Newton steps with the curvature of
    :class:`~docsigma.inference.curvature.WordCurvature`, their length taken from the
    last two gradients. A move that lowers a document's bound is taken back and
    halved, so no document's bound ever falls. Where there are many words, the start
    comes from two sweeps over the frequent ones, with one word in place of all
    others. There are no draws: the answer
    depends on the document and the model, not on a seed, on neighbours or on order.
    Only documents of a handful of tokens are finished on the paper's bound, with
    draws that are always the same (:func:`~docsigma.inference.polish.polish`).

    Parameters
    ----------
    counts : MultinomialCounts
        The documents.
    loadings : Tensor of shape (V, K)
        :math:`T`.
    bias : Tensor of shape (V,)
        :math:`m`.
    prior : IsotropicPrior
        The prior over embeddings.
    max_iter : int, default=200
        Sweeps over all words at the most.
    tol : float, default=0.03
        A document is done when the next step would move its mean by less than `tol`
        standard deviations and its variance by less than `tol` of itself, both in
        the root mean square over the dimensions.

    Returns
    -------
    Inferred
    """
    model = _Model.of(loadings, bias, prior)
    n_documents, n_components = len(counts), loadings.shape[1]
    mean = loadings.new_empty(n_documents, n_components)
    precision = torch.empty_like(mean)
    n_iter = torch.zeros(n_documents, dtype=torch.int64)
    converged = torch.zeros(n_documents, dtype=torch.bool)
    bound = torch.empty(n_documents, dtype=torch.float64)
    chunk = GPU_CHUNK if loadings.is_cuda else CHUNK
    for start in range(0, n_documents, chunk):
        stop = min(start + chunk, n_documents)
        block = counts if stop - start == n_documents else counts[start:stop]
        state = _State.begin(block, model)
        rows = torch.arange(start, stop)
        for iteration in range(1, max_iter + 1):
            under_way = state.open
            done = state.sweep(tol)
            where = rows[state.index[under_way].cpu()]
            device_rows = where.to(mean.device)
            mean[device_rows] = state.at.mean[under_way]
            precision[device_rows] = state.target[under_way]
            bound[where] = state.value[under_way].cpu()
            n_iter[where] = iteration
            converged[where] = done[under_way].cpu()
            state.open = under_way & ~done & ~state.stuck
            alive = int(state.open.sum())
            if alive == 0:
                break
            if alive < ALIVE * len(state.index):
                state = state.cut()
    q = DiagonalGaussian(mean, -0.5 * precision.log())
    tokens = counts.n_tokens
    short = torch.nonzero((tokens > 0) & (tokens <= SHORT))[:, 0]
    if len(short):
        better = polish(
            counts[short.cpu().numpy()],
            loadings,
            bias,
            prior,
            q[short],
            bound[short.cpu()],
        )
        q.mean[short], q.log_std[short] = better.mean.to(mean), better.log_std.to(mean)
    return Inferred(q, n_iter, converged, bound)


@dataclass(frozen=True)
class _Model:
    loadings: Tensor
    words: SoftmaxWords
    head: SoftmaxWords | None
    basis: LoadingsBasis
    prior: IsotropicPrior
    workspace: Workspace

    @classmethod
    def of(cls, loadings: Tensor, bias: Tensor, prior: IsotropicPrior) -> _Model:
        both = torch.cat([loadings, loadings * loadings], dim=1)
        return cls(
            loadings=loadings,
            words=SoftmaxWords(both, bias),
            head=_head(both, bias) if len(bias) >= LARGE and bias.is_cpu else None,
            basis=LoadingsBasis(loadings, bias),
            prior=prior,
            workspace=Workspace(),
        )


def _head(loadings: Tensor, bias: Tensor) -> SoftmaxWords:
    """Give the frequent words, and one that stands for all others."""
    order = bias.argsort(descending=True, stable=True)
    frequent, rare = order.tensor_split([len(order) // HEAD])
    mean = bias[rare].double().softmax(dim=0) @ loadings[rare].double()
    together = bias[rare].logsumexp(dim=0, keepdim=True)
    return SoftmaxWords(
        torch.cat([loadings[frequent], mean[None].to(loadings)]),
        torch.cat([bias[frequent], together]),
    )


@dataclass(frozen=True)
class _Point:
    """What is moved: mean, log precision and centre a."""

    mean: Tensor
    log_precision: Tensor
    centre: Tensor

    def towards(self, other: _Point, part: Tensor) -> _Point:
        return _Point(
            self.mean + part * (other.mean - self.mean),
            self.log_precision + part * (other.log_precision - self.log_precision),
            self.centre + part * (other.centre - self.centre),
        )

    def where(self, condition: Tensor, other: _Point) -> _Point:
        return _Point(
            torch.where(condition, self.mean, other.mean),
            torch.where(condition, self.log_precision, other.log_precision),
            torch.where(condition, self.centre, other.centre),
        )

    def __getitem__(self, rows: Tensor) -> _Point:
        return _Point(self.mean[rows], self.log_precision[rows], self.centre[rows])


class _State:
    """Documents under way: the best point so far, and the next to look at."""

    FIELDS = ("linear", "own", "open", "value", "part", "gradient", "target", "stuck")

    def __init__(
        self, counts: MultinomialCounts, model: _Model, linear: Tensor, own: Tensor
    ) -> None:
        n = len(counts)
        self.counts = counts
        self.model = model
        self.words = model.words
        self.linear = linear
        self.own = own
        self.index = torch.arange(n, device=linear.device)
        self.open = torch.ones(n, dtype=torch.bool, device=linear.device)
        self.stuck = torch.zeros_like(self.open)
        self.value = torch.full(
            (n,), -math.inf, dtype=torch.float64, device=linear.device
        )
        self.part = torch.ones_like(linear[:, :1])
        self.gradient = torch.zeros_like(linear)
        self.target = torch.full_like(linear, model.prior.precision)
        nowhere = torch.zeros_like(linear)
        self.at = self.goal = _Point(nowhere, nowhere, nowhere)

    @classmethod
    def begin(cls, counts: MultinomialCounts, model: _Model) -> _State:
        loadings, lam, basis = model.loadings, model.prior.precision, model.basis
        tokens = counts.n_tokens[:, None]
        linear = counts.project(loadings)
        squares = counts.project(loadings * loadings)
        own = (squares - linear * linear / tokens.clamp(min=1)).clamp_(min=0)
        state = cls(counts, model, linear, own)
        # Between the corpus's spread and the document's own.
        state.target = lam + 0.5 * own + 0.5 * tokens * basis.variance
        log_precision = state.target.log()
        centre = basis.mean.expand_as(linear)
        state.at = _Point(torch.zeros_like(linear), log_precision, centre)
        # At w = 0 the probabilities are the uni-gram: the first step needs no sweep.
        step = DAMPING * state._newton(linear - tokens * basis.mean)
        state.goal = _Point(state._reachable(step), log_precision, centre)
        if model.head is not None:
            state._approach(model.head)
        return state

    def _approach(self, head: SoftmaxWords) -> None:
        """Take the first steps on frequent words; their bound is not compared."""
        self.words = head
        for _ in range(HEAD_SWEEPS):
            self.sweep(0.0)
        self.words = self.model.words
        self.value = torch.full_like(self.value, -math.inf)
        self.stuck = torch.zeros_like(self.stuck)

    def _newton(self, gradient: Tensor) -> Tensor:
        self.curvature = WordCurvature(
            self.counts,
            self.model.loadings,
            self.model.basis,
            self.model.prior.precision,
            self.linear,
            self.own.sum(dim=1, keepdim=True),
            self.target - self.model.prior.precision,
        )
        return self.curvature.solve(gradient)

    def _reachable(self, step: Tensor) -> Tensor:
        longest = step.abs().amax(dim=1, keepdim=True)
        farthest: float = FARTHEST * self.model.prior.precision**-0.5
        return step * (farthest / longest).clamp(max=1.0)

    def sweep(self, tol: float) -> Tensor:
        """Look at the next point; say which documents are done."""
        trial = self.at.towards(self.goal, self.part)
        value, first, variance = self._look(trial)
        tokens = self.counts.n_tokens[:, None]
        rounding = torch.finfo(first.dtype).eps * self.counts.n_tokens.double() * 8
        better = (value >= self.value - rounding)[:, None]
        halved = torch.where(better, 1.0, 0.5 * self.part)
        self.stuck = ~better[:, 0] & (halved[:, 0] < SHORTEST)

        lam = self.model.prior.precision
        gradient = self.linear - tokens * first - lam * trial.mean
        target = lam + tokens * variance
        self.target = torch.where(better, target, self.target)
        newton = self._newton(gradient)
        length = self._length(trial, gradient)
        move = self._reachable(length * newton)
        goal = _Point(trial.mean + move, target.log(), first)
        size = (newton.square() * target).mean(dim=1).sqrt()
        change = (goal.log_precision - trial.log_precision).square().mean(dim=1).sqrt()
        self.at = trial.where(better, self.at)
        self.goal = goal.where(better, self.goal)
        self.gradient = torch.where(better, gradient, self.gradient)
        self.value = torch.where(better[:, 0], value, self.value)
        self.part = halved
        return better[:, 0] & (size < tol) & (change < tol)

    def _length(self, trial: _Point, gradient: Tensor) -> Tensor:
        """Give the part of a Newton step to take, from the curvature just seen."""
        moved = trial.mean - self.at.mean
        bend = (moved * (self.gradient - gradient)).sum(dim=1, keepdim=True)
        expected = (moved * self.curvature.times(moved)).sum(dim=1, keepdim=True)
        known = (bend > 0) & (self.value > -math.inf)[:, None]
        ratio: Tensor = expected / torch.where(known, bend, 1.0)
        return torch.where(known, CAUTION * ratio.clamp(LEAST, MOST), DAMPING)

    def _look(self, point: _Point) -> tuple[Tensor, Tensor, Tensor]:
        """Give the bound, the tilted mean of t and its variance at a point."""
        mean, centre = point.mean, point.centre
        k = mean.shape[1]
        variance = (-point.log_precision).exp()
        points = torch.cat([mean - variance * centre, 0.5 * variance], dim=1)
        moments = softmax_moments(
            points, self.words, first=True, workspace=self.model.workspace
        )
        assert moments.first is not None
        first, second = moments.first[:, :k], moments.first[:, k:]
        lse = moments.lse.double()
        lse = lse + 0.5 * (variance * centre * centre).double().sum(dim=1)
        q = DiagonalGaussian(mean, -0.5 * point.log_precision)
        value = (self.linear.double() * mean.double()).sum(dim=1)
        value = value - self.counts.n_tokens.double() * lse - q.kl(self.model.prior)
        return value, first, (second - first * first).clamp_(min=0)

    def cut(self) -> _State:
        """Keep the documents under way only."""
        keep = self.open
        rows = torch.nonzero(keep)[:, 0]
        state = _State(
            self.counts.select(rows),
            self.model,
            self.linear[keep],
            self.own[keep],
        )
        for name in self.FIELDS:
            setattr(state, name, getattr(self, name)[keep])
        state.index = self.index[keep]
        state.at, state.goal = self.at[keep], self.goal[keep]
        return state
