"""The curvature of a document's objective, without a pass over the words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from docsigma.estep.settings import NewtonSettings

if TYPE_CHECKING:
    from docsigma.covariances import FullGaussians
    from docsigma.kernels import CountTensor, Views
    from docsigma.priors import PriorTensors


class LoadingsBasis:
    r"""Mean and covariance C of the loadings under the uni-gram, and a basis for both.

    In the basis :math:`\Lambda + \gamma C` is diagonal for any :math:`\gamma`. For an
    isotropic prior it is the eigenbasis of C. With several `views`, C is the average of
    theirs.

    Attributes
    ----------
    means : Tensor of shape (L, K)
        Mean of each view.
    values, vectors : Tensors of shape (K,) and (K, K)
        :math:`(\Lambda + \gamma C)^{-1} = U\,\mathrm{diag}(1/(u + \gamma v))\,U^\top`
        with u = ``prior.unit``.
    """

    def __init__(
        self,
        loadings: Tensor,
        bias: Tensor,
        prior: PriorTensors,
        views: Views | None = None,
    ) -> None:
        ranges = [slice(None)] if views is None else views.ranges
        found = [_moments(loadings[words], bias[words]) for words in ranges]
        self.means: Tensor = torch.stack([mean for mean, _ in found])
        self.covariance: Tensor = found[0][1]
        if views is not None:
            each = torch.stack([c for _, c in found[: views.n_fitted]])
            self.covariance = each.mean(dim=0)
        self.unit = prior.unit
        # A CPU decomposes a matrix this small faster than a GPU.
        white, back = prior.whiten(self.covariance.double().cpu())
        values, vectors = eigen(white)
        if back is not None:
            vectors = back @ vectors
        least = torch.finfo(values.dtype).eps
        self.values: Tensor = values.clamp(min=least).to(loadings)
        self.vectors: Tensor = vectors.to(loadings)
        self.variance = self.covariance.diagonal().clamp(min=0)
        tiny = torch.finfo(loadings.dtype).tiny
        self.trace = self.variance.sum().clamp(min=tiny)

    def expected(self, counts: CountTensor) -> Tensor:
        """Return ``counts.project(loadings)`` expected under the uni-gram, (n, K)."""
        tokens = counts.view_tokens
        expected = tokens[:, :1] * self.means[0]
        for view in range(1, len(self.means)):
            expected += tokens[:, view : view + 1] * self.means[view]
        return expected


def _moments(loadings: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and covariance of loadings under the uni-gram."""
    unigram = torch.softmax(bias, dim=0)
    mean = unigram @ loadings
    centred = loadings - mean
    return mean, centred.t() @ (unigram[:, None] * centred)


