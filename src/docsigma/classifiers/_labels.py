"""Labels, weights and class priors, checked once for every classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "TrainingLabels",
    "deal_folds",
    "encode",
    "extend_priors",
    "resolve_priors",
]


@dataclass(frozen=True)
class TrainingLabels:
    """Labels of the documents that count, that is, whose weight is not zero.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted names of the classes.
    codes : ndarray of shape (n_kept,)
        Index of each kept document's class.
    weights : ndarray of shape (n_kept,)
        Positive weights of the kept documents.
    kept : ndarray of shape (n_kept,)
        Rows of the kept documents.
    """

    classes: NDArray[Any]
    codes: NDArray[np.intp]
    weights: NDArray[np.float64]
    kept: NDArray[np.intp]

    @property
    def class_weights(self) -> NDArray[np.float64]:
        """Total weight of each class."""
        totals = np.bincount(self.codes, self.weights, minlength=len(self.classes))
        return np.asarray(totals, dtype=np.float64)

    @property
    def membership(self) -> NDArray[np.float64]:
        """Weights as a matrix, classes x documents: its product with X sums classes."""
        matrix = np.zeros((len(self.classes), len(self.codes)))
        matrix[self.codes, np.arange(len(self.codes))] = self.weights
        return matrix

    @classmethod
    def check(
        cls, y: Any, n_documents: int, sample_weight: Any = None, min_classes: int = 2
    ) -> TrainingLabels:
        """Check labels and weights and drop the documents of weight zero."""
        y = column_or_1d(y, warn=True)
        if len(y) != n_documents:
            raise InputError(
                f"`y` has {len(y)} labels, but `X` has {n_documents} documents"
            )
        if y.dtype == object:
            for row, label in enumerate(y):
                if label is None or label != label:
                    raise InputError(f"`y` has no label in row {row}")
        check_classification_targets(y)
        weights = _check_weights(sample_weight, n_documents)
        kept = np.flatnonzero(weights)
        classes, codes = np.unique(y[kept], return_inverse=True)
        if len(classes) < min_classes:
            raise InputError(
                f"`y` must name at least {min_classes} classes, got "
                f"{len(classes)} class: {', '.join(map(str, classes))}"
            )
        return cls(classes, codes.reshape(-1), weights[kept], kept)


def _check_weights(sample_weight: Any, n_documents: int) -> NDArray[np.float64]:
    if sample_weight is None:
        return np.ones(n_documents)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_documents, float(weights))
    if weights.ndim != 1:
        raise InputError(
            f"Sample weights must be 1D array or scalar, got {weights.ndim} dimensions"
        )
    if len(weights) != n_documents:
        raise InputError(
            f"`sample_weight` has {len(weights)} entries, but `X` has "
            f"{n_documents} documents"
        )
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise InputError(
            "`sample_weight` must be finite and not negative, got "
            f"{weights[bad[0]]} in row {bad[0]}"
        )
    if not weights.any():
        raise InputError("`sample_weight` is zero for every document")
    return weights


def encode(y: Any, classes: NDArray[Any], n_documents: int) -> NDArray[np.intp]:
    """Index of each label in `classes`, which need not be sorted."""
    y = column_or_1d(y)
    if len(y) != n_documents:
        raise InputError(
            f"`y` has {len(y)} labels, but `X` has {n_documents} documents"
        )
    index = {name: code for code, name in enumerate(classes.tolist())}
    try:
        return np.array([index[label] for label in y.tolist()], dtype=np.intp)
    except KeyError as error:
        raise InputError(
            f"`y` has the label {error.args[0]!r}, which is none of the "
            f"{len(classes)} classes of the model"
        ) from None


def resolve_priors(
    priors: Any, class_weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Class priors from ``None``, ``"empirical"``, ``"uniform"`` or an array."""
    n_classes = len(class_weights)
    if priors is None or (isinstance(priors, str) and priors == "empirical"):
        return np.asarray(class_weights / class_weights.sum(), dtype=np.float64)
    if isinstance(priors, str):
        if priors != "uniform":
            raise InputError(
                f"`priors` must be 'empirical', 'uniform' or an array, got {priors!r}"
            )
        return np.full(n_classes, 1.0 / n_classes)
    values = np.asarray(priors, dtype=np.float64)
    if values.shape != (n_classes,):
        raise InputError(
            f"`priors` has the shape {values.shape}, but there are {n_classes} classes"
        )
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise InputError(f"`priors` must be positive, got {values.min()}")
    if abs(values.sum() - 1.0) > 1e-6:
        raise InputError(f"`priors` must add up to 1, got {values.sum()}")
    return np.asarray(values / values.sum(), dtype=np.float64)


def extend_priors(
    rule: Any,
    old: NDArray[np.float64],
    class_weights: NDArray[np.float64],
    new: Any = None,
) -> NDArray[np.float64]:
    """Class priors after new classes were added behind the old ones.

    Parameters
    ----------
    rule : None, str or array
        The `priors` that the classifier was made with.
    old : ndarray of shape (n_old,)
        Priors of the classes there were.
    class_weights : ndarray of shape (n_old + n_new,)
        Total weight of all classes, new ones last.
    new : array-like of shape (n_new,), optional
        Priors wanted for the new classes; the old ones share what is left.

    Returns
    -------
    ndarray of shape (n_old + n_new,)
        Priors that add up to 1; old classes keep their proportions.
    """
    n_classes, n_new = len(class_weights), len(class_weights) - len(old)
    if new is not None:
        added = np.asarray(new, dtype=np.float64)
        if added.shape != (n_new,):
            raise InputError(
                f"`priors` has the shape {added.shape}, but there are {n_new} "
                "new classes"
            )
        if not ((added > 0).all() and added.sum() < 1):
            raise InputError(
                "`priors` of new classes must be positive and add up to less "
                f"than 1, got the sum {added.sum()}"
            )
    elif rule is None or isinstance(rule, str):
        return resolve_priors(rule, class_weights)
    else:
        added = np.full(n_new, 1.0 / n_classes)
    return np.concatenate([old * (1.0 - added.sum()), added])


def deal_folds(
    codes: NDArray[np.intp], n_folds: int, random_state: Any
) -> NDArray[np.intp]:
    """Give each document's fold: every class dealt out in turn, in a random order.

    scikit-learn's StratifiedKFold would warn about classes with fewer documents than
    folds.
    """
    shuffled = check_random_state(random_state).permutation(len(codes))
    folds = np.empty(len(codes), dtype=np.intp)
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    folds[order] = np.arange(len(codes)) % n_folds
    return folds
