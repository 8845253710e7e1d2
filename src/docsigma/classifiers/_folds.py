"""Parts that documents are held out in: alike in classes, by group or by time."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from docsigma._array_checks import Floats, check_shape
from docsigma.classifiers._labels import label_array
from docsigma.counts.texts import is_nothing
from docsigma.exceptions import InputError


class Split(NamedTuple):
    """Which documents to train on, and which to evaluate."""

    train: NDArray[np.intp]
    held_out: NDArray[np.intp]


def trained_on(known: Floats, split: Split) -> Floats:
    """Return weights of documents in classes, without those that are held out."""
    weights = np.zeros_like(known)
    weights[split.train] = known[split.train]
    return weights


def make_splits(
    codes: NDArray[np.intp],
    n_folds: int,
    random_state: Any,
    groups: Any = None,
    times: Any = None,
) -> list[Split]:
    """Return the splits of a cross-validation; none where most cannot be held out.

    Documents of a class that a training part lacks are not evaluated there: where most
    classes have one document, what the rest choose holds for the rest alone.

    Parameters
    ----------
    codes : ndarray of shape (n_documents,)
        Classes of the documents.
    n_folds : int
        Number of splits, or fewer where there are fewer documents or groups.
    random_state : int, RandomState or None
        Deals the documents.
    groups : array-like of shape (n_documents,), optional
        Documents of one group stay together.
    times : array-like of shape (n_documents,), optional
        Numbers or dates: training parts are earlier than what they are evaluated on.
    """
    if groups is not None and times is not None:
        raise InputError("give one of `groups` and `times`, not both")
    if times is not None:
        block = _blocks(np.asarray(times), n_folds + 1)
        pairs = [(block < i, block == i) for i in range(1, int(block.max()) + 1)]
    else:
        fold = deal_folds(codes, n_folds, random_state, groups)
        pairs = [(fold != i, fold == i) for i in range(int(fold.max()) + 1)]
    splits = []
    for train, held_out in pairs:
        known = held_out & np.isin(codes, codes[train])
        if known.any() and len(np.unique(codes[train])) > 1:
            splits.append(Split(np.flatnonzero(train), np.flatnonzero(known)))
    return splits if 2 * sum(len(s.held_out) for s in splits) > len(codes) else []


def held_out_share(
    codes: NDArray[np.intp], share: float, groups: Any, times: Any = None
) -> NDArray[np.bool_]:
    """Return which groups to keep from training; unlabelled documents have no say.

    They are drawn at random, or with `times` the latest; each class keeps a document.

    Parameters
    ----------
    codes : ndarray of shape (n_documents,)
        Classes, -1 for none.
    share : float
        Share of the labelled documents, at the most.
    groups, times
        As for :func:`make_splits`.
    """
    of = np.unique(groups, return_inverse=True)[1].reshape(-1)
    order = np.random.default_rng(0).permutation(np.flatnonzero(codes >= 0))
    if times is not None:
        order = order[np.argsort(np.asarray(times)[order], kind="stable")[::-1]]
    found = np.array(list(dict.fromkeys(of[order].tolist())))
    sizes = np.cumsum(np.bincount(of[order])[found])
    found = found[sizes <= share * len(order)]
    lost = np.setdiff1d(codes, codes[~np.isin(of, found)])
    return np.isin(of, np.setdiff1d(found, of[np.isin(codes, lost)]))


def check_column(
    name: str, values: Any, n_documents: int, rows: NDArray[np.intp]
) -> NDArray[Any]:
    """Return the values of some documents, for which there must be one."""
    column = label_array(values)
    check_shape(name, column, (n_documents,))
    chosen = column[rows]
    if chosen.dtype.kind in "Of":
        for row, value in zip(rows, chosen, strict=True):
            if is_nothing(value):
                raise InputError(f"`{name}` has no value in row {row}")
    return chosen


def _blocks(times: NDArray[Any], n_blocks: int) -> NDArray[np.intp]:
    """Return the number of the time block of each document; equal times share one."""
    order = np.sort(times)
    edges = order[[len(order) * i // n_blocks for i in range(1, n_blocks)]]
    _, block = np.unique(
        np.searchsorted(edges, times, side="right"), return_inverse=True
    )
    return np.asarray(block.reshape(-1), dtype=np.intp)


def deal_folds(
    codes: NDArray[np.intp], n_folds: int, random_state: Any, groups: Any = None
) -> NDArray[np.intp]:
    """Return the fold of each document: stratified, the documents in a random order.

    Classes with fewer documents than folds are missing in some of the folds; documents
    of one group are kept together.
    """
    fold = np.zeros(len(codes), dtype=np.intp)
    # With more folds than the largest class has documents, some would be empty.
    n_folds = min(n_folds, int(np.bincount(codes).max()))
    if groups is not None:
        n_folds = min(n_folds, len(np.unique(groups)))
    if n_folds < 2:
        return fold
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    split = kind(n_folds, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        for number, (_, rows) in enumerate(split.split(codes, codes, groups)):
            fold[rows] = number
    return fold
