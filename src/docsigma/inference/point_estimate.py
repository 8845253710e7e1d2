"""Embeddings of documents as points: the most probable ones under a fixed model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from docsigma.inference.curvature import LoadingsBasis, WordCurvature, own_trace
from docsigma.kernels import SoftmaxWords, Workspace, softmax_moments

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.inference.multinomial import MultinomialCounts
    from docsigma.inference.prior import IsotropicPrior

__all__ = ["infer_point", "penalised_likelihood"]

CHUNK = 4096
# Longest step, in standard deviations of the prior, and the shortest part of one.
FARTHEST, SHORTEST = 3.0, 1.0 / 64


def infer_point(
    counts: MultinomialCounts,
    loadings: Tensor,
    bias: Tensor,
    prior: IsotropicPrior,
    *,
    max_iter: int = 200,
    tol: float = 0.03,
) -> Tensor:
    r"""Maximise :math:`\log p(x|w) - \tfrac\lambda2 w^\top w` for each document.

    Newton steps with the curvature of
    :class:`~docsigma.inference.curvature.WordCurvature`; a step that lowers a
    document's objective is taken back and halved. The objective is concave: there
    is one answer, whatever the start, the neighbours and the order.

    Parameters
    ----------
    counts : MultinomialCounts
        The documents.
    loadings : Tensor of shape (V, K)
        :math:`T`.
    bias : Tensor of shape (V,)
        :math:`m`.
    prior : IsotropicPrior
        Its precision is :math:`\lambda`.
    max_iter : int, default=200
        Sweeps over the words at the most.
    tol : float, default=0.03
        A document is done when the next step, measured by the curvature, is shorter
        than this times the root of K.

    Returns
    -------
    Tensor of shape (n, K)
    """
    words = SoftmaxWords(loadings, bias)
    basis = LoadingsBasis(loadings, bias)
    workspace = Workspace()
    found = loadings.new_zeros(len(counts), loadings.shape[1])
    for start in range(0, len(counts), CHUNK):
        rows = torch.arange(start, min(start + CHUNK, len(counts)))
        under_way = _Points(counts[rows.numpy()], words, basis, prior, workspace)
        for _ in range(max_iter):
            done = under_way.sweep(tol)
            found[rows.to(found.device)] = under_way.best
            if bool(done.all()):
                break
            keep = ~done
            rows = rows[keep.cpu()]
            under_way = under_way.cut(keep)
    return found


def penalised_likelihood(
    counts: MultinomialCounts,
    loadings: Tensor,
    bias: Tensor,
    prior: IsotropicPrior,
    points: Tensor,
) -> Tensor:
    r"""Give :math:`\log p(x|w) - \tfrac\lambda2 w^\top w` of each document, float64."""
    lse = softmax_moments(points, loadings, bias).lse.double()
    value = (counts.project(loadings).double() * points.double()).sum(dim=1)
    value += counts.score(bias).double() - counts.n_tokens.double() * lse
    return value - 0.5 * prior.precision * points.double().square().sum(dim=1)


class _Points:
    """Documents under way: the best point so far and the next step from it."""

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
        loadings = words.loadings
        tokens = counts.n_tokens[:, None]
        self.linear = counts.project(loadings)
        self.own = own_trace(counts, loadings.square().sum(dim=1), self.linear)
        self.best = torch.zeros_like(self.linear)
        self.value = torch.full_like(counts.n_tokens, -torch.inf, dtype=torch.float64)
        self.step = torch.zeros_like(self.linear)
        self.part = torch.ones_like(tokens)

    def sweep(self, tol: float) -> Tensor:
        """Look at the next point; say which documents are done."""
        trial = self.best + self.part * self.step
        tokens = self.counts.n_tokens[:, None]
        moments = softmax_moments(
            trial, self.words, second=True, workspace=self.workspace
        )
        assert moments.first is not None
        assert moments.second is not None
        lam = self.prior.precision
        value = ((self.linear - 0.5 * lam * trial).double() * trial.double()).sum(1)
        value -= self.counts.n_tokens.double() * moments.lse.double()
        rounding = torch.finfo(trial.dtype).eps * self.counts.n_tokens.double() * 8
        better = value >= self.value - rounding
        gradient = self.linear - tokens * moments.first - lam * trial
        spread = (moments.second - moments.first.square()).clamp_(min=0)
        curvature = WordCurvature(
            self.counts,
            self.words.loadings,
            self.basis,
            lam,
            self.linear,
            self.own,
            tokens * spread,
        )
        step = curvature.solve(gradient)
        size = (gradient * step).sum(dim=1).clamp_(min=0).sqrt_()
        reach = FARTHEST * lam**-0.5 / step.abs().amax(dim=1, keepdim=True)
        column = better[:, None]
        self.best = torch.where(column, trial, self.best)
        self.value = torch.where(better, value, self.value)
        self.step = torch.where(column, step * reach.clamp_(max=1.0), self.step)
        self.part = torch.where(column, 1.0, 0.5 * self.part)
        small = size < tol * trial.shape[1] ** 0.5
        done: Tensor = (better & small) | (self.part[:, 0] < SHORTEST)
        return done

    def cut(self, keep: Tensor) -> _Points:
        """Keep the documents under way only."""
        rows = torch.nonzero(keep)[:, 0].cpu().numpy()
        rest = _Points(
            self.counts[rows], self.words, self.basis, self.prior, self.workspace
        )
        for name in ("best", "value", "step", "part"):
            setattr(rest, name, getattr(self, name)[keep])
        return rest
