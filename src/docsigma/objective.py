r"""The objective, the only place where it is written.

A document's bound on its log evidence, for any Gaussian :math:`q(w) = N(\nu, \Sigma)`,
is what q makes of the likelihood, less its distance from the prior:

.. math::
    \log p(x) \ge E_q[\log p(x|w)] - D_{KL}(q\,\|\,p)

(:func:`document_bound`). A model maximises the sum over documents less the penalty on
its word loadings (:func:`corpus_bound`). Of the likelihood, only the expected
log-sum-exp is hard: :class:`ExpectedLse` bounds it, :class:`SampledLse` averages it
over draws.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from docsigma.kernels import SoftmaxWords, Workspace, softmax_moments

if TYPE_CHECKING:
    from docsigma.kernels import SoftmaxMoments
    from docsigma.likelihoods import Likelihood
    from docsigma.posteriors import Gaussians, PosteriorFamily
    from docsigma.priors import PriorTensors


@dataclass(frozen=True)
class Model:
    r"""What a document's bound depends on, besides the document and its posterior.

    Attributes
    ----------
    columns : Tensor of shape (V, K) or (V, 2 K)
        The loadings T; for loadings with a spread their means and variances side by
        side, :math:`[M, S^2]`, with which the expected logits are
        :math:`m + M w + \tfrac12 S^2 w^2`.
    bias : Tensor of shape (V,)
        The log uni-gram m.
    likelihood : Likelihood
        How counts come about.
    prior : PriorTensors
        The prior over embeddings.
    quadratic : bool
        Whether `columns` has variances.
    """

    columns: Tensor
    bias: Tensor
    likelihood: Likelihood
    prior: PriorTensors
    quadratic: bool = False

    @property
    def n_components(self) -> int:
        """K."""
        return int(self.columns.shape[1]) // (1 + self.quadratic)

    @property
    def loadings(self) -> Tensor:
        """The mean loadings, of shape (V, K)."""
        return self.columns[:, : self.n_components] if self.quadratic else self.columns

    def log_sum_exp(self, points: Tensor) -> Tensor:
        """Return the log-sum-exp of all words at one point per document, (n,)."""
        words = SoftmaxWords(self.columns, self.bias)
        return softmax_moments(augmented(points, self.quadratic), words).lse

    def to(self, like: Tensor) -> Model:
        """Return the model in another dtype or on another device."""
        prior = type(self.prior)(self.prior.gaussian, like)
        columns, bias = self.columns.to(like), self.bias.to(like)
        return Model(columns, bias, self.likelihood, prior, self.quadratic)


def augmented(points: Tensor, quadratic: bool) -> Tensor:
    """Return what multiplies a model's columns: ``w``, or ``[w, w**2 / 2]``."""
    if not quadratic:
        return points
    return torch.cat([points, 0.5 * points * points], dim=1)


def chained(first: Tensor, points: Tensor, quadratic: bool) -> Tensor:
    """Turn the mean of a model's columns into the gradient of the lse in w."""
    if not quadratic:
        return first
    k = points.shape[1]
    return first[:, :k] + first[:, k:] * points


def drawn_spread(moments: SoftmaxMoments, k: int, quadratic: bool) -> Tensor:
    """Return the diagonal of minus the lse's second derivative in w, at points."""
    assert moments.first is not None
    assert moments.second is not None
    first, second = moments.first[:, :k], moments.second[:, :k]
    spread = (second - first * first).clamp_(min=0)
    return spread + moments.first[:, k:] if quadratic else spread


class LseTerms(NamedTuple):
    """An expected log-sum-exp F and its derivatives, per document."""

    value: Tensor  # (n,), float64
    first: Tensor  # (n, K): the mean loading, where the bound is best centred
    gradient: Tensor  # (n, K): of F in the mean of q
    spread: Tensor  # twice the derivative of F in the covariance of q


