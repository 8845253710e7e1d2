"""Counts with words sorted by frequency, to train on the most frequent first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from docsigma.counts.memory import as_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.counts._base import Counts


class SortedCounts:
    """Word counts with the most frequent word in the first column.

    With `groups`, the number of the group of each column, from 0 and not falling,
    groups stay in their order, and each is sorted.
    """

    def __init__(
        self,
        counts: sp.csr_matrix | Counts,
        groups: NDArray[np.intp] | None = None,
    ) -> None:
        self._counts = as_counts(counts)
        self.n_documents, self.n_features = self._counts.shape
        self.tokens = self._counts.n_tokens
        totals = self._counts.word_totals
        self.order: NDArray[np.intp] = np.argsort(-totals, kind="stable")
        if groups is not None:
            self.order = np.lexsort((-totals, groups))
        self._rank = np.empty(self.n_features, dtype=np.int64)
        self._rank[self.order] = np.arange(self.n_features)
        self.totals: NDArray[np.float64] = totals[self.order]
        self.in_memory = self._counts.in_memory
        # Sorted once if the counts are in memory, else batch by batch.
        self._sorted = self._sort(self._counts[:]) if self.in_memory else None

    def _sort(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        moved = sp.csr_matrix(
            (counts.data.copy(), self._rank[counts.indices], counts.indptr.copy()),
            shape=counts.shape,
        )
        moved.sort_indices()
        return moved

    def batch(self, rows: NDArray[np.intp], n_words: int) -> sp.csr_matrix:
        """Return some documents' counts of the `n_words` most frequent words."""
        if self._sorted is None:
            counts = self._sort(self._counts[rows])
        else:
            counts = self._sorted[rows]
        return counts if n_words == self.n_features else counts[:, :n_words]

    def covering(self, part: float) -> int:
        """Return how many of the most frequent words have that share of the tokens."""
        covered = np.cumsum(self.totals)
        return int(np.searchsorted(covered, part * covered[-1])) + 1

    def rare_log_likelihood(self, n_words: int) -> float:
        """Return the uni-gram log likelihood of the words after the first `n_words`."""
        rare = self.totals[n_words:]
        rare = rare[rare > 0]
        return float((rare * np.log(rare / rare.sum())).sum()) if len(rare) else 0.0


def log_unigram(
    word_totals: NDArray[np.float64], smoothing: float = 1e-3
) -> NDArray[np.float64]:
    r"""Return the log probability of each word, finite for words never seen.

    A word that never occurs counts as `smoothing` of a token.

    Examples
    --------
    >>> np.exp(log_unigram(np.array([3.0, 1.0]))).round(3).tolist()
    [0.75, 0.25]
    """
    totals = np.maximum(word_totals, smoothing)
    result: NDArray[np.float64] = np.log(totals) - np.log(totals.sum())
    return result
