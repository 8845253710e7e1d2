"""Covariances that are no diagonals: a few Newton steps from the diagonal optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.covariances import Diagonal, DiagonalGaussians
from docsigma.covariances.full import safe_precision
from docsigma.estep.newton import Inferred, infer
from docsigma.estep.settings import FullSettings
from docsigma.kernels import SoftmaxWords, Workspace, second_moments, softmax_moments
from docsigma.objective import document_bound, kl_divergence
from docsigma.random import Stream, antithetic_normals, generator

if TYPE_CHECKING:
    from docsigma.covariances import Full, Gaussians
    from docsigma.kernels import CountTensor
    from docsigma.likelihoods import DocumentLikelihood
    from docsigma.objective import Model
    from docsigma.priors import PriorTensors


def infer_full(
    counts: CountTensor,
    model: Model,
    family: Full,
    *,
    max_iter: int = 200,
    tol: float = 0.04,
    settings: FullSettings | None = None,
) -> Inferred:
    r"""Maximise the bound of each document over full covariances.

    The bound is :func:`~docsigma.objective.document_bound` with the expectation over q
    taken as the mean over R fixed antithetic draws. By the theorems of Bonnet and Price
    its optimum obeys

    .. math::
        \Sigma^{-1} = \Lambda + E_q[n\,\mathrm{Cov}_\theta(t)], \qquad
        E_q[cT - n E_\theta[t]] = \Lambda(\nu - m_0)

    (for a likelihood that is not linear, the first equation leaves out how the
    effective counts c change with w). Documents start at the diagonal optimum
    (:func:`~docsigma.estep.infer`). A step evaluates the right side of the first
    equation, H, moves the mean by :math:`H^{-1}` times the gradient, and makes a
    posterior of H as the family does. It is kept where the bound rises, else halved:
    on these draws no document is worse than with a diagonal. Two or three steps do.

    The draws are the same for every document, so that an answer depends on the
    document and the model only.

    Parameters
    ----------
    counts : CountTensor
        The documents.
    model : Model
        Words, likelihood and prior.
    family : Full
        The full family, or another that is made from its matrices.
    max_iter : int, default=200
        Passes over all words at the most, to the diagonal optimum and from there.
    tol : float, default=0.04
        A document is done when the next step would move its mean by less than `tol`
        standard deviations, and the last one changed the precisions of the dimensions
        by less than `tol` of themselves, both in the root mean square.
    settings : FullSettings, default=None
        How many draws, and how many documents at once.

    Returns
    -------
    Inferred
    """
    settings = settings or FullSettings()
    start = infer(counts, model, Diagonal(), max_iter=max_iter, tol=tol)
    assert isinstance(start.posterior, DiagonalGaussians)
    found = Inferred(
        family.widen(start.posterior), start.n_iter, start.converged, start.bound
    )
    words = _Words(model, settings.draws(model.n_components))
    rows = torch.arange(len(counts))
    size = settings.rows(model.loadings, len(words.noise))
    for some in torch.split(rows, size):
        device_rows = some.to(model.bias.device)
        block = counts if len(some) == len(counts) else counts.select(device_rows)
        likelihood = model.likelihood.bind(block, model.loadings, model.bias)
        climb = _Climb(words, likelihood, family, found.posterior[device_rows])
        climb.run(settings, max_iter, tol)
        found.posterior[device_rows] = climb.current.q
        found.bound[some] = climb.current.value.cpu()
        found.n_iter[some] += climb.n_iter.cpu()
        found.converged[some] &= climb.done.cpu()
    return found


@dataclass(frozen=True)
class _Point:
    """Posteriors, and what their draws say of the bound."""

    q: Gaussians
    value: Tensor  # (n,), float64
    gradient: Tensor  # (n, K): of the bound in the mean
    lse: Tensor  # (n, R)
    first: Tensor  # (n, R, K): mean loadings of the words
    tokens: Tensor  # (n, R): sums of the effective counts, divided by R

    def __getitem__(self, rows: Tensor) -> _Point:
        return _Point(*(getattr(self, name)[rows] for name in self.__annotations__))

    def update(self, rows: Tensor, other: _Point, better: Tensor) -> None:
        """Copy those of `other`, which are of `rows`, that are better."""
        for name in self.__annotations__:
            getattr(self, name)[rows[better]] = getattr(other, name)[better]


class _Words:
    """The words of a model, and the draws that posteriors are evaluated at."""

    def __init__(self, model: Model, n_draws: int) -> None:
        self.model = model
        self.words = SoftmaxWords(model.loadings, model.bias)
        self.workspace = Workspace()
        source = generator(0, Stream.CLIMB, n_draws)
        k = model.n_components
        self.noise = antithetic_normals(n_draws, k, source, model.bias)
        # Of centred loadings a covariance is no small difference of large numbers.
        self.centre = model.bias.softmax(dim=0) @ model.loadings
        self.centred = model.loadings - self.centre

    def evaluate(self, likelihood: DocumentLikelihood, q: Gaussians) -> _Point:
        """Evaluate the bound and its gradient at the draws of `q`."""
        model, k = self.model, q.mean.shape[1]
        points = q.points(self.noise[None])
        shape = points.shape[:2]
        flat = points.reshape(-1, k)
        moments = softmax_moments(
            flat, self.words, first=True, workspace=self.workspace
        )
        assert moments.first is not None
        slope = moments.first.view(*shape, k)
        lse = moments.lse.view(shape)
        if model.likelihood.linear:
            terms = likelihood.at(q.mean, lse.double().mean(dim=1))
            value, pull = terms.value, terms.linear_gradient
            tokens = (terms.tokens[:, None] / shape[1]).expand(shape)
        else:
            each = [likelihood.at(points[:, r], lse[:, r]) for r in range(shape[1])]
            value = torch.stack([terms.value for terms in each]).mean(dim=0)
            pull = torch.stack([terms.linear_gradient for terms in each]).mean(dim=0)
            tokens = torch.stack([terms.tokens for terms in each], 1) / shape[1]
        gradient = pull - (tokens[:, None, :] @ slope)[:, 0]
        return _Point(
            q,
            document_bound(value, kl_divergence(q, model.prior)),
            gradient - model.prior.penalty_gradient(q.mean),
            lse,
            slope,
            tokens.clone(),
        )

    def information(self, at: _Point) -> Tensor:
        """Return the mean over draws of n times the covariance of t, (n, K, K)."""
        model = self.model
        second = second_moments(
            at.q.points(self.noise[None]),
            at.lse,
            at.tokens,
            model.loadings,
            model.bias,
            self.centred,
        )
        first = at.first - self.centre
        second -= first.mT @ (at.tokens[:, :, None] * first)
        return second


class _Climb:
    """Documents under way from their diagonal optimum."""

    def __init__(
        self,
        words: _Words,
        likelihood: DocumentLikelihood,
        family: Full,
        start: Gaussians,
    ) -> None:
        self.words, self.likelihood, self.family = words, likelihood, family
        self.current = words.evaluate(likelihood, start)
        self.n_iter = torch.ones_like(self.current.value, dtype=torch.int64)
        self.done = self.n_iter < 0

    def run(self, settings: FullSettings, max_iter: int, tol: float) -> None:
        """Step until every document is done, or cannot rise."""
        for _ in range(min(settings.max_steps, max_iter)):
            rows = torch.nonzero(~self.done)[:, 0]
            if not len(rows):
                return
            self._step(rows, settings, tol)

    def _step(self, rows: Tensor, settings: FullSettings, tol: float) -> None:
        here, prior = self.current[rows], self.words.model.prior
        information = self.words.information(here)
        move, _ = _newton(here, prior, information)
        longest = move.abs().amax(dim=1, keepdim=True)
        move = move * (settings.reach * prior.scale / longest).clamp(max=1.0)
        proposal = self.family.with_information(here.q.mean + move, prior, information)
        change = (proposal.log_precision - here.q.log_precision).square()
        steady = change.mean(dim=1).sqrt() < tol
        falling = self._search(rows, here, proposal, settings.halvings)
        _, size = _newton(self.current[rows], prior, information)
        # Where nothing near by is better, it is as good as these draws can tell.
        self.done[rows] = falling | (steady & (size < tol))

    def _search(
        self, rows: Tensor, here: _Point, proposal: Gaussians, halvings: int
    ) -> Tensor:
        """Go to `proposal`, or part of the way; return where no part of it rises."""
        falling = torch.ones_like(rows, dtype=torch.bool)
        for halving in range(halvings + 1):
            left = torch.nonzero(falling)[:, 0]
            if not len(left):
                break
            some = rows[left]
            whole = len(some) == len(self.done)
            likelihood = self.likelihood if whole else self.likelihood.select(some)
            step = here.gradient.new_full((len(left), 1), 0.5**halving)
            trial = here.q[left].towards(proposal[left], step)
            there = self.words.evaluate(likelihood, trial)
            self.n_iter[some] += 1
            eps = torch.finfo(here.gradient.dtype).eps
            rounding = 8 * eps * likelihood.counts.n_tokens.double()
            better = there.value >= here.value[left] - rounding
            self.current.update(some, there, better)
            falling[left] = ~better
        return falling


def _newton(
    at: _Point, prior: PriorTensors, information: Tensor
) -> tuple[Tensor, Tensor]:
    """Return a Newton step (n, K), and its length in standard deviations (n,)."""
    _, factor = safe_precision(at.q.mean, prior, information)
    step = torch.cholesky_solve(at.gradient[:, :, None], factor)[:, :, 0]
    return step, (step * at.gradient).mean(dim=1).clamp(min=0).sqrt()
