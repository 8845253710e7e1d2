"""The words that queries share with documents, weighted by BM25."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError
from docsigma.search._queries import Query

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The usual constants of BM25: how soon more of the same word stop to count ...
REPETITIONS = 1.5
# ... and how much a document longer than the mean must repeat a word for one weight.
LENGTH = 0.75


class SharedWords:
    r"""Scores of documents by the words that they share with a query.

    With k = 1.5 and b = 0.75, a word of the query adds to each document that has it

    .. math::

        \log\Big(1 + \frac{n - d + 1/2}{d + 1/2}\Big)
        \frac{(k + 1) x}{x + k (1 - b + b N / \bar N)}

    per occurrence in the query, where d of the n documents have the word, and this one
    has it x times among its N words.
    """

    def __init__(self, counts: sp.csr_matrix) -> None:
        n_documents, n_words = counts.shape
        having = np.bincount(counts.indices, minlength=n_words)
        rarity = _rarity(having, n_documents)
        # A vocabulary leaves out the words of a single document, if it learned from
        # these; then its words have two or more.
        self._least = having[having > 0].min(initial=2)
        data = counts.data.astype(np.float64)
        each = np.repeat(np.arange(n_documents), np.diff(counts.indptr))
        self._rarity, self._having = rarity, having
        length = np.bincount(each, data, n_documents)
        self._squares = np.bincount(each, data * data, n_documents)
        relative = 1 - LENGTH + LENGTH * length / max(length.mean(), 1.0)
        data *= (REPETITIONS + 1) / (data + REPETITIONS * relative[each])
        weights = (rarity[counts.indices] * data).astype(np.float32)
        parts = weights, counts.indices, counts.indptr
        self._counts = counts
        self._by_word = sp.csr_matrix(parts, shape=counts.shape).tocsc()

    def of_query(self, query: sp.csr_matrix, scored: bool) -> Query:
        """Return which documents equal a query and, if `scored`, all scores."""
        scores = None
        if scored:
            found = self._by_word[:, query.indices] @ query.data
            scores = np.asarray(found, dtype=np.float64)
        square = float(np.square(query.data, dtype=np.float64).sum())
        equal = self._squares == square
        rows = np.flatnonzero(equal)
        # By Cauchy and Schwarz their product is as large only if they are equal.
        equal[rows] = (self._counts[rows] @ query.T).toarray().ravel() == square
        return Query(scores, np.asarray(equal))

    def best_match(
        self, query: sp.csr_matrix, n_unknown: float, without: int | None = None
    ) -> float:
        """Return how much of a query the best document has, by the rarity of words.

        `n_unknown` words of the query are in no document. If it is part of the document
        `without`, the rest is as if that one had never been there: its own words are
        rarer, and those that would not be in the vocabulary are unknown.
        """
        own = query.indices
        having, n = self._having[own], self._counts.shape[0]
        data, rarity = query.data.astype(np.float64), self._rarity[own]
        if without is not None:
            having, n = having - 1, n - 1
            rarer = np.where(having < self._least, 0.0, _rarity(having, n))
            data *= rarer / rarity
        scores: Any = self._by_word[:, own] @ data
        if without is not None:
            scores[without] = 0
            n_unknown += float(query.data[rarer == 0].sum())
        whole = rarity @ data + n_unknown * float(_rarity(0, n))
        return float(scores.max(initial=0.0) / max(whole, 1e-12))

    def by_word(self, query: sp.csr_matrix, rows: NDArray[np.intp]) -> Floats:
        """Return what each word of the query adds to the scores of some documents."""
        chosen = self._by_word[:, query.indices].tocsr()[rows].toarray()
        return np.asarray(chosen * query.data, dtype=np.float64)


def _rarity(having: Any, n_documents: int) -> Floats:
    """Return the weights of words that so many of the documents have."""
    return np.asarray(np.log1p((n_documents - having + 0.5) / (having + 0.5)))


def word_counts(counts: Any, n_documents: int) -> sp.csr_matrix:
    """Return counts as a matrix in rows, one per document."""
    found = sp.csr_matrix(counts)
    if found.shape[0] != n_documents:
        raise InputError(
            f"there are {n_documents} documents but `counts` of {found.shape[0]}"
        )
    return found
