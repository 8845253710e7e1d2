"""Documents as the classifiers see them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from docsigma.exceptions import InputError
from docsigma.posterior import GaussianPosterior

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from docsigma._array_checks import Floats


@dataclass(frozen=True)
class EmbeddedDocuments:
    """Word counts and what a model made of them.

    Attributes
    ----------
    counts : csr_matrix of shape (n_documents, n_words)
        Words, all of which the model knows.
    embedding : GaussianPosterior, or ndarray of shape (n_documents, n_components)
        Gaussians; or points, from a model that gives those.
    pairs : csr_matrix of shape (n_documents, n_pairs)
        Pairs of neighbouring words, of which the model knows nothing.
    n_unknown : ndarray of shape (n_documents,) or None
        Words that the model does not know, if anybody has counted them.
    """

    counts: sp.csr_matrix
    embedding: GaussianPosterior | NDArray[Any]
    pairs: sp.csr_matrix
    n_unknown: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if len(self.embedding) != self.counts.shape[0]:
            raise InputError(
                f"there are counts of {self.counts.shape[0]} documents, but embeddings "
                f"of {len(self.embedding)}"
            )

    def __len__(self) -> int:
        return int(self.counts.shape[0])

    def __getitem__(self, rows: Any) -> EmbeddedDocuments:
        unknown = None if self.n_unknown is None else self.n_unknown[rows]
        return EmbeddedDocuments(
            self.counts[rows], self.embedding[rows], self.pairs[rows], unknown
        )

    @cached_property
    def both(self) -> sp.csr_matrix:
        """Words and pairs, side by side."""
        both: sp.csr_matrix = sparse.hstack([self.counts, self.pairs], format="csr")
        return both

    @property
    def posterior(self) -> GaussianPosterior | None:
        """The Gaussians, None where embeddings are points."""
        given = self.embedding
        return given if isinstance(given, GaussianPosterior) else None

    @cached_property
    def means(self) -> Floats:
        """The means of the Gaussians, or the points."""
        posterior = self.posterior
        points = self.embedding if posterior is None else posterior.mean
        return np.asarray(points, dtype=np.float64)

    @cached_property
    def n_tokens(self) -> Floats:
        """Known words of each document."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64).ravel()

    @property
    def distinct(self) -> Floats:
        """Share of the known words of each document that it has for the first time."""
        different = (self.counts > 0).sum(axis=1)
        return np.asarray(different).ravel() / np.maximum(self.n_tokens, 1.0)

    @property
    def lengths(self) -> Floats:
        """All words of each document, known or not."""
        unknown = 0.0 if self.n_unknown is None else self.n_unknown
        return np.asarray(self.n_tokens + unknown)
