"""The bound in the Newton loop: its value, gradient and curvature."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from docsigma.estep.curvature import LoadingsBasis, WordCurvature
from docsigma.kernels import SoftmaxWords
from docsigma.objective import ExpectedLse, document_bound, kl_divergence

if TYPE_CHECKING:
    from collections.abc import Callable

    from docsigma.covariances import CovarianceFamily, Gaussians
    from docsigma.estep.curvature import Curvature
    from docsigma.estep.settings import NewtonSettings
    from docsigma.estep.state import State
    from docsigma.likelihoods import DocumentLikelihood
    from docsigma.objective import LseTerms, Model
    from docsigma.priors import PriorTensors

    Lse = Callable[[Gaussians, Tensor, Tensor | None], LseTerms]


class Evaluation(NamedTuple):
    """The bound of some documents at one point each."""

    value: Tensor  # (n,), float64
    gradient: Tensor  # (n, K): in the mean
    information: Tensor  # n Cov(t) in the family's form
    first: Tensor  # (n, K): the expected loading
    centre: Tensor  # (n, L K): where the bounds on the log-sum-exp are best centred
    tokens: Tensor  # (n, 1): sums of the effective counts


class Evaluator:
    """The deterministic bound under the words of one model."""

    def __init__(
        self, model: Model, family: CovarianceFamily, settings: NewtonSettings
    ) -> None:
        self.model, self.family, self.settings = model, family, settings
        self.basis = LoadingsBasis(model.loadings, model.bias, model.prior, model.views)
        self.expected_lse: Lse = ExpectedLse(model, family)
        self.frequent: Lse | None = None
        # On a GPU passes over fewer words save nothing: kernel launches take the time.
        if len(model.bias) >= settings.large_vocabulary and model.bias.is_cpu:
            self.frequent = _frequent(self.expected_lse, settings.frequent_part)

    @cached_property
    def squares(self) -> Tensor:
        """Squares of the loadings."""
        return self.model.loadings * self.model.loadings

    def evaluate(
        self,
        likelihood: DocumentLikelihood,
        q: Gaussians,
        centre: Tensor,
        prior: PriorTensors,
        *,
        frequent: bool = False,
    ) -> Evaluation:
        """Evaluate the bound at `q`, over all words or the frequent ones.

        `prior` is that of these documents, whose means may differ.
        """
        expected_lse = self.expected_lse
        if frequent:
            assert self.frequent is not None
            expected_lse = self.frequent
        lse = expected_lse(q, centre, likelihood.counts.shares)
        terms = likelihood.at(q.mean, lse.value)
        tokens = terms.tokens[:, None]
        gradient = terms.linear_gradient - tokens * lse.first
        weight = tokens if lse.spread.ndim == 2 else tokens[:, :, None]
        return Evaluation(
            document_bound(terms.value, kl_divergence(q, prior)),
            gradient - prior.penalty_gradient(q.mean),
            weight * lse.spread,
            lse.first,
            lse.centre,
            tokens,
        )

    def curvature(self, state: State, target: Gaussians) -> Curvature:  # noqa: ARG002
        """Return the matrix of a Newton step, without a pass over the words."""
        return WordCurvature(
            state.likelihood.counts,
            state.likelihood.loadings,
            self.basis,
            state.prior,
            state.likelihood.projected,
            state.own_trace,
            state.trace,
            self.settings.own_part,
        )


def _frequent(whole: ExpectedLse, part: int) -> ExpectedLse:
    """Return the bound over frequent words, with the rest merged into one."""
    some = copy.copy(whole)
    some.words = [_merged(words, part) for words in whole.words]
    return some


def _merged(words: SoftmaxWords, part: int) -> SoftmaxWords:
    features, bias = words.loadings, words.bias
    order = bias.argsort(descending=True, stable=True)
    frequent, rare = order.tensor_split([len(order) // part])
    mean = bias[rare].double().softmax(dim=0) @ features[rare].double()
    together = bias[rare].logsumexp(dim=0, keepdim=True)
    return SoftmaxWords(
        torch.cat([features[frequent], mean[None].to(features)]),
        torch.cat([bias[frequent], together]),
    )
