r"""The objective, the only place where it is written.

For any Gaussian :math:`q(w) = N(\nu, \Sigma)`, the log evidence of a document is at
least the expected log likelihood less the divergence of q from the prior:

.. math::
    \log p(x) \ge E_q[\log p(x|w)] - D_{KL}(q\,\|\,p)

(:func:`document_bound`). A model maximises the sum over documents less the penalty on
its word loadings (:func:`corpus_bound`). Of the likelihood, only the expected
log-sum-exp is hard: :class:`ExpectedLse` bounds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from docsigma.kernels import (
    SoftmaxMoments,
    SoftmaxWords,
    Views,
    Workspace,
    softmax_moments,
)
from docsigma.kernels.views import add_rows, present

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.covariances import CovarianceFamily, Gaussians
    from docsigma.likelihoods import Likelihood
    from docsigma.priors import PriorTensors


class WordSpread(NamedTuple):
    r"""Variances of word loadings, :math:`t_{jk} \sim N(M_{jk}, S_{jk}^2)`.

    Attributes
    ----------
    variance : Tensor of shape (V, K)
        :math:`S^2`.
    second_moment : Tensor of shape (K,)
        :math:`E[w^2]` over the training tokens. Variances add
        :math:`\tfrac12\sum_k S_{jk}^2 w_k^2` to a word's logit; its average is
        subtracted from m, so that the word's probability stays the same.
    """

    variance: Tensor
    second_moment: Tensor


@dataclass(frozen=True)
class Model:
    r"""Words, likelihood and prior: all that the documents' bounds share.

    Attributes
    ----------
    loadings : Tensor of shape (V, K)
        T, or its mean M.
    bias : Tensor of shape (V,)
        The log uni-gram m.
    likelihood : Likelihood
    prior : PriorTensors
    words : WordSpread or None
        The variances of the loadings, if they have any. Posteriors of documents are
        inferred at the means; only the estimator ``predictive`` integrates T out.
    views : Views or None
        The views of a document, if there are several: each has a softmax of its own.
    """

    loadings: Tensor
    bias: Tensor
    likelihood: Likelihood
    prior: PriorTensors
    words: WordSpread | None = None
    views: Views | None = None

    @property
    def n_components(self) -> int:
        """K."""
        return int(self.loadings.shape[1])

    @property
    def ranges(self) -> list[slice]:
        """The words of each view."""
        return [slice(None)] if self.views is None else self.views.ranges

    def softmax_words(self) -> list[SoftmaxWords]:
        """Return the words of each view, as the primitive takes them."""
        return [SoftmaxWords(self.loadings[s], self.bias[s]) for s in self.ranges]

    def log_sum_exp(self, points: Tensor) -> Tensor:
        """Return the log-sum-exp of all words at one point per document, (n,)."""
        words = SoftmaxWords(self.loadings, self.bias)
        return softmax_moments(points, words).lse


def drawn_spread(moments: SoftmaxMoments) -> Tensor:
    """Return the diagonal of the second derivative of the log-sum-exp in w."""
    assert moments.first is not None
    assert moments.second is not None
    first, second = moments.first, moments.second
    return (second - first * first).clamp_(min=0)


class LseTerms(NamedTuple):
    """An expected log-sum-exp F and its derivatives, per document."""

    value: Tensor  # (n,), float64
    first: Tensor  # (n, K): its gradient in the mean
    spread: Tensor  # twice the derivative of F in the covariance of q
    centre: Tensor  # (n, L K): the best centre of the bound for each of L views


class ExpectedLse:
    r"""A deterministic upper bound on :math:`F = E_q\log\sum_j e^{m_j + t_j w}`.

    For any vector :math:`a`, Jensen's inequality gives

    .. math::
        F \le a\cdot\nu +
        \log\sum_j \exp\bigl(m_j + (t_j - a)\nu
        + \tfrac12 (t_j - a)^\top\Sigma\,(t_j - a)\bigr),

    because :math:`a\cdot w` can be subtracted before it is applied. The best
    :math:`a` is the mean of :math:`t` under the tilted probabilities
    :math:`\hat\theta` that the right side defines: unlike the plain one
    (:math:`a = 0`), the bound is then exact to the second order. Its derivatives are
    :math:`E_{\hat\theta}[t]` in the mean and half of
    :math:`\mathrm{Cov}_{\hat\theta}(t)` in the covariance. With the family's word
    features, ``[t, t**2]`` for a diagonal covariance, it is the one primitive.

    With several views, F is the average of theirs, weighted by the document's tokens,
    and each view has its own centre.
    """

    def __init__(
        self, model: Model, family: CovarianceFamily, workspace: Workspace | None = None
    ) -> None:
        self.family = family
        self.workspace = Workspace() if workspace is None else workspace
        features = family.word_features(model.loadings)
        self.words = [SoftmaxWords(features[s], model.bias[s]) for s in model.ranges]

    def __call__(
        self, q: Gaussians, centre: Tensor, shares: Tensor | None = None
    ) -> LseTerms:
        """Evaluate the bound at posteriors `q`, centred at `centre`.

        `shares` (n, L) are the fractions of the tokens in each view.
        """
        if shares is None:
            return self._of_view(self.words[0], q, centre)
        centres = list(torch.split(centre, q.mean.shape[1], dim=1))
        value = torch.zeros_like(shares[:, 0], dtype=torch.float64)
        first, spread = torch.zeros_like(q.mean), None
        for view, share in enumerate(shares.unbind(dim=1)):
            rows = present(share)
            terms = self._of_view(self.words[view], q[rows], centres[view][rows])
            if spread is None:
                spread = terms.spread.new_zeros(len(q), *terms.spread.shape[1:])
            wide = share[rows].view(-1, *[1] * (spread.ndim - 1))
            add_rows(value, rows, share[rows] * terms.value)
            add_rows(first, rows, share[rows, None] * terms.first)
            add_rows(spread, rows, wide * terms.spread)
            centres[view] = centres[view].clone()
            centres[view][rows] = terms.centre
        assert spread is not None
        return LseTerms(value, first, spread, torch.cat(centres, dim=1))

    def _of_view(self, words: SoftmaxWords, q: Gaussians, centre: Tensor) -> LseTerms:
        """Evaluate the bound for one view."""
        k = q.mean.shape[1]
        moments = softmax_moments(
            q.tilted(centre),
            words,
            first=True,
            second=self.family.second_moments,
            workspace=self.workspace,
        )
        assert moments.first is not None
        first = moments.first[:, :k]
        value = moments.lse.double() + 0.5 * q.square(centre)
        return LseTerms(value, first, self.family.spread(moments, k), first)


def kl_divergence(q: Gaussians, prior: PriorTensors) -> Tensor:
    r"""Return the divergence of q from the prior per document, float64.

    .. math::
        D_{KL}(q\,\|\,p) = \tfrac12\bigl[\mathrm{tr}(\Lambda\Sigma)
        + (\nu - m_0)^\top\Lambda(\nu - m_0) - \log|\Lambda\Sigma| - K\bigr]

    For :math:`\Lambda = \lambda I` and :math:`m_0 = 0` this is the paper's. A point has
    no divergence; minus the log density of the prior replaces it, up to a constant:
    :math:`\tfrac12(w - m_0)^\top\Lambda(w - m_0)`.
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


def loadings_divergence(mean: Tensor, variance: Tensor, prior: Tensor) -> float:
    r"""Return the divergence of Gaussian loadings from their prior, in float64.

    .. math::
        D_{KL}(q(T)\,\|\,p(T)) = \tfrac12\sum_{jk}\Bigl[
        \frac{M_{jk}^2 + S_{jk}^2}{\tau_k^2} - \log\frac{S_{jk}^2}{\tau_k^2} - 1\Bigr]

    `prior` has the variances :math:`\tau_k^2`.
    """
    ratio = variance / prior
    terms = mean.square() / prior + ratio - ratio.log() - 1
    return 0.5 * float(terms.sum(dim=0).double().sum())


def corpus_bound(bound: float, penalty: float) -> float:
    """Return what training maximises: the documents' bounds less one penalty."""
    return bound - penalty
