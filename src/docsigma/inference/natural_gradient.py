"""Posteriors of documents under a fixed model, by natural-gradient steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from docsigma.inference.diagonal import DiagonalGaussian
from docsigma.inference.draws import antithetic_normals, generator
from docsigma.kernels import softmax_moments

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.inference.multinomial import MultinomialCounts
    from docsigma.inference.prior import IsotropicPrior

__all__ = ["Inferred", "infer_posterior"]

CHUNK = 2048
# Bounds on the step along the preconditioned gradient, and on its length in units
# of the prior's standard deviation.
SHORTEST, LONGEST, FARTHEST = 0.01, 100.0, 2.0


@dataclass(frozen=True)
class Inferred:
    """Posteriors and how they were reached.

    Attributes
    ----------
    posterior : DiagonalGaussian
        One Gaussian a document.
    n_iter : Tensor of shape (n,)
        Steps each document took.
    converged : Tensor of shape (n,)
        Whether it met the tolerance.
    """

    posterior: DiagonalGaussian
    n_iter: Tensor
    converged: Tensor


def infer_posterior(
    counts: MultinomialCounts,
    loadings: Tensor,
    bias: Tensor,
    prior: IsotropicPrior,
    *,
    seed: int,
    n_draws: int = 8,
    max_iter: int = 100,
    tol: float = 1e-3,
) -> Inferred:
    r"""Maximise each document's bound over the diagonal Gaussians.

    At the optimum the mean's gradient is zero and, by Price's theorem, the
    variance obeys

    .. math::
        1/s^2 = \lambda + N\,E_q[\mathrm{Var}_\theta(t)].

    Both expectations are means over `n_draws` antithetic draws that depend on
    `seed` alone and are the same for every document and every step. So each
    document solves its own deterministic equations: its answer depends on the
    document, the model and the seed, not on its neighbours, their order or number.

    The mean moves along its gradient, preconditioned in the eigenbasis of the
    loadings' uni-gram-weighted covariance (which correlated loadings need) and scaled
    to the document's own curvature, with a step length taken from the last two
    gradients (Barzilai and Borwein, 1988). The family stays diagonal in the model's
    own basis. A document stops when its mean would move by less than `tol` of its
    standard deviation and its variance by less than `tol` of itself.

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
    seed : int
        Decides the draws.
    n_draws : int, default=8
        Draws in each expectation.
    max_iter : int, default=100
        Steps at the most.
    tol : float, default=1e-3
        Tolerance, see above.

    Returns
    -------
    Inferred
    """
    n_documents, n_components = len(counts), loadings.shape[1]
    noise = antithetic_normals(n_draws, n_components, generator(seed), loadings)
    squares = loadings * loadings
    linear = counts.project(loadings)
    own = counts.project(squares)
    own -= linear * linear / counts.n_tokens.clamp(min=1)[:, None]
    values, vectors = _eigenbasis(loadings, bias)
    problem = _Problem(loadings, squares, bias, prior, noise, values, vectors)
    mean = torch.zeros_like(linear)
    precision = torch.full_like(linear, prior.precision)
    n_iter = torch.zeros(n_documents, dtype=torch.int64)
    converged = torch.ones(n_documents, dtype=torch.bool)
    known = torch.nonzero(counts.n_tokens > 0)[:, 0]
    for start in range(0, len(known), CHUNK):
        rows = known[start : start + CHUNK]
        solution = problem.solve(
            linear[rows], own[rows].clamp(min=0), counts.n_tokens[rows], max_iter, tol
        )
        mean[rows], precision[rows] = solution.mean, solution.precision
        n_iter[rows.cpu()] = solution.n_iter.cpu()
        converged[rows.cpu()] = solution.converged.cpu()
    return Inferred(DiagonalGaussian(mean, -0.5 * precision.log()), n_iter, converged)


def _eigenbasis(loadings: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of the loadings' covariance under the uni-gram."""
    unigram = torch.softmax(bias, dim=0)
    centred = loadings - unigram @ loadings
    covariance = centred.t() @ (unigram[:, None] * centred)
    values, vectors = torch.linalg.eigh(covariance.double())
    return values.clamp(min=0).to(loadings), vectors.to(loadings)


