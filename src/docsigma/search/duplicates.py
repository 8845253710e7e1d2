"""Documents that are nearly the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from docsigma.counts import Vocabulary
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Duplicates:
    """Pairs of documents that are nearly the same, and groups around one of them.

    Attributes
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        Rows of documents, the smaller first.
    similarities : ndarray of shape (n_pairs,)
        Overlap of the words of each pair: 1 for equal counts.
    groups : ndarray of shape (n_documents,)
        Number of each document's group, -1 for a document in none. The first document
        of a group represents it: each of the others makes a pair with it, or has
        the same words as one that does.
    """

    pairs: NDArray[np.intp]
    similarities: NDArray[np.float64]
    groups: NDArray[np.intp]

    @property
    def extra(self) -> NDArray[np.intp]:
        """Rows of the documents that are nearly the same as the first of their group.

        Whether they can go is for a person to decide.
        """
        members = np.flatnonzero(self.groups >= 0)
        _, first = np.unique(self.groups[members], return_index=True)
        return np.delete(members, first)


def find_duplicates(counts: Any, threshold: float = 0.8) -> Duplicates:
    r"""Find all documents that have nearly the same words.

    Pairs have an overlap :math:`\sum_i \min(x_i, y_i) / \sum_i \max(x_i, y_i)` of at
    least `threshold`. Documents are taken in their order: one that is in no group yet
    represents a new one, and documents that make a pair with it and are in no group
    join. So groups are no chains, whose first and last may have little in common.
    A document without words has no duplicates.

    Parameters
    ----------
    counts : sparse matrix of shape (n_documents, n_features)
        The words to compare: those of a model, or all (:func:`every_word`).
    threshold : float, default=0.8
        Least overlap.
    """
    if not 0 < threshold <= 1:
        raise InputError(f"`threshold` must be above 0 and at most 1, got {threshold}")
    counts = sp.csr_matrix(counts)
    counts.sum_duplicates()
    firsts, copies = _same_words(counts)
    near = _overlapping(counts, firsts, threshold)
    found = sorted([(a, b, 1.0) for a, b in copies] + near)
    return Duplicates(
        np.array([pair[:2] for pair in found], dtype=np.intp).reshape(-1, 2),
        np.array([similarity for *_, similarity in found], dtype=np.float64),
        _groups(counts.shape[0], copies, near),
    )


def every_word(texts: Sequence[str], vocabulary: Vocabulary | None = None) -> Any:
    """Count all words of texts, including numbers and rare words.

    A model may not know the one number in which two invoices differ. Only the tokenizer
    of `vocabulary` is used, if it has one.
    """
    tokenizer = None if vocabulary is None else vocabulary.tokenizer
    settings: dict[str, Any] = {
        "min_df": 1,
        "token_pattern": r"(?u)\w+",
        "tokenizer": tokenizer,
    }
    return Vocabulary.fit_count(texts, **settings)[1].counts


def _same_words(
    counts: sp.csr_matrix,
) -> tuple[NDArray[np.intp], list[tuple[int, int]]]:
    """Return the first document of each distinct row, and pairs of it and a copy."""
    seen: dict[bytes, int] = {}
    copies = []
    for row in np.flatnonzero(np.diff(counts.indptr)).tolist():
        some = slice(counts.indptr[row], counts.indptr[row + 1])
        key = counts.indices[some].tobytes() + b"|" + counts.data[some].tobytes()
        if seen.setdefault(key, row) != row:
            copies.append((seen[key], row))
    return np.array(list(seen.values()), dtype=np.intp), copies


def _overlapping(
    counts: sp.csr_matrix, rows: NDArray[np.intp], threshold: float
) -> list[tuple[int, int, float]]:
    """Return all pairs of some rows that overlap enough."""
    totals = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    # Shortest first: documents of very different lengths are never compared.
    rows = rows[np.argsort(totals[rows], kind="stable")]
    lengths, rare = totals[rows], _rare_words(counts, threshold)[rows]
    found = []
    for start in range(0, len(rows), 1024):
        last = lengths[min(start + 1024, len(rows)) - 1] / threshold
        stop = int(np.searchsorted(lengths, last * (1 + 1e-9), side="right"))
        common = (rare[start : start + 1024] @ rare[start:stop].T).tocoo()
        left, right = common.row + start, common.col + start
        chosen = (left < right) & (lengths[left] >= threshold * lengths[right] - 1e-9)
        pairs = np.stack([rows[left[chosen]], rows[right[chosen]]], axis=1)
        for begin in range(0, len(pairs), 4096):
            some = np.sort(pairs[begin : begin + 4096], axis=1)
            shared = counts[some[:, 0]].minimum(counts[some[:, 1]]).sum(axis=1)
            both = np.asarray(shared, dtype=np.float64).ravel()
            overlap = both / (totals[some].sum(axis=1) - both)
            for place in np.flatnonzero(overlap >= threshold).tolist():
                a, b = some[place].tolist()
                found.append((a, b, float(overlap[place])))
    return found


def _rare_words(counts: sp.csr_matrix, threshold: float) -> sp.csr_matrix:
    r"""Mark each document's rarest words, of which near documents share one.

    Of its N tokens a pair shares :math:`\lceil tN \rceil` or more, t the threshold: so
    not all shared ones are among its :math:`\lceil tN \rceil - 1` most frequent.
    """
    having = np.bincount(counts.indices, minlength=counts.shape[1])
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    order = np.lexsort((counts.indices, having[counts.indices], rows))
    amounts = counts.data[order].astype(np.float64)
    totals = np.bincount(rows, amounts, counts.shape[0])
    before = np.cumsum(amounts) - amounts - (np.cumsum(totals) - totals)[rows]
    kept = before < (totals - np.ceil(threshold * totals - 1e-9) + 1)[rows]
    parts = np.ones(int(kept.sum())), (rows[kept], counts.indices[order][kept])
    return sp.csr_matrix(parts, shape=counts.shape)


def _groups(
    n_documents: int,
    copies: list[tuple[int, int]],
    near: list[tuple[int, int, float]],
) -> NDArray[np.intp]:
    copied = {a for a, _ in copies}
    neighbours: dict[int, list[int]] = {row: [] for row in copied}
    for a, b, _ in near:
        neighbours.setdefault(a, []).append(b)
    first = np.full(n_documents, -1, dtype=np.intp)
    for row in sorted(neighbours):
        joining = [other for other in neighbours[row] if first[other] < 0]
        if first[row] < 0 and (joining or row in copied):
            first[[row, *joining]] = row
    for a, b in copies:
        first[b] = first[a]
    groups = np.full(n_documents, -1, dtype=np.intp)
    inside = first >= 0
    groups[inside] = np.unique(first[inside], return_inverse=True)[1]
    return groups
