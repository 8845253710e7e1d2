"""The contract of a likelihood."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import torch
from torch import Tensor

from docsigma._base import Part

if TYPE_CHECKING:
    from docsigma.kernels import CountTensor


class LikelihoodTerms(NamedTuple):
    r"""A likelihood at one point per document.

    Its gradient in w is ``linear_gradient - tokens *`` :math:`E_\theta[t]`.
    """

    value: Tensor  # (n,), float64
    linear_gradient: Tensor  # (n, K): effective counts times the loadings
    tokens: Tensor  # (n,): sums of the effective counts
    counts: CountTensor  # the effective counts: the gradient in the words


class Likelihood(Part):
    r"""The distribution of the counts, given the probabilities of the words.

    A kind is two formulas in the log probabilities :math:`\log\theta_i` of the words
    that occur. Its value must be increasing, and convex or linear, in them: then its
    value at expected logits and an upper bound of the log-sum-exp is a lower bound of
    its expectation. It need not be concave in w.
    """

    # Whether the effective counts are the counts for any w: then the expected value
    # needs only the mean of w, and trainers keep X^T E[w] exactly.
    linear: ClassVar[bool] = False

    @abstractmethod
    def log_prob(self, counts: CountTensor, log_theta: Tensor) -> Tensor:
        """Return the log likelihood per document, float64."""

    @abstractmethod
    def effective_counts(self, counts: CountTensor, log_theta: Tensor) -> Tensor:
        """Return the derivative in each log probability, of shape (nnz,)."""

    def bind(
        self, counts: CountTensor, loadings: Tensor, bias: Tensor
    ) -> DocumentLikelihood:
        """Return the likelihood of some documents under fixed words."""
        return DocumentLikelihood(self, counts, loadings, bias)


class DocumentLikelihood:
    """The likelihood of some documents, as a function of their embeddings."""

    def __init__(
        self, kind: Likelihood, counts: CountTensor, loadings: Tensor, bias: Tensor
    ) -> None:
        self.kind, self.counts = kind, counts
        self.loadings, self.bias = loadings, bias
        # Of the plain counts: the document's own part of the curvature.
        self.projected = counts.project(loadings)

    def at(self, points: Tensor, lse: Tensor) -> LikelihoodTerms:
        """Return value and gradient at `points`, whose log-sum-exp is `lse`."""
        log_theta = self.log_theta(points, lse)
        value = self.kind.log_prob(self.counts, log_theta).double()
        effective = self.counts.with_values(
            self.kind.effective_counts(self.counts, log_theta)
        )
        projected = effective.project(self.loadings)
        return LikelihoodTerms(value, projected, effective.n_tokens, effective)

    def value(self, points: Tensor, lse: Tensor) -> Tensor:
        """Return the value alone."""
        log_theta = self.log_theta(points, lse)
        return self.kind.log_prob(self.counts, log_theta).double()

    def values(self, points: Tensor, lse: Tensor) -> Tensor:
        """Return the value at points of shape (n, R, K), with their lse (n, R)."""
        draws = range(points.shape[1])
        return torch.stack([self.value(points[:, r], lse[:, r]) for r in draws], dim=1)

    def select(self, rows: Tensor) -> DocumentLikelihood:
        """Return the likelihood of some of the documents."""
        return DocumentLikelihood(
            self.kind, self.counts.select(rows), self.loadings, self.bias
        )

    def log_theta(self, points: Tensor, lse: Tensor) -> Tensor:
        """Return the log probabilities of the words that occur, of shape (nnz,)."""
        logits = self.counts.logits(points, self.loadings, self.bias)
        return logits - lse.to(logits)[self.counts.rows_of_values()]
