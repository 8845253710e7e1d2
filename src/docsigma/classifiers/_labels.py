"""Labels, weights and class priors, checked once for every classifier."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError


@dataclass(frozen=True)
class TrainingLabels:
    """Labels of the documents that count, that is, whose weight is not zero.

    `classes` are sorted, `codes` are the kept documents' places in it, `weights` are
    positive, and `kept` holds the rows of the kept documents.
    """

    classes: NDArray[Any]
    codes: NDArray[np.intp]
    weights: Floats
    kept: NDArray[np.intp]

    @property
    def class_weights(self) -> Floats:
        """Total weight of each class."""
        totals = np.bincount(self.codes, self.weights, minlength=len(self.classes))
        return np.asarray(totals, dtype=np.float64)

    @property
    def membership(self) -> Floats:
        """Weights as a matrix, classes x documents; times X it gives sums per class."""
        matrix = np.zeros((len(self.classes), len(self.codes)))
        matrix[self.codes, np.arange(len(self.codes))] = self.weights
        return matrix

    @classmethod
    def check(
        cls, y: Any, n_documents: int, sample_weight: Any = None, min_classes: int = 2
    ) -> TrainingLabels:
        """Check labels and weights and drop the documents of weight zero."""
        y = _check_length(column_or_1d(y, warn=True), n_documents)
        if y.dtype == object:
            for row, label in enumerate(y):
                if label is None or label != label:
                    raise InputError(f"`y` has no label in row {row}")
        with warnings.catch_warnings():
            # One label per class is nothing to warn of.
            warnings.filterwarnings("ignore", "The number of unique classes")
            check_classification_targets(y)
        weights = _check_sample_weight(
            sample_weight, y, dtype=np.float64, ensure_non_negative=True
        )
        kept = np.flatnonzero(weights)
        classes, codes = np.unique(y[kept], return_inverse=True)
        if len(classes) < min_classes:
            raise InputError(
                f"`y` must name at least {min_classes} classes, got "
                f"{len(classes)} class: {', '.join(map(str, classes))}"
            )
        return cls(classes, codes.reshape(-1), weights[kept], kept)


def label_array(y: Any) -> NDArray[Any]:
    """Return labels as an array, in which None, NaN and numbers stay what they are.

    (NumPy makes the string "nan" of a NaN that is among strings in a list.)
    """
    if not isinstance(y, (list, tuple)):
        return np.asarray(y)
    alike = len({type(label) for label in y}) < 2
    return np.asarray(y) if alike else np.array(y, dtype=object)


def is_nothing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither equal to itself nor not.
        return True


def _check_length(y: NDArray[Any], n_documents: int) -> NDArray[Any]:
    if len(y) != n_documents:
        message = f"`y` has {len(y)} labels, but `X` has {n_documents} documents"
        raise InputError(message)
    return y


def encode(y: Any, classes: NDArray[Any], n_documents: int) -> NDArray[np.intp]:
    """Return the index of each label in `classes`, which need not be sorted."""
    y = _check_length(column_or_1d(y), n_documents)
    index = {name: code for code, name in enumerate(classes.tolist())}
    try:
        return np.array([index[label] for label in y.tolist()], dtype=np.intp)
    except KeyError as error:
        raise InputError(
            f"`y` has the label {error.args[0]!r}, which is none of the "
            f"{len(classes)} classes of the model"
        ) from None


def resolve_priors(priors: Any, class_weights: Floats) -> Floats:
    """Return class priors, given as ``None``, a rule's name or an array.

    ``"empirical"``, which None means too, or ``"uniform"``.
    """
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
    rule: Any, old: Floats, class_weights: Floats, new: Any = None
) -> Floats:
    """Return class priors after new classes were added to the old ones.

    `rule` is the `priors` of the classifier, and `class_weights` has the new classes
    last. Priors wanted for the `new` classes leave the rest to the `old` ones, which
    keep their proportions.
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
    """Return the fold of each document: stratified, the documents in a random order.

    Classes with fewer documents than folds are missing in some of the folds.
    """
    folds = np.zeros(len(codes), dtype=np.intp)
    # With more folds than the largest class has documents, some would be empty.
    n_folds = min(n_folds, int(np.bincount(codes).max()))
    if n_folds < 2:
        return folds
    split = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        for fold, (_, rows) in enumerate(split.split(codes, codes)):
            folds[rows] = fold
    return folds
