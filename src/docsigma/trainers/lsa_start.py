"""The start of the fast solver: latent semantic analysis at the model's scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from docsigma.kernels import CountTensor
from docsigma.random import Stream, generator, standard_normals

if TYPE_CHECKING:
    import scipy.sparse as sp

    from docsigma.loadings import Loadings
    from docsigma.trainers.settings import MinibatchSettings


def damped(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Return log(1 + x): later occurrences of a word are less informative."""
    result = counts.copy()
    result.data = np.log1p(result.data)
    return result


@dataclass(frozen=True)
class Start:
    """The start of a training.

    Attributes
    ----------
    directions : Tensor of shape (A, K)
        Initial embeddings are the documents' log counts, weighted, times these.
    importance : Tensor of shape (A,)
        The weights of the words (inverse document frequencies).
    """

    directions: Tensor
    importance: Tensor

    def embed(self, counts: sp.csr_matrix, prior_std: float) -> Tensor:
        """Return initial embeddings of documents."""
        weighted = CountTensor(damped(counts), self.importance)
        lengths = weighted.weighted_norms(self.importance).clamp(min=1e-6)
        coordinates = weighted.project(self.importance[:, None] * self.directions)
        return coordinates * (prior_std / lengths[:, None])


def semantic_start(
    sample: sp.csr_matrix, n_components: int, seed: int, like: Tensor, spare: int
) -> Start:
    """Return the start from a randomised singular value decomposition of a sample.

    Log counts are weighted by inverse document frequency and normalised to unit length.
    Embeddings start at the documents' singular vectors times the square roots of the
    singular values. Directions beyond the rank of the sample stay zero.
    """
    n_documents, n_words = sample.shape
    seen = np.bincount(sample.indices, minlength=n_words)
    importance = torch.from_numpy(
        np.log((1.0 + n_documents) / np.maximum(seen, 1.0))
    ).to(like)
    weighted = CountTensor(damped(sample), like)
    lengths = weighted.weighted_norms(importance).clamp(min=1e-6)[:, None]

    def forward(vectors: Tensor) -> Tensor:
        return weighted.project(importance[:, None] * vectors) / lengths

    def backward(vectors: Tensor) -> Tensor:
        return importance[:, None] * weighted.backproject(vectors / lengths)

    width = min(n_components + spare, n_documents, n_words)
    source = generator(seed, Stream.SEMANTIC_START)
    basis = standard_normals((n_documents, width), source, like)
    for _ in range(2):
        words, _ = torch.linalg.qr(backward(basis))
        basis, triangle = torch.linalg.qr(forward(words))
    _, values, right = torch.linalg.svd(triangle, full_matrices=False)
    k = min(n_components, int((values > 1e-4 * values[0]).sum()))
    directions = like.new_zeros(n_words, n_components)
    if k:
        scale = (values[0] * values[:k]).rsqrt()
        found = words @ right[:k].t()
        # The sign of a direction is arbitrary: its longest entry becomes positive.
        longest = found.gather(0, found.abs().argmax(dim=0, keepdim=True))
        directions[:, :k] = found * longest.sign() * (n_documents**0.5 * scale)
    return Start(directions, importance)


def first_loadings(
    counts: CountTensor,
    embeddings: Tensor,
    loadings: Loadings,
    settings: MinibatchSettings,
) -> tuple[Tensor, Tensor]:
    """Return loadings and a correction of the bias that roughly fit the embeddings.

    If the embeddings of all tokens and those of one word's tokens were Gaussians with
    the same covariance, the word's loading would be the difference of their means
    divided by the variance. A ridge and a threshold, depending on the kind of
    `loadings`, make it smaller.
    """
    totals = counts.word_totals()[:, None]
    tokens = counts.n_tokens[:, None]
    mean = (tokens * embeddings).sum(dim=0) / tokens.sum()
    variance = (tokens * (embeddings - mean).square()).sum(dim=0) / tokens.sum()
    excess = counts.backproject(embeddings) - totals * mean
    excess = torch.nn.functional.softshrink(excess, loadings.shrink())
    ridge = settings.ridge * min(1.0, len(counts) / max(1, settings.ridge_documents))
    ridge = max(ridge, loadings.ridge(embeddings.shape[1]))
    start = excess / (totals * variance + ridge)
    bias = -0.5 * (start * start) @ variance - start @ mean
    return start, bias
