"""Counts with their words in the order of frequency, a prefix at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CountsOnDisk", "SortedCounts", "log_unigram"]


class CountsOnDisk(Protocol):
    """What is asked of counts that are not in memory."""

    @property
    def shape(self) -> tuple[int, int]:
        """Documents and words."""

    @property
    def n_tokens(self) -> NDArray[np.float64]:
        """Tokens of each document."""

    @property
    def word_totals(self) -> NDArray[np.float64]:
        """Tokens of each word."""

    def __getitem__(self, rows: NDArray[np.intp] | slice) -> sp.csr_matrix:
        """Return some documents."""


class SortedCounts:
    """Word counts, commonest word first.

    Parameters
    ----------
    counts : csr_matrix or CountsOnDisk
        The documents.
    """

    def __init__(self, counts: sp.csr_matrix | CountsOnDisk) -> None:
        self.n_documents, self.n_features = counts.shape
        self._memory: sp.csr_matrix | None = None
        self._disk: CountsOnDisk | None = None
        if isinstance(counts, sp.csr_matrix):
            totals = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
            self.tokens = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        else:
            totals = np.asarray(counts.word_totals, dtype=np.float64)
            self.tokens = np.asarray(counts.n_tokens, dtype=np.float64)
        self.order: NDArray[np.intp] = np.argsort(-totals, kind="stable")
        self._rank = np.empty(self.n_features, dtype=np.int64)
        self._rank[self.order] = np.arange(self.n_features)
        self.totals: NDArray[np.float64] = totals[self.order]
        if isinstance(counts, sp.csr_matrix):
            self._memory = self._sort(counts)
        else:
            self._disk = counts
        self._prefix: tuple[int, sp.csr_matrix] | None = None

    @property
    def on_disk(self) -> bool:
        """Whether documents are read when they are asked for."""
        return self._disk is not None

    def _sort(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        moved = sp.csr_matrix(
            (counts.data.copy(), self._rank[counts.indices], counts.indptr.copy()),
            shape=counts.shape,
        )
        moved.sort_indices()
        return moved

    def batch(self, rows: NDArray[np.intp], n_words: int) -> sp.csr_matrix:
        """Return the counts of some documents for the `n_words` commonest words."""
        if self._memory is not None:
            if self._prefix is None or self._prefix[0] != n_words:
                prefix = self._memory
                if n_words < self.n_features:
                    prefix = sp.csr_matrix(prefix[:, :n_words])
                self._prefix = n_words, prefix
            return self._prefix[1][rows]
        assert self._disk is not None
        counts = self._sort(self._disk[rows])
        return counts if n_words == self.n_features else counts[:, :n_words]

    def covering(self, part: float) -> int:
        """Return how many of the commonest words hold that part of the tokens."""
        covered = np.cumsum(self.totals)
        return int(np.searchsorted(covered, part * covered[-1])) + 1


def log_unigram(
    counts: sp.csr_matrix | CountsOnDisk, smoothing: float = 1e-3
) -> NDArray[np.float64]:
    r"""Return the log probability of each word, finite for words never seen.

    A word that never occurs gets `smoothing` of a token, the others stay exact
    up to the normaliser.

    Examples
    --------
    >>> counts = sp.csr_matrix([[2.0, 1.0], [1.0, 0.0]])
    >>> np.exp(log_unigram(counts)).round(3).tolist()
    [0.75, 0.25]
    """
    if isinstance(counts, sp.csr_matrix):
        totals = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    else:
        totals = np.asarray(counts.word_totals, dtype=np.float64)
    totals = np.maximum(totals, smoothing)
    result: NDArray[np.float64] = np.log(totals) - np.log(totals.sum())
    return result