@dataclass
class _State:
    """The documents still under way; `index` says which they are."""

    index: Tensor
    linear: Tensor
    own: Tensor
    n_tokens: Tensor
    mean: Tensor
    precision: Tensor
    step: Tensor
    gradient: Tensor

    def __getitem__(self, rows: Tensor) -> _State:
        return _State(*(getattr(self, name)[rows] for name in self.__annotations__))


@dataclass
class _Solution:
    mean: Tensor
    precision: Tensor
    n_iter: Tensor
    converged: Tensor


@dataclass(frozen=True)
class _Problem:
    loadings: Tensor
    squares: Tensor
    bias: Tensor
    prior: IsotropicPrior
    noise: Tensor
    eigenvalues: Tensor
    eigenvectors: Tensor

    def _expectations(self, state: _State) -> tuple[Tensor, Tensor]:
        q = DiagonalGaussian(state.mean, -0.5 * state.precision.log())
        points = q.points(self.noise[None])
        moments = softmax_moments(
            points.flatten(0, 1),
            self.loadings,
            self.bias,
            second=True,
            squared_loadings=self.squares,
        )
        assert moments.first is not None
        assert moments.second is not None
        variance = moments.second - moments.first * moments.first
        first = moments.first.view_as(points).mean(dim=1)
        curvature = variance.view_as(points).mean(dim=1).clamp_(min=0)
        tokens = state.n_tokens[:, None]
        gradient = state.linear - tokens * first - self.prior.precision * state.mean
        return gradient, self.prior.precision + tokens * curvature

    def solve(
        self, linear: Tensor, own: Tensor, n_tokens: Tensor, max_iter: int, tol: float
    ) -> _Solution:
        mean = torch.zeros_like(linear)
        state = _State(
            index=torch.arange(len(linear), device=linear.device),
            linear=linear,
            own=own,
            n_tokens=n_tokens,
            mean=mean,
            precision=self.prior.precision + own,
            step=torch.zeros_like(mean),
            gradient=torch.zeros_like(mean),
        )
        solution = _Solution(
            mean=mean.clone(),
            precision=state.precision.clone(),
            n_iter=torch.zeros_like(state.index),
            converged=torch.zeros_like(state.index, dtype=torch.bool),
        )
        for iteration in range(1, max_iter + 1):
            gradient, target = self._expectations(state)
            moved = (target / state.precision).log().abs().amax(dim=1)
            force = (gradient.abs() * target.rsqrt()).amax(dim=1)
            done = (force < tol) & (moved < tol)
            solution.mean[state.index] = state.mean
            solution.precision[state.index] = target
            solution.n_iter[state.index] = iteration
            solution.converged[state.index] = done
            if bool(done.all()):
                break
            if bool(done.any()):
                alive = ~done
                state, gradient, target = state[alive], gradient[alive], target[alive]
            self._advance(state, gradient, target, iteration)
        return solution

    def _advance(
        self, state: _State, gradient: Tensor, target: Tensor, iteration: int
    ) -> None:
        """Move means and precisions of `state` one step, in place."""
        # Early on the curvature at the mean says little of the curvature on the
        # way; the document's own words give a floor.
        floor = max(0.0, 1.0 - iteration / 5) * (state.own - target).clamp(min=0)
        lam = self.prior.precision
        informed = (target + floor - lam).sum(dim=1, keepdim=True)
        total = self.eigenvalues.sum().clamp(min=torch.finfo(informed.dtype).tiny)
        curvature = lam + informed / total * self.eigenvalues
        length = torch.full_like(informed, 0.5)
        if iteration > 1:
            rotated = state.step @ self.eigenvectors
            along = (rotated * rotated * curvature).sum(dim=1, keepdim=True)
            change = state.gradient - gradient
            bend = (state.step * change).sum(dim=1, keepdim=True)
            length = torch.where(bend > 0, along / bend, length)
            length = length.clamp_(SHORTEST, LONGEST)
        step = (gradient @ self.eigenvectors) * (length / curvature)
        step = step @ self.eigenvectors.t()
        reach = FARTHEST * lam**-0.5 / step.abs().amax(dim=1, keepdim=True)
        state.step = step * reach.clamp_(max=1.0)
        state.mean = state.mean + state.step
        state.precision = target
        state.gradient = gradient
