"""Gaussian classes with a shared covariance, learned from likelihood factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.classifiers._marginal_factors import MarginalFactors

if TYPE_CHECKING:
    from collections.abc import Callable

    from docsigma.classifiers._likelihood_factors import LikelihoodFactors

# Strength of the prior of the within-class variances, relative to the documents: it
# keeps EM at convergence as good as EM stopped early.
WITHIN_STRENGTH = 0.3
# Strength of the prior of the between-class variances, in classes.
BETWEEN_STRENGTH = 20.0
# Share of the prior's variance of embeddings that lies within classes at the start.
WITHIN_SHARE = 0.5
# The scale of the within-class variances at the least, relative to the prior's variance
# of embeddings, where documents count nothing; in proportion where they count in part,
# and at most that share. Tempered documents have less noise than they claim, and EM
# would take what is missing from the classes.
LEAST_WITHIN = 0.7
# The scale of the between-class variances at the most, relative to the prior's variance
# of embeddings: classes cannot lie much farther apart than the prior is wide, and from
# a few labels of short documents they would seem to.
MOST_BETWEEN = 3.0
# Steps with the labelled documents alone, before the others join.
LABELLED_STEPS = 5


@dataclass(frozen=True)
class ClassGaussians:
    r"""Diagonal Gaussian classes, whose means have a Gaussian prior.

    .. math::

        w_d \sim N(\mu_{\ell(d)}, v), \quad \mu_\ell \sim N(m_0, b), \quad
        v_k \sim IG(v_0), \quad b_k \sim IG(b_0).

    The means have Gaussian posteriors :math:`N(M_\ell, V_\ell)`; all else is a point.

    Attributes
    ----------
    means, mean_variances : Tensors of shape (n_classes, K)
        :math:`M` and :math:`V`.
    within, between, centre : Tensors of shape (K,)
        :math:`v`, :math:`b` and :math:`m_0`.
    within_scale, between_scale : Tensors of shape ()
        :math:`v_0` and :math:`b_0`, relative to the prior's variances.
    log_prior : Tensor of shape (n_classes,)
        Of the classes, from labelled documents alone: classes that documents without
        label join would draw more of them.
    """

    means: Tensor
    mean_variances: Tensor
    within: Tensor
    between: Tensor
    centre: Tensor
    within_scale: Tensor
    between_scale: Tensor
    log_prior: Tensor

    @classmethod
    def start(cls, prior_variance: Tensor, log_prior: Tensor) -> ClassGaussians:
        """Return classes that are all alike, before any document is seen."""
        n_classes, one = len(log_prior), prior_variance.new_ones(())
        between = (1 - WITHIN_SHARE) * prior_variance
        return cls(
            means=prior_variance.new_zeros(n_classes, len(prior_variance)),
            mean_variances=between.expand(n_classes, -1),
            within=WITHIN_SHARE * prior_variance,
            between=between,
            centre=torch.zeros_like(prior_variance),
            within_scale=WITHIN_SHARE * one,
            between_scale=(1 - WITHIN_SHARE) * one,
            log_prior=log_prior,
        )

    def log_proba(self, factors: LikelihoodFactors) -> Tensor:
        """Return log probabilities of the classes, documents x classes."""
        scores = MarginalFactors.of(factors, self.within).class_scores(self.means)
        return torch.log_softmax(scores + self.log_prior, dim=1)


@dataclass(frozen=True)
class Membership:
    """Which class each document belongs to, and how much it counts.

    Attributes
    ----------
    labelled : Tensor of shape (n, n_classes)
        Weights of documents in their classes; rows of documents without label are 0.
    unlabelled : Tensor of shape (n,)
        Weights of documents without label, 0 for the rest.
    """

    labelled: Tensor
    unlabelled: Tensor

    def __getitem__(self, rows: Tensor | slice) -> Membership:
        return Membership(self.labelled[rows], self.unlabelled[rows])

    def weights(self, scores: Tensor) -> Tensor:
        """Return weights in the classes; unlabelled documents share by probability."""
        if not self.unlabelled.any():
            return self.labelled
        shares = torch.softmax(scores, dim=1)
        return self.labelled + self.unlabelled[:, None] * shares


@dataclass(frozen=True)
class ClassPrior:
    """What is known of classes before their documents are seen.

    Attributes
    ----------
    variance : Tensor of shape (K,)
        Prior variances of embeddings.
    log_prior_of : callable
        Returns the log priors of classes from the weights of labelled documents.
    least_within : float
        Scale of the within-class variances at the least, relative to `variance`.
    """

    variance: Tensor
    log_prior_of: Callable[[Tensor], Tensor]
    least_within: float = 0.0

    def of_tempered(self, kept: float) -> ClassPrior:
        """Return the prior for documents whose evidence counts this part."""
        least = min(WITHIN_SHARE, LEAST_WITHIN * max(1 - kept, 0.0))
        return replace(self, least_within=least)


def fit_classes(
    factors: LikelihoodFactors,
    membership: Membership,
    prior: ClassPrior,
    *,
    max_iter: int,
    tol: float,
    start: ClassGaussians | None = None,
) -> tuple[ClassGaussians, list[float]]:
    """Raise the variational bound until a step gains less than `tol` per document.

    Without a `start`, labelled documents alone make the first steps: from there the
    others get their first probabilities. The history has the bound per document before
    each step, and after the last.
    """
    if start is None:
        known = membership.labelled.sum(dim=0)
        start = ClassGaussians.start(prior.variance, prior.log_prior_of(known))
        if membership.unlabelled.any():
            rows = membership.labelled.any(dim=1)
            alone = factors[rows], membership[rows], start, prior
            start, _ = _ascend(*alone, max_iter=LABELLED_STEPS, tol=tol)
    return _ascend(factors, membership, start, prior, max_iter=max_iter, tol=tol)


def _ascend(
    factors: LikelihoodFactors,
    membership: Membership,
    classes: ClassGaussians,
    prior: ClassPrior,
    *,
    max_iter: int,
    tol: float,
) -> tuple[ClassGaussians, list[float]]:
    total = float(membership.labelled.sum() + membership.unlabelled.sum())
    history: list[float] = []
    for step in range(max_iter + 1):
        marginal = MarginalFactors.of(factors, classes.within)
        scores = marginal.class_scores(classes.means, classes.mean_variances)
        scores = scores + classes.log_prior
        bound = expected_bound(scores + marginal.constant[:, None], membership)
        bound = bound + _log_prior(classes, prior.variance, total)
        history.append(float(bound) / total)
        gained = len(history) < 2 or history[-1] - history[-2] > tol
        if step == max_iter or not gained:
            break
        classes = _step(classes, marginal, membership.weights(scores), prior)
    return classes, history


def expected_bound(scores: Tensor, membership: Membership) -> Tensor:
    """Return the log likelihood of documents whose scores hold the class priors."""
    known = torch.where(membership.labelled > 0, membership.labelled * scores, 0.0)
    unknown = membership.unlabelled @ torch.logsumexp(scores, dim=1)
    return known.sum() + unknown


def _log_prior(c: ClassGaussians, prior_variance: Tensor, total: float) -> Tensor:
    """Return the log priors of the variances, less the divergence of the means."""
    away = (c.means - c.centre).square() + c.mean_variances
    divergence = (away / c.between - 1).sum() / 2
    divergence = divergence + (c.between / c.mean_variances).log().sum() / 2

    def inverse_gamma(variance: Tensor, scale: Tensor, strength: float) -> Tensor:
        ratio = scale * prior_variance / variance
        return 0.5 * strength * (ratio.log() - ratio).sum()

    within = inverse_gamma(c.within, c.within_scale, WITHIN_STRENGTH * total)
    between = inverse_gamma(c.between, c.between_scale, BETWEEN_STRENGTH)
    return within + between - divergence


def _step(
    c: ClassGaussians,
    marginal: MarginalFactors,
    weights: Tensor,
    prior: ClassPrior,
) -> ClassGaussians:
    """Maximise the bound in the means, the variances, and their scales, in turn."""
    linear, precision = marginal.linear, marginal.precision
    total, n_classes = weights.sum(), weights.shape[1]
    information = weights.T @ precision
    V = 1 / (information + 1 / c.between)
    M = V * (weights.T @ linear + c.centre / c.between)
    centre = M.mean(dim=0)
    spread = ((M - centre).square() + V).sum(dim=0)
    target = BETWEEN_STRENGTH * c.between_scale * prior.variance
    between = (spread + target) / (n_classes + BETWEEN_STRENGTH)
    # Of the documents' residuals from the expected class means, weighted.
    outer = weights.sum(dim=1) @ linear.square()
    outer = outer - 2 * (M * (weights.T @ (linear * precision))).sum(dim=0)
    outer = outer + ((M**2 + V) * (weights.T @ precision.square())).sum(dim=0)
    expected = total * c.within + c.within**2 * (outer - information.sum(dim=0))
    strength = WITHIN_STRENGTH * total
    target = strength * c.within_scale * prior.variance
    within = (expected + target) / (total + strength)
    return replace(
        c,
        means=M,
        mean_variances=V,
        centre=centre,
        between=between,
        within=within,
        within_scale=(1 / (prior.variance / within).mean()).clamp(
            min=prior.least_within
        ),
        between_scale=(1 / (prior.variance / between).mean()).clamp(max=MOST_BETWEEN),
    )
