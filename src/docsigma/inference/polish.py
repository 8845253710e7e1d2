"""Posteriors of very short documents, on the paper's bound itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from docsigma.inference.curvature import LoadingsBasis, WordCurvature, own_trace
from docsigma.inference.diagonal import DiagonalGaussian
from docsigma.inference.draws import antithetic_normals, generator
from docsigma.kernels import SoftmaxWords, Workspace, softmax_moments

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.inference.multinomial import MultinomialCounts
    from docsigma.inference.prior import IsotropicPrior

__all__ = ["polish"]

# Draws to climb on and, apart from them, draws to judge by; both always the same.
# Where the two disagree by more than NOISE of the bound, more are taken.
DRAWS, CLIMB_KEY, JUDGE_KEY, NOISE = (32, 256), 11, 12, 0.01
# Most steps, the shortest part of one, and the gain (of the bound) that ends it.
STEPS, SHORTEST, ENOUGH = 40, 1.0 / 64, 2e-4
# Parts of the bound: looser than the first, or with more than the second to gain by a
# step (of which draws promise a little everywhere), a document has to climb.
LOOSE, FAR = 0.004, 0.03
# A gain on other draws that is no accident.
WORTH = 0.001
# Points at once.
POINTS = 1024


def polish(
    counts: MultinomialCounts,
    loadings: Tensor,
    bias: Tensor,
    prior: IsotropicPrior,
    found: DiagonalGaussian,
    reached: Tensor,
) -> DiagonalGaussian:
    r"""Raise the Monte-Carlo bound from posteriors that another bound gave.

    With few tokens a posterior is nearly as wide as the prior, and a bound that is
    exact to the second order is loose. Steps are natural gradients on fixed
    antithetic draws, :math:`1/s^2` going to :math:`\lambda + N\,
    E_r[\mathrm{Var}_{\theta_r}(t)]`; a step that lowers a document's bound is halved.
    What is better on other draws is kept, document by document: none gets worse, and
    the draws being always the same, none depends on a seed or on its neighbours.
    All of it is float64: a comparison that rounding decides would make them depend.

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
    found : DiagonalGaussian
        Where to start.
    reached : Tensor of shape (n,)
        What the other bound is there, without x . m. Documents where the paper's is
        hardly higher are left as they are, unless a step or even the prior promises
        more.

    Returns
    -------
    DiagonalGaussian
        In float64.
    """
    loadings, bias = loadings.double(), bias.double()
    words, basis = SoftmaxWords(loadings, bias), LoadingsBasis(loadings, bias)
    result = DiagonalGaussian(
        found.mean.to(torch.float64, copy=True),
        found.log_std.to(torch.float64, copy=True),
    )
    workspace = Workspace()
    wanting = []
    for rows in torch.split(torch.arange(len(counts)), POINTS // DRAWS[0]):
        climb = _Climb(counts.like(bias, rows.numpy()), words, basis, prior, workspace)
        start, loose = climb.start(result[rows], reached[rows])
        result.mean[rows], result.log_std[rows] = start.mean, start.log_std
        wanting.append(rows[loose.cpu()])
    noisy = torch.cat(wanting)
    for n_draws in DRAWS:
        again = [noisy[:0]]
        for rows in torch.split(noisy, POINTS // n_draws) if len(noisy) else ():
            some = counts.like(bias, rows.numpy())
            climb = _Climb(some, words, basis, prior, workspace)
            q, unsure = climb.run(result[rows], n_draws)
            result.mean[rows], result.log_std[rows] = q.mean, q.log_std
            again.append(rows[unsure.cpu()])
        noisy = torch.cat(again)
    return result


class _Climb:
    def __init__(
        self,
        counts: MultinomialCounts,
        words: SoftmaxWords,
        basis: LoadingsBasis,
        prior: IsotropicPrior,
        workspace: Workspace,
    ) -> None:
        self.counts, self.words, self.basis = counts, words, basis
        self.prior, self.workspace = prior, workspace
        self.linear = counts.project(words.loadings)
        self.tokens = counts.n_tokens[:, None]
        self.score = counts.score(words.bias)
        norms = words.loadings.square().sum(dim=1)
        self.own = own_trace(counts, norms, self.linear)

    def start(
        self, found: DiagonalGaussian, reached: Tensor
    ) -> tuple[DiagonalGaussian, Tensor]:
        """Give where to climb from, and which documents have to."""
        k = self.linear.shape[1]
        noise = self._draws(CLIMB_KEY, DRAWS[0])
        prior = DiagonalGaussian.constant(
            len(self.counts), k, 1 / self.prior.precision, self.linear
        )
        value, step, precision = self._look(found, noise)
        worse = self._look(prior, noise)[0] > value
        column = worse[:, None]
        start = DiagonalGaussian(
            torch.where(column, prior.mean, found.mean),
            torch.where(column, prior.log_std, found.log_std),
        )
        loose = value - self.score - reached.to(value) > LOOSE * value.abs()
        # What the next step promises: far from a summit even a tight bound is no help.
        away = (precision.log() + 2 * found.log_std).square()
        gain = (0.5 * step.square() * precision + 0.25 * away).sum(dim=1)
        return start, worse | loose | (gain > FAR * value.abs())

    def run(
        self, start: DiagonalGaussian, n_draws: int
    ) -> tuple[DiagonalGaussian, Tensor]:
        """Climb; give the better posterior, and where the draws were too few."""
        noise, judge = (self._draws(key, n_draws) for key in (CLIMB_KEY, JUDGE_KEY))
        best = start
        value, step, precision = self._look(start, noise)
        part = torch.ones_like(self.tokens)
        going = torch.ones_like(value, dtype=torch.bool)
        for _ in range(STEPS):
            goal = self._towards(best, step, precision, part)
            new, new_step, new_precision = self._look(goal, noise)
            rose = going & (new >= value)
            better = rose[:, None]
            going = going & (~rose | (new - value > ENOUGH * value.abs()))
            best = DiagonalGaussian(
                torch.where(better, goal.mean, best.mean),
                torch.where(better, goal.log_std, best.log_std),
            )
            value = torch.where(rose, new, value)
            step = torch.where(better, new_step, step)
            precision = torch.where(better, new_precision, precision)
            part = torch.where(better, (2 * part).clamp(max=1.0), 0.5 * part)
            going = going & (part[:, 0] >= SHORTEST)
            if not bool(going.any()):
                break
        before, after = (self._look(q, judge)[0] for q in (start, best))
        better = (after - before > WORTH * before.abs())[:, None]
        kept = DiagonalGaussian(
            torch.where(better, best.mean, start.mean),
            torch.where(better, best.log_std, start.log_std),
        )
        return kept, (value - after).abs() > NOISE * after.abs()

    def _draws(self, key: int, n_draws: int) -> Tensor:
        k = self.linear.shape[1]
        return antithetic_normals(n_draws, k, generator(key), self.linear)[None]

    @staticmethod
    def _towards(
        q: DiagonalGaussian, step: Tensor, precision: Tensor, part: Tensor
    ) -> DiagonalGaussian:
        log_std = q.log_std + part * (-0.5 * precision.log() - q.log_std)
        return DiagonalGaussian(q.mean + part * step, log_std)

    def _look(
        self, q: DiagonalGaussian, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Give the bound, the natural step of the mean and the precision to go to."""
        n, k = q.mean.shape
        points = q.points(noise).reshape(-1, k)
        moments = softmax_moments(
            points, self.words, second=True, workspace=self.workspace
        )
        assert moments.first is not None
        assert moments.second is not None
        lam = self.prior.precision
        lse = moments.lse.double().view(n, -1).mean(dim=1)
        value = self.score + (self.linear * q.mean).sum(dim=1)
        value = value - self.counts.n_tokens.double() * lse - q.kl(self.prior)
        first = moments.first.view(n, -1, k)
        spread = moments.second.view(n, -1, k) - first.square()
        informed = self.tokens * spread.clamp_(min=0).mean(dim=1)
        gradient = self.linear - self.tokens * first.mean(dim=1) - lam * q.mean
        curvature = WordCurvature(
            self.counts,
            self.words.loadings,
            self.basis,
            lam,
            self.linear,
            self.own,
            informed,
        )
        return value, curvature.solve(gradient), lam + informed
