"""One pass of the fast solver: what its visits to batches share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from docsigma.inference.curvature import LoadingsBasis, WordCurvature, own_trace
from docsigma.inference.diagonal import DiagonalGaussian
from docsigma.kernels import SoftmaxWords, softmax_moments

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.inference.fast import FastTrainer
    from docsigma.inference.multinomial import MultinomialCounts

__all__ = ["FastStep"]

# Longest step of a posterior's mean, in standard deviations of the prior.
FARTHEST = 2.0
# Step of T against a Newton step, and how much faster than common words rare ones go:
# their gradients are the less noisy.
NEWTON, BOOST, COMMON = 0.7, 5.0, 100.0


class FastStep:
    """One pass of :class:`~docsigma.inference.fast.FastTrainer`: its visits to batches.

    Parameters
    ----------
    trainer : FastTrainer
        Whose posteriors and words move.
    n_words : int
        Words with loadings of their own in this pass.

    Attributes
    ----------
    bound, kl : Tensor
        Sums over the documents visited.
    """

    def __init__(self, trainer: FastTrainer, n_words: int) -> None:
        self.trainer = trainer
        self.n_words = n_words
        like, k = trainer._like, trainer.mean.shape[1]
        self.table = trainer._table[: n_words + 1]
        self.loadings, self.bias = self.table[:n_words, :k], self.table[:n_words, k]
        self.n_tokens = float(trainer.counts.tokens.sum())
        totals = trainer._totals
        self.totals = torch.cat([totals[:n_words], totals[n_words:].sum()[None]])
        self.bound = torch.zeros((), dtype=torch.float64, device=like.device)
        self.kl = torch.zeros_like(self.bound)
        # The linear half of T's gradient, and bounds on its curvature.
        self.pull = like.new_zeros(n_words, k)
        moment = like.new_zeros(k)
        for where, counts in trainer.sweep(n_words):
            mean = trainer.mean[where]
            counts.add_backprojected(mean, self.pull)
            second = mean.square()
            if not trainer.point:
                second += 1 / trainer.precision[where]
            moment += (counts.n_tokens[:, None] * second).sum(dim=0)
        seen = trainer.documents_with(n_words).clamp(min=1.0)[:, None]
        # A word in few documents has few directions: its curvature lies in them.
        self.rows = totals[:n_words, None] * (1 + k / seen) / NEWTON
        self.columns = moment / max(self.n_tokens, 1.0)
        self.boost = (COMMON / seen).sqrt_().clamp_(1.0, BOOST)

    def look_up_basis(self) -> None:
        """Take the words' covariance as it is now."""
        k = self.loadings.shape[1]
        self.basis = LoadingsBasis(self.table[:, :k], self.table[:, k])
        self.norms = self.loadings.square().sum(dim=1)

    def visit(
        self,
        batch: int,
        noise: Tensor,
        damping: float,
        rate: float,
        curved: bool,
    ) -> None:
        """Move the posteriors of a batch of documents, then T and m."""
        trainer, lam = self.trainer, self.trainer.prior.precision
        counts = trainer.batch_counts(batch, self.n_words)
        where = trainer.batch_rows(batch)
        tokens = counts.n_tokens[:, None]
        mean, precision = trainer.mean[where], trainer.precision[where]
        away = precision.rsqrt() * noise
        moments = softmax_moments(
            mean + away,
            SoftmaxWords.of_table(self.table),
            first=True,
            second=curved,
            weights=counts.n_tokens,
            workspace=trainer._workspace,
        )
        assert moments.first is not None
        linear = counts.project(self.loadings)
        # At the prior's own variance the divergence is the penalty of a point.
        spread = torch.full_like(precision, lam) if trainer.point else precision
        kl = DiagonalGaussian(mean, -0.5 * spread.log()).kl(trainer.prior)
        likelihood = (linear.double() * mean.double()).sum(dim=1)
        likelihood += counts.score(self.bias).double()
        rare = (counts.n_tokens - counts.known_tokens) * self.table[-1, -2]
        likelihood += (rare - counts.n_tokens * moments.lse).double()
        self.bound += (likelihood - kl).sum()
        self.kl += kl.sum()

        if curved:
            assert moments.second is not None
            spread = (moments.second - moments.first.square()).clamp_(min=0)
            precision = 0.5 * (precision + lam + tokens * spread)
        curvature = WordCurvature(
            counts,
            self.loadings,
            self.basis,
            lam,
            linear,
            own_trace(counts, self.norms, linear),
            precision - lam,
        )
        gradient = linear - tokens * moments.first - lam * mean
        # The draw moved the gradient by the curvature times `away`: take that back.
        step = damping * (curvature.solve(gradient - lam * away) + away)
        reach = FARTHEST * lam**-0.5 / step.abs().amax(dim=1, keepdim=True)
        moved = step * reach.clamp_(max=1.0)
        trainer.mean[where] = mean + moved
        trainer.precision[where] = precision
        counts.add_backprojected(moved, self.pull)
        self._move_words(counts, moments.loading_gradient, moments.bias_gradient, rate)

    def _move_words(
        self,
        counts: MultinomialCounts,
        push: Tensor | None,
        bias_push: Tensor | None,
        rate: float,
    ) -> None:
        assert push is not None
        assert bias_push is not None
        trainer = self.trainer
        scale = self.n_tokens / counts.n_tokens.sum().clamp(min=1.0)
        trainer._optimizer.ascend(
            self.loadings,
            self.pull,
            rate,
            (self.rows, self.columns),
            self.boost,
            less=(push[: self.n_words], scale),
        )
        if trainer.learn_bias:
            excess = self.totals - scale * bias_push
            trainer._bias_optimizer.ascend(
                self.table[:, -2:-1],
                excess[:, None],
                rate * trainer.prior.precision**-0.5,
            )
