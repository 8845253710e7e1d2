"""Gaussian classes with a full shared covariance, from likelihood factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.classifiers._class_gaussians import WITHIN_STRENGTH, expected_bound
from docsigma.classifiers._marginal_factors import MarginalFactors, blocks

if TYPE_CHECKING:
    from docsigma.classifiers._class_gaussians import ClassGaussians, Membership
    from docsigma.classifiers._likelihood_factors import LikelihoodFactors


@dataclass(frozen=True)
class FullClasses:
    r"""Classes :math:`N(\mu_\ell, \Sigma)` with :math:`\mu_\ell \sim N(m_0, B)`.

    Attributes
    ----------
    means : Tensor of shape (n_classes, K)
    within, between : Tensors of shape (K, K)
        :math:`\Sigma` and :math:`B`.
    centre : Tensor of shape (K,)
        :math:`m_0`.
    target : Tensor of shape (K, K)
        Mode of the inverse Wishart prior of :math:`\Sigma`.
    log_prior : Tensor of shape (n_classes,)
    """

    means: Tensor
    within: Tensor
    between: Tensor
    centre: Tensor
    target: Tensor
    log_prior: Tensor

    @classmethod
    def of(
        cls, diagonal: ClassGaussians, axes: Tensor, prior_variance: Tensor
    ) -> FullClasses:
        """Return classes that were learned along other axes in the old ones."""
        return cls(
            means=diagonal.means @ axes.T,
            within=(axes * diagonal.within) @ axes.T,
            between=(axes * diagonal.between) @ axes.T,
            centre=axes @ diagonal.centre,
            target=torch.diag(diagonal.within_scale * prior_variance),
            log_prior=diagonal.log_prior,
        )

    def log_proba(self, factors: LikelihoodFactors) -> Tensor:
        """Return log probabilities of the classes, documents x classes."""
        scores = [
            MarginalFactors.of(factors[rows], self.within).class_scores(self.means)
            for rows in blocks(factors, self.within)
        ]
        return torch.log_softmax(torch.cat(scores) + self.log_prior, dim=1)


def refine_classes(
    factors: LikelihoodFactors,
    membership: Membership,
    classes: FullClasses,
    *,
    max_iter: int,
    tol: float,
) -> tuple[FullClasses, list[float]]:
    """Raise the posterior density of means and covariance, in turn.

    One pass over the documents moves either the means or the covariance. It ends when
    a pass of both kinds gained less than `tol` per document.
    """
    total = float(membership.labelled.sum() + membership.unlabelled.sum())
    history: list[float] = []
    for step in range(max_iter + 1):
        moved, bound = _pass(factors, membership, classes, means=step % 2 == 0)
        history.append(float(bound + _log_prior(classes, total)) / total)
        gained = len(history) < 3 or history[-1] - history[-3] > tol
        if step == max_iter or not gained:
            break
        classes = moved
    return classes, history


def _log_prior(c: FullClasses, total: float) -> Tensor:
    away = c.means - c.centre
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(c.within))
    square = (away * torch.linalg.solve(c.between, away.T).T).sum()
    spread = (inverse * c.target).sum() + torch.logdet(c.within)
    prior: Tensor = -0.5 * (square + WITHIN_STRENGTH * total * spread)
    return prior


def _pass(
    factors: LikelihoodFactors,
    membership: Membership,
    c: FullClasses,
    *,
    means: bool,
) -> tuple[FullClasses, Tensor]:
    """Return the classes after one step, and the log likelihood before it."""
    n_classes, K = c.means.shape
    gradient = torch.zeros_like(c.means)
    information = c.within.new_zeros(n_classes if means else 1, K, K)
    outer = torch.zeros_like(c.within)
    total = bound = c.within.new_zeros(())
    for rows in blocks(factors, c.within):
        marginal = MarginalFactors.of(factors[rows], c.within)
        scores = marginal.class_scores(c.means) + c.log_prior
        members = membership[rows]
        bound = bound + expected_bound(scores + marginal.constant[:, None], members)
        weights = members.weights(scores)
        total = total + weights.sum()
        flat = marginal.precision.flatten(1)
        if means:
            gradient += weights.T @ marginal.linear
            information += (weights.T @ flat).view_as(information)
            continue
        information += (weights.sum(dim=1) @ flat).view_as(information)
        for label in (weights > 0).any(dim=0).nonzero().flatten().tolist():
            chosen = weights[:, label] > 0
            some = marginal.precision[chosen] @ c.means[label]
            residual = marginal.linear[chosen] - some
            outer += residual.T @ (weights[chosen, label, None] * residual)
    if means:
        pull = torch.linalg.inv(c.between)
        side = gradient + pull @ c.centre
        moved = torch.linalg.solve(information + pull, side)
        return replace(c, means=moved), bound
    expected = total * c.within + c.within @ (outer - information[0]) @ c.within
    strength = WITHIN_STRENGTH * total
    within = (expected + strength * c.target) / (total + strength)
    within = (within + within.T) / 2
    return replace(c, within=within), bound
