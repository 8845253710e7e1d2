"""The curvature of a document's objective, known without a sweep over the words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.inference.multinomial import MultinomialCounts

__all__ = ["LoadingsBasis", "WordCurvature", "own_trace"]

# Part of a document's curvature that its own words decide; the rest has the shape of
# the corpus's.
OWN_PART = 0.4
OWN_MOST = 2.0


class LoadingsBasis:
    """Mean and covariance of the loadings under the uni-gram, in their eigenbasis.

    Parameters
    ----------
    loadings : Tensor of shape (V, K)
        :math:`T`.
    bias : Tensor of shape (V,)
        :math:`m`.
    """

    def __init__(self, loadings: Tensor, bias: Tensor) -> None:
        unigram = torch.softmax(bias, dim=0)
        self.mean: Tensor = unigram @ loadings
        centred = loadings - self.mean
        covariance = centred.t() @ (unigram[:, None] * centred)
        # A CPU does a matrix this small faster than a GPU.
        values, vectors = _eigen(covariance.double().cpu())
        self.values: Tensor = values.clamp(min=1e-12).to(loadings)
        self.vectors: Tensor = vectors.to(loadings)
        self.variance = covariance.diagonal().clamp(min=0)


def _eigen(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    try:
        values, vectors = torch.linalg.eigh(matrix)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined] # not in its stubs
        # MKL gives up on one in some hundred matrices of many unused components, by the
        # number of threads on others; numpy brings another library.
        found = np.linalg.eigh(matrix.numpy())
        values, vectors = torch.from_numpy(found[0]), torch.from_numpy(found[1])
    return values, vectors


def own_trace(counts: MultinomialCounts, norms: Tensor, linear: Tensor) -> Tensor:
    """Give N times the variance of the loadings over each document's own words.

    Summed over the components, of shape (n, 1); `norms` are the squared lengths of
    the loadings, `linear` is ``counts.project(loadings)``.
    """
    tokens = counts.n_tokens[:, None].clamp(min=1)
    trace = counts.score(norms)[:, None]
    trace -= linear.square().sum(dim=1, keepdim=True) / tokens
    return trace.clamp_(min=0)


class WordCurvature:
    r"""A model of :math:`\lambda + N\,\mathrm{Cov}_\theta(t)`, one matrix a document.

    A document's probabilities lie between the corpus's and its own frequencies. So
    their covariance is taken to be a mixture of two that cost no sweep over the words:
    that of the corpus, in its eigenbasis, and that of the document's own words, a
    sparse product. The mixture is scaled to a trace that is known.

    Parameters
    ----------
    counts : MultinomialCounts
        The documents.
    loadings : Tensor of shape (V, K)
        :math:`T`.
    basis : LoadingsBasis
        Of the same loadings.
    precision : float
        :math:`\lambda`.
    linear : Tensor of shape (n, K)
        ``counts.project(loadings)``.
    own_trace : Tensor of shape (n, 1)
        :math:`N` times the variance of the loadings over the document's words, summed
        over the components.
    informed : Tensor of shape (n, K)
        :math:`N\,\mathrm{Var}_\theta(t)` as far as it is known: the trace.
    """

    def __init__(
        self,
        counts: MultinomialCounts,
        loadings: Tensor,
        basis: LoadingsBasis,
        precision: float,
        linear: Tensor,
        own_trace: Tensor,
        informed: Tensor,
    ) -> None:
        self._counts = counts
        self._loadings = loadings
        self._basis = basis
        self._precision = precision
        self._linear = linear
        self._tokens = counts.n_tokens[:, None]
        trace = informed.sum(dim=1, keepdim=True)
        self._own = OWN_PART * trace / own_trace.clamp(min=1e-3)
        self._own = self._own.clamp(max=OWN_MOST)
        rest = (trace - self._own * own_trace).clamp(min=0)
        self._shared = rest / basis.values.sum()

    def times(self, vectors: Tensor) -> Tensor:
        """Multiply one vector a document by its matrix."""
        linear, basis = self._linear, self._basis
        own = self._counts.second_moment_product(self._loadings, vectors)
        mean = linear / self._tokens.clamp(min=1)
        own = own - mean * (linear * vectors).sum(dim=1, keepdim=True)
        shared = ((vectors @ basis.vectors) * basis.values) @ basis.vectors.t()
        result: Tensor = self._precision * vectors
        return result + self._own * own + self._shared * shared

    def solve(self, vectors: Tensor, n_iter: int = 2) -> Tensor:
        """Solve roughly for one vector a document, by conjugate gradients.

        The corpus's part of the matrix is the preconditioner. Each document has its
        own coefficients, so the answer does not depend on the others.
        """
        basis = self._basis
        scale = self._shared + self._own * self._tokens
        divisor = self._precision + scale * basis.values

        def precondition(residual: Tensor) -> Tensor:
            rotated: Tensor = (residual @ basis.vectors) / divisor
            return rotated @ basis.vectors.t()

        solution = precondition(vectors)
        residual = vectors - self.times(solution)
        direction = precondition(residual)
        energy = (residual * direction).sum(dim=1, keepdim=True)
        tiny = torch.finfo(vectors.dtype).tiny
        for iteration in range(1, n_iter + 1):
            image = self.times(direction)
            bend = (direction * image).sum(dim=1, keepdim=True)
            length = energy / bend.clamp(min=tiny)
            solution = solution + length * direction
            if iteration == n_iter:
                break
            residual = residual - length * image
            conditioned = precondition(residual)
            before = energy
            energy = (residual * conditioned).sum(dim=1, keepdim=True)
            direction = conditioned + energy / before.clamp(min=tiny) * direction
        return solution
