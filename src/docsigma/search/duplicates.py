"""Documents that are nearly the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from docsigma.counts import Vocabulary
from docsigma.exceptions import InputError
from docsigma.search._measures import Wasserstein2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from docsigma.posterior import GaussianPosterior


@dataclass(frozen=True)
class Duplicates:
    """Pairs of documents that are nearly the same, and the groups they make.

    Attributes
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        Rows of documents, the smaller first.
    similarities : ndarray of shape (n_pairs,)
        Overlap of the words of each pair: 1 for equal counts.
    groups : ndarray of shape (n_documents,)
        Number of each document's group, -1 for a document without a duplicate.
    """

    pairs: NDArray[np.intp]
    similarities: NDArray[np.float64]
    groups: NDArray[np.intp]

    @property
    def extra(self) -> NDArray[np.intp]:
        """Rows of documents that can be removed, all but the first of each group."""
        members = np.flatnonzero(self.groups >= 0)
        _, first = np.unique(self.groups[members], return_index=True)
        return np.delete(members, first)


def find_duplicates(
    posterior: GaussianPosterior,
    counts: Any,
    threshold: float = 0.8,
    n_neighbours: int = 20,
) -> Duplicates:
    r"""Find documents that have nearly the same words.

    Candidates are neighbours by Wasserstein-2 distance. Of those, pairs are returned
    with an overlap :math:`\sum_i \min(x_i, y_i) / \sum_i \max(x_i, y_i)` of at least
    `threshold`. A document without words has no duplicates.

    Parameters
    ----------
    posterior : GaussianPosterior
        The documents, with diagonal covariances.
    counts : sparse matrix of shape (n_documents, n_features)
        The words to compare: those of the model, or all (:func:`every_word`).
    threshold : float, default=0.8
        Least overlap.
    n_neighbours : int, default=20
        Candidates per document; documents with equal counts are one candidate.
    """
    if not 0 < threshold <= 1:
        raise InputError(f"`threshold` must be above 0 and at most 1, got {threshold}")
    counts = sp.csr_matrix(counts)
    if len(posterior) != counts.shape[0]:
        raise InputError(
            f"there are {len(posterior)} posteriors but counts of {counts.shape[0]} "
            "documents"
        )
    counts.sum_duplicates()
    firsts, copies = _same_words(counts)
    found: list[tuple[int, int, float]] = [(a, b, 1.0) for a, b in copies]
    found += _overlapping(posterior, counts, firsts, threshold, n_neighbours)
    found.sort()
    pairs = np.array([pair[:2] for pair in found], dtype=np.intp).reshape(-1, 2)
    return Duplicates(
        pairs,
        np.array([similarity for *_, similarity in found], dtype=np.float64),
        _groups(pairs, len(posterior)),
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
    posterior: GaussianPosterior,
    counts: sp.csr_matrix,
    rows: NDArray[np.intp],
    threshold: float,
    n_neighbours: int,
) -> list[tuple[int, int, float]]:
    if len(rows) < 2:
        return []
    vectors = Wasserstein2().vectors(posterior[rows])
    near = NearestNeighbors(n_neighbors=min(n_neighbours + 1, len(rows)))
    neighbours = near.fit(vectors).kneighbors(vectors, return_distance=False)
    left = np.repeat(rows, neighbours.shape[1])
    right = rows[neighbours.ravel()]
    pairs = np.unique(np.sort(np.stack([left, right], axis=1), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    totals = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    found = []
    for start in range(0, len(pairs), 4096):
        some = pairs[start : start + 4096]
        shared = counts[some[:, 0]].minimum(counts[some[:, 1]]).sum(axis=1)
        common = np.asarray(shared, dtype=np.float64).ravel()
        overlap = common / (totals[some].sum(axis=1) - common)
        found += [
            (int(a), int(b), float(similarity))
            for (a, b), similarity in zip(some, overlap, strict=True)
            if similarity >= threshold
        ]
    return found


def _groups(pairs: NDArray[np.intp], n_documents: int) -> NDArray[np.intp]:
    graph = sp.coo_matrix(
        (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_documents,) * 2
    )
    _, members = connected_components(graph, directed=False)
    groups = np.full(n_documents, -1, dtype=np.intp)
    inside = np.unique(pairs)
    groups[inside] = np.unique(members[inside], return_inverse=True)[1]
    return groups
