"""What documents say about the mean of their class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from docsigma.classifiers._batched_inverse import BatchedInverse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from docsigma.classifiers._likelihood_factors import LikelihoodFactors

# Bytes of a block of documents: this stays near a processor's cache.
BLOCK_BYTES = 2**24


@dataclass(frozen=True)
class MarginalFactors:
    r"""Likelihoods of class means: each document's own embedding integrated out.

    With :math:`w \sim N(\mu, \Sigma)` the factor :math:`\exp(h^T w - w^T P w/2)`
    becomes, up to a constant of the document that holds no parameter,

    .. math::

        \exp(\tilde h^T \mu - \tfrac12 \mu^T \tilde P \mu + s), \quad
        \tilde h = (I + P\Sigma)^{-1} h, \quad \tilde P = (I + P\Sigma)^{-1} P.

    Attributes
    ----------
    linear : Tensor of shape (n, K)
        :math:`\tilde h`.
    precision : Tensor of shape (n, K) or (n, K, K)
        :math:`\tilde P`.
    constant : Tensor of shape (n,)
        :math:`s = -\tfrac12 \eta^T B^{-1} \eta - \tfrac12 \log|B|` with
        :math:`B = I + C^T \Sigma C`, in the terms of :class:`LikelihoodFactors`.
    """

    linear: Tensor
    precision: Tensor
    constant: Tensor

    @classmethod
    def of(cls, factors: LikelihoodFactors, covariance: Tensor) -> MarginalFactors:
        """Integrate embeddings out; `covariance` has variances, or is a matrix."""
        observed, root = factors.observed, factors.root
        if covariance.ndim == 1:
            square = root.square()
            gain = 1 / (1 + square * covariance)
            solved, logs = observed * gain, -gain.log().sum(dim=1)
            linear, precision = root * solved, square * gain
        else:
            if factors.is_full:
                inner = root.mT @ covariance @ root
            else:
                inner = root.unsqueeze(2) * covariance * root.unsqueeze(1)
            inner.diagonal(dim1=1, dim2=2).add_(1.0)
            logs = BatchedInverse(len(inner), inner.shape[1], inner.device)(inner)
            solved = (inner @ observed.unsqueeze(2)).squeeze(2)
            if factors.is_full:
                linear = (root @ solved.unsqueeze(2)).squeeze(2)
                precision = root @ inner @ root.mT
            else:
                linear = root * solved
                precision = inner.mul_(root.unsqueeze(2)).mul_(root.unsqueeze(1))
        constant = -0.5 * ((observed * solved).sum(dim=1) + logs)
        return cls(linear, precision, constant)

    def class_scores(self, means: Tensor, variances: Tensor | None = None) -> Tensor:
        """Return log likelihoods of class means without the constant, n x classes.

        Where the means have `variances` of their own, expected ones (diagonal only).
        """
        if self.precision.ndim == 2:
            squares = means.square() if variances is None else means**2 + variances
            return self.linear @ means.T - 0.5 * self.precision @ squares.T
        squares = ((self.precision @ means.T) * means.T).sum(dim=1)
        return self.linear @ means.T - 0.5 * squares


def blocks(factors: LikelihoodFactors, covariance: Tensor) -> Iterator[slice]:
    """Yield slices of documents whose matrices stay near the cache."""
    size = factors.observed.shape[1]
    full = covariance.ndim == 2
    step = max(1, BLOCK_BYTES // (8 * size * (size if full else 1)))
    for start in range(0, len(factors), step):
        yield slice(start, start + step)
