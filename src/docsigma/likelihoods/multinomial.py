"""The multinomial likelihood: tokens are independent."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from docsigma.likelihoods._base import DocumentLikelihood, Likelihood, LikelihoodTerms

if TYPE_CHECKING:
    from docsigma.kernels import CountTensor


class Multinomial(Likelihood):
    r"""The paper's likelihood, linear in the logits and in the log-sum-exp.

    .. math::
        \log p(x|w) = x\cdot\log\theta
        = x\cdot m + (xT)\cdot w - N \log\sum_j e^{m_j + t_j w}

    (the likelihood of a sequence of tokens, without the multinomial coefficient).

    Examples
    --------
    >>> Multinomial().linear
    True
    """

    linear: ClassVar[bool] = True

    def log_prob(self, counts: CountTensor, log_theta: Tensor) -> Tensor:
        """Return the log likelihood per document, float64."""
        sums = torch.zeros_like(counts.n_tokens, dtype=torch.float64)
        terms = (counts.values * log_theta).double()
        return sums.index_add_(0, counts.rows_of_values(), terms)

    def effective_counts(self, counts: CountTensor, log_theta: Tensor) -> Tensor:  # noqa: ARG002
        """Return the counts themselves."""
        return counts.values

    def bind(
        self, counts: CountTensor, loadings: Tensor, bias: Tensor
    ) -> DocumentLikelihood:
        """Return the likelihood of some documents under fixed words.

        `bias` may have one more entry than the counts have columns: the logit of all
        words without a column, which have no loadings.
        """
        return _LinearLikelihood(self, counts, loadings, bias)


class _LinearLikelihood(DocumentLikelihood):
    """Computes both linear products once for all points."""

    def __init__(
        self, kind: Likelihood, counts: CountTensor, loadings: Tensor, bias: Tensor
    ) -> None:
        self.kind, self.counts = kind, counts
        self.loadings, self.bias = loadings, bias
        self.projected = counts.project(loadings)
        self.score = counts.score(bias[: len(loadings)]).double()
        if len(bias) > len(loadings):
            folded = (counts.n_tokens - counts.known_tokens) * bias[-1]
            self.score += folded.double()

    def at(self, points: Tensor, lse: Tensor) -> LikelihoodTerms:
        """Return value and gradient at `points`, whose log-sum-exp is `lse`."""
        return LikelihoodTerms(
            self.value(points, lse), self.projected, self.counts.n_tokens, self.counts
        )

    def value(self, points: Tensor, lse: Tensor) -> Tensor:
        """Return the value alone."""
        linear = (self.projected * points).sum(dim=1, dtype=torch.float64)
        return self.score + linear - self.counts.n_tokens.double() * lse.double()

    def values(self, points: Tensor, lse: Tensor) -> Tensor:
        """Return the value at points of shape (n, R, K), with their lse (n, R)."""
        linear = torch.einsum("dk,drk->dr", self.projected.double(), points.double())
        tokens = self.counts.n_tokens.double()[:, None]
        return self.score[:, None] + linear - tokens * lse.double()

    def select(self, rows: Tensor) -> DocumentLikelihood:
        """Return the likelihood of some of the documents."""
        some = copy.copy(self)
        some.counts = self.counts.select(rows)
        some.projected, some.score = self.projected[rows], self.score[rows]
        return some