class ExpectedLse:
    r"""A deterministic upper bound on :math:`F = E_q\log\sum_j e^{m_j + t_j w}`.

    For any vector :math:`a`, Jensen's inequality gives

    .. math::
        F \le a\cdot\nu +
        \log\sum_j \exp\bigl(m_j + (t_j - a)\nu
        + \tfrac12 (t_j - a)^\top\Sigma\,(t_j - a)\bigr),

    because the part :math:`a\cdot w` can be taken out before it is applied. The best
    :math:`a` is the mean of :math:`t` under the tilted probabilities
    :math:`\hat\theta` that the right side defines: the bound is then exact to the
    second order, where the plain one (:math:`a = 0`) is not. Its derivatives are
    :math:`E_{\hat\theta}[t]` in the mean and half of
    :math:`\mathrm{Cov}_{\hat\theta}(t)` in the covariance. With the family's word
    features, ``[t, t**2]`` for a diagonal covariance, it is the one primitive.

    Loadings that have variances add :math:`\tfrac12 S_j^2 E_q[w^2]` to the exponents.
    """

    def __init__(
        self, model: Model, family: PosteriorFamily, workspace: Workspace | None = None
    ) -> None:
        self.family = family
        self.quadratic = model.quadratic
        self.workspace = Workspace() if workspace is None else workspace
        k = model.n_components
        features = family.word_features(model.loadings)
        if model.quadratic:
            features = torch.cat([features, model.columns[:, k:]], dim=1)
        self.words = SoftmaxWords(features, model.bias)

    def with_words(self, words: SoftmaxWords) -> ExpectedLse:
        """Return the same bound over other words, given by their features."""
        other = copy.copy(self)
        other.words = words
        return other

    def __call__(self, q: Gaussians, centre: Tensor) -> LseTerms:
        """Evaluate the bound at posteriors `q`, centred at `centre`."""
        k = q.mean.shape[1]
        inputs = q.tilted(centre)
        if self.quadratic:
            second_moment = q.mean * q.mean + q.variance
            inputs = torch.cat([inputs, 0.5 * second_moment], dim=1)
        moments = softmax_moments(
            inputs,
            self.words,
            first=True,
            second=self.family.second_moments,
            workspace=self.workspace,
        )
        assert moments.first is not None
        first = moments.first[:, :k]
        value = moments.lse.double() + 0.5 * q.square(centre)
        spread = self.family.spread(moments, k)
        if not self.quadratic:
            return LseTerms(value, first, first, spread)
        own = moments.first[:, -k:]
        spread = spread + self.family.from_diagonal(own)
        return LseTerms(value, first, first + own * q.mean, spread)


class SampledLse:
    r"""The mean of log-sum-exp over draws, the paper's equation for F.

    With fixed noise it is a function of q like any other. By Price's theorem its
    derivative in the covariance is :math:`\tfrac12 E_q[\mathrm{Cov}_\theta(t)]`.
    """

    def __init__(self, model: Model, noise: Tensor) -> None:
        self.noise = noise
        self.quadratic = model.quadratic
        self.words = SoftmaxWords(model.columns, model.bias)
        self.workspace = Workspace()

    def __call__(self, q: Gaussians, centre: Tensor) -> LseTerms:  # noqa: ARG002
        """Evaluate the average at posteriors `q`."""
        n, k = q.mean.shape
        points = q.points(self.noise).reshape(-1, k)
        moments = softmax_moments(
            augmented(points, self.quadratic),
            self.words,
            second=True,
            workspace=self.workspace,
        )
        spread = drawn_spread(moments, k, self.quadratic)
        assert moments.first is not None
        slope = chained(moments.first, points, self.quadratic)
        return LseTerms(
            moments.lse.double().view(n, -1).mean(dim=1),
            moments.first[:, :k].view(n, -1, k).mean(dim=1),
            slope.view(n, -1, k).mean(dim=1),
            spread.view(n, -1, k).mean(dim=1),
        )


def kl_divergence(q: Gaussians, prior: PriorTensors) -> Tensor:
    r"""Return the divergence of q from the prior per document, float64.

    .. math::
        D_{KL}(q\,\|\,p) = \tfrac12\bigl[\mathrm{tr}(\Lambda\Sigma)
        + (\nu - m_0)^\top\Lambda(\nu - m_0) - \log|\Lambda\Sigma| - K\bigr]

    For :math:`\Lambda = \lambda I` and :math:`m_0 = 0` this is the paper's. A point has
    no divergence; in its place stands :math:`\tfrac12(w - m_0)^\top\Lambda(w - m_0)`,
    the penalty of its density.
    """
    square = prior.square(q.mean)
    if q.is_point:
        return 0.5 * square
    volume = q.log_determinant() + (prior.log_determinant + q.mean.shape[1])
    return 0.5 * (q.trace(prior) + square - volume)


def log_prior(points: Tensor, prior: PriorTensors) -> Tensor:
    r"""Return :math:`\log p(w) + \tfrac K2 \log 2\pi` at points, float64."""
    return 0.5 * (prior.log_determinant - prior.square(points))


def document_bound(likelihood: Tensor, kl: Tensor) -> Tensor:
    r"""Return :math:`E_q[\log p(x|w)] - D_{KL}(q\,\|\,p)` per document."""
    return likelihood - kl


def penalty(loadings: Tensor, l1: float, l2: float) -> float:
    r"""Return :math:`\omega_1\sum|t| + \tfrac{\omega_2}2\sum t^2`, in float64."""
    total = 0.0
    if l1 > 0:
        total += l1 * float(loadings.abs().sum(dim=0).double().sum())
    if l2 > 0:
        total += 0.5 * l2 * float(loadings.square().sum(dim=0).double().sum())
    return total


def corpus_bound(bound: float, penalty: float) -> float:
    """Return what training maximises: the documents' bounds less the penalty, once."""
    return bound - penalty