def eigen(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors of one or more symmetric matrices."""
    try:
        values, vectors = torch.linalg.eigh(matrix)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined] # not in its stubs
        # With many unused components, MKL fails on one in a few hundred matrices (on
        # which, depends on the number of threads); numpy has another library.
        found = np.linalg.eigh(matrix.cpu().numpy())
        values = torch.from_numpy(found[0]).to(matrix)
        vectors = torch.from_numpy(found[1]).to(matrix)
    return values, vectors


def own_trace(counts: CountTensor, norms: Tensor, projected: Tensor) -> Tensor:
    """Return N times the total variance of the loadings over each document's words.

    The shape is (n, 1); `norms` are the squared norms of the loadings, `projected` is
    ``counts.project(loadings)``.
    """
    tokens = counts.n_tokens[:, None].clamp(min=1)
    trace = counts.score(norms)[:, None]
    trace -= projected.square().sum(dim=1, keepdim=True) / tokens
    return trace.clamp_(min=0)


class Curvature(Protocol):
    """The matrix of a Newton step, one per document."""

    def times(self, vectors: Tensor) -> Tensor:
        """Multiply one vector per document by its matrix."""

    def solve(self, vectors: Tensor) -> Tensor:
        """Solve for one vector per document."""

    def size(self, step: Tensor, gradient: Tensor, precision: Tensor) -> Tensor:
        """Return the length of a solution in standard deviations, of shape (n,)."""


class PosteriorCurvature:
    """The precision of posteriors with full covariances."""

    def __init__(self, q: FullGaussians) -> None:
        self._factor = q.factor

    def times(self, vectors: Tensor) -> Tensor:
        """Multiply one vector per document by its matrix."""
        result: Tensor = torch.cholesky_solve(vectors[:, :, None], self._factor)
        return result[:, :, 0]

    def solve(self, vectors: Tensor) -> Tensor:
        """Solve for one vector per document."""
        white = self._factor.mT @ vectors[:, :, None]
        return (self._factor @ white)[:, :, 0]

    def size(self, step: Tensor, gradient: Tensor, precision: Tensor) -> Tensor:  # noqa: ARG002
        """Return the length of a solution in standard deviations, of shape (n,)."""
        return (step * gradient).mean(dim=1).clamp(min=0).sqrt()


class WordCurvature:
    r"""A model of :math:`\Lambda + N\,\mathrm{Cov}_\theta(t)`, one matrix per document.

    A document's probabilities lie between the corpus's and its own frequencies. So
    their covariance is approximated by a mixture of two that need no pass over the
    words: that of the corpus, in its eigenbasis, and that of the document's own words,
    a sparse product. The mixture is scaled to a known trace.

    Parameters
    ----------
    counts : CountTensor
    loadings : Tensor of shape (V, K)
    basis : LoadingsBasis
        Of the same loadings and prior.
    prior : PriorTensors
    projected : Tensor of shape (n, K)
        ``counts.project(loadings)``.
    own_trace : Tensor of shape (n, 1)
        The :func:`own_trace` of the documents.
    trace : Tensor of shape (n, 1)
        The latest :math:`N\,\mathrm{tr}\,\mathrm{Cov}_\theta(t)`.
    own_part : float
        Share of the document's own words in the trace.
    """

    def __init__(
        self,
        counts: CountTensor,
        loadings: Tensor,
        basis: LoadingsBasis,
        prior: PriorTensors,
        projected: Tensor,
        own_trace: Tensor,
        trace: Tensor,
        own_part: float = NewtonSettings.own_part,
    ) -> None:
        self._counts = counts
        self._loadings = loadings
        self._basis = basis
        self._prior = prior
        self._projected = projected
        self._tokens = counts.n_tokens[:, None]
        # At most a factor of two: a tiny trace is no scale.
        self._own = (own_part * trace / own_trace.clamp(min=1e-3)).clamp(max=2.0)
        rest = (trace - self._own * own_trace).clamp(min=0)
        self._shared = rest / basis.trace

    def times(self, vectors: Tensor) -> Tensor:
        """Multiply one vector per document by its matrix."""
        projected = self._projected
        own = self._counts.second_moment_product(self._loadings, vectors)
        mean = projected / self._tokens.clamp(min=1)
        own = own - mean * (projected * vectors).sum(dim=1, keepdim=True)
        result: Tensor = self._prior.times(vectors)
        shared = vectors @ self._basis.covariance
        return result + self._own * own + self._shared * shared

    def size(self, step: Tensor, gradient: Tensor, precision: Tensor) -> Tensor:  # noqa: ARG002
        """Return the length of a solution in standard deviations, of shape (n,)."""
        return (step.square() * precision).mean(dim=1).sqrt()

    def solve(self, vectors: Tensor, n_iter: int = 2) -> Tensor:
        """Solve roughly for one vector per document, by conjugate gradients.

        The corpus's part of the matrix is the preconditioner. Each document has its
        own coefficients, so that its result does not depend on the rest.
        """
        basis = self._basis
        scale = self._shared + self._own * self._tokens
        divisor = basis.unit + scale * basis.values

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
