"""Counts in memory, and the check of counts that users pass."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_non_negative, validate_data

from docsigma.counts._base import Counts
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray
    from sklearn.base import BaseEstimator


class MemoryCounts(Counts):
    """A CSR matrix as :class:`Counts`.

    Parameters
    ----------
    matrix : csr_matrix of shape (n_documents, n_features)
        Not copied.

    Examples
    --------
    >>> counts = MemoryCounts(sparse.csr_matrix([[2.0, 0.0], [0.0, 1.0]]))
    >>> counts.n_tokens, counts.word_totals
    (array([2., 1.]), array([2., 1.]))
    """

    in_memory = True

    def __init__(self, matrix: sparse.csr_matrix) -> None:
        self._matrix = matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Number of documents, number of words."""
        n_documents, n_features = self._matrix.shape
        return n_documents, n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the counts."""
        return self._matrix.dtype

    @cached_property
    def n_tokens(self) -> NDArray[np.float64]:
        """Tokens of each document."""
        return np.asarray(self._matrix.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def word_totals(self) -> NDArray[np.float64]:
        """Tokens of each word."""
        return np.asarray(self._matrix.sum(axis=0), dtype=np.float64).ravel()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of shape and counts, in hex.

        Examples
        --------
        >>> one = MemoryCounts(sparse.csr_matrix([[1.0, 0.0]]))
        >>> one.digest == MemoryCounts(sparse.csr_matrix([[2.0, 0.0]])).digest
        False
        """
        matrix = self._matrix
        digest = hashlib.sha256(repr(matrix.shape).encode())
        digest.update(np.asarray(matrix.indptr, dtype=np.int64).tobytes())
        digest.update(np.asarray(matrix.indices, dtype=np.int64).tobytes())
        digest.update(np.asarray(matrix.data, dtype=np.float64).tobytes())
        return digest.hexdigest()

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> sparse.csr_matrix:
        # All rows are not copied: callers do not write to them.
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self._matrix
        return self._matrix[rows]


def as_counts(counts: sparse.csr_matrix | Counts) -> Counts:
    """Return counts of either kind as :class:`Counts`.

    Examples
    --------
    >>> as_counts(sparse.csr_matrix([[2.0, 0.0]])).shape
    (1, 2)
    """
    return MemoryCounts(counts) if sparse.issparse(counts) else counts


def estimator_counts(
    estimator: BaseEstimator,
    X: ArrayLike | sparse.csr_matrix | Counts,
    *,
    reset: bool,
    like: DTypeLike | None = None,
) -> Counts:
    """Return an estimator's input as :class:`Counts`, checked by scikit-learn.

    Those in memory are CSR without duplicates, float64 if `like`, by default X, is.
    """
    if isinstance(X, Counts):
        n_features = X.shape[1]
        if reset:
            estimator.n_features_in_ = n_features
        elif n_features != estimator.n_features_in_:
            raise InputError(
                f"`X` has {n_features} features, but {type(estimator).__name__} is "
                f"expecting {estimator.n_features_in_} features as input"
            )
        return X
    # One dimension only: iterating over a data frame of counts returns column names.
    column: Any = X if getattr(X, "ndim", 1) == 1 and hasattr(X, "__iter__") else ()
    if isinstance(X, str) or isinstance(next(iter(column), None), str):
        raise InputError(
            f"`X` must be word counts for {type(estimator).__name__}, got texts: count "
            "them with CountVectorizer, or pass them to DocumentEmbedder"
        )
    checked: Any = validate_data(estimator, X, accept_sparse="csr", reset=reset)
    check_non_negative(checked, type(estimator).__name__)
    wide = (checked.dtype if like is None else like) == np.float64
    matrix = sparse.csr_matrix(checked, dtype=np.float64 if wide else np.float32)
    if not matrix.has_canonical_format:
        # A copy: the caller's matrix may share the indices and must not be reordered.
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return MemoryCounts(matrix)
