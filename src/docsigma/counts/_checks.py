"""Checks of counts, and of the words that name their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


# float32 represents every whole number up to this one.
LARGEST_COUNT = 2**24


def check_words(words: Iterable[object], *, name: str) -> tuple[str, ...]:
    """Return `words` as a tuple; they must be distinct strings that are not empty.

    Examples
    --------
    >>> check_words(["sun", "rain"], name="the vocabulary")
    ('sun', 'rain')
    """
    if isinstance(words, str) or not hasattr(words, "__iter__"):
        kind = type(words).__name__
        raise InputError(f"{name} must be a list of words, got one {kind}")
    seen: dict[str, int] = {}
    for position, word in enumerate(words, start=1):
        if not isinstance(word, str) or not word:
            raise InputError(
                f"{name} has {word!r} as word {position}, which is not a word"
            )
        if word in seen:
            raise InputError(
                f"{name} has {word!r} twice, as words {seen[word]} and {position}"
            )
        seen[word] = position
    if not seen:
        raise InputError(f"{name} has no words")
    return tuple(seen)


def row_numbers(rows: Any, n: int, what: str) -> NDArray[np.int64]:
    """Return the numbers of `rows` of n: a slice, whole numbers or a mask."""
    if isinstance(rows, slice):
        return np.arange(*rows.indices(n), dtype=np.int64)
    wanted = np.asarray(rows)
    if wanted.size == 0:
        return np.empty(0, dtype=np.int64)
    if wanted.ndim != 1 or wanted.dtype.kind not in "iub":
        raise TypeError(
            f"{what} are selected by a slice, whole numbers or a mask, got "
            f"{rows!r:.80}; for one document use [i:i + 1]"
        )
    if wanted.dtype.kind == "b":
        if len(wanted) != n:
            raise IndexError(f"the mask has {len(wanted)} entries for {n} rows")
        return np.flatnonzero(wanted)
    low, high = int(wanted.min()), int(wanted.max())
    if low < -n or high >= n:
        raise IndexError(f"there is no row {low if low < -n else high} in {n} rows")
    return np.where(wanted < 0, wanted + n, wanted).astype(np.int64)


def check_counts(counts: object, *, name: str = "`counts`") -> sparse.csr_matrix:
    """Return word counts as a float32 CSR matrix with sorted indices.

    Parameters
    ----------
    counts : sparse matrix, sparse array or array-like
        Documents in rows, words in columns.
    name : str
        Name of the argument or file, for the error.

    Raises
    ------
    InputError
        If a value is negative, not finite, not whole, or above 2**24, beyond which
        float32 skips numbers. The message names row and column, counted from 1.

    Examples
    --------
    >>> check_counts([[1, 0], [2, 3]]).toarray()
    array([[1., 0.],
           [2., 3.]], dtype=float32)
    >>> check_counts([[1, 0], [2, 0.5]], name="counts.npz")
    Traceback (most recent call last):
        ...
    docsigma.exceptions.InputError: counts.npz has 0.5 in row 2, column 2, \
which is not a whole number
    """
    matrix: Any = counts
    try:
        if not sparse.issparse(matrix):
            matrix = np.asarray(matrix)
        if matrix.ndim != 2:
            raise InputError(
                f"{name} must have 2 dimensions, documents and words, got {matrix.ndim}"
            )
        if matrix.dtype.kind not in "buif":
            raise InputError(f"{name} must be numbers, got the type {matrix.dtype}")
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        # A copy: the caller's matrix must not be reordered.
        matrix = sparse.csr_matrix(matrix, copy=True)
        matrix.sum_duplicates()
    except InputError:
        raise
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(f"{name} is not a matrix of counts: {error}") from error
    data = matrix.data
    if data.dtype.kind != "b":
        problems: list[tuple[NDArray[np.bool_], str]] = [
            (~np.isfinite(data), "not finite"),
            (data < 0, "negative"),
            (data > LARGEST_COUNT, f"above the largest count, {LARGEST_COUNT}"),
        ]
        if data.dtype.kind == "f":
            problems.append((data != np.floor(data), "not a whole number"))
        for wrong, why in problems:
            if wrong.any():
                entry = int(np.argmax(wrong))
                row = int(np.searchsorted(matrix.indptr, entry, side="right"))
                raise InputError(
                    f"{name} has {data[entry]} in row {row}, column "
                    f"{int(matrix.indices[entry]) + 1}, which is {why}"
                )
    matrix = matrix.astype(np.float32, copy=False)
    matrix.eliminate_zeros()
    checked: sparse.csr_matrix = matrix
    return checked
