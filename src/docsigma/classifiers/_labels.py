"""Labels, weights and class priors, checked once for every classifier."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from docsigma._array_checks import Floats
from docsigma.counts.texts import is_nothing
from docsigma.exceptions import InputError

# What a label can be.
_LABELS = (str, bytes, Number, np.bool_)
_NO_ROWS: Any = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class TrainingLabels:
    """Labels of the documents that count, that is, whose weight is not zero.

    `classes` are sorted, `codes` are the kept documents' places in it, `weights` are
    positive, and `kept` holds the rows of the kept documents; `unlabelled` those of
    documents that have a weight, and no label.
    """

    classes: NDArray[Any]
    codes: NDArray[np.intp]
    weights: Floats
    kept: NDArray[np.intp]
    unlabelled: NDArray[np.intp] = field(default_factory=lambda: _NO_ROWS)
    unlabelled_weights: Floats = field(default_factory=lambda: np.zeros(0))

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
        """Check labels, of which none may be missing, and weights.

        Documents of weight zero are dropped.
        """
        y = _check_length(column_or_1d(labels_of(y), warn=True), n_documents)
        if y.dtype == object:
            for row, label in enumerate(y):
                if is_nothing(label):
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

    @classmethod
    def check_some(
        cls,
        y: Any,
        n_documents: int,
        sample_weight: Any = None,
        *,
        missing_label: Any = -1,
    ) -> TrainingLabels:
        """Check labels of which some may be missing, and weights."""
        if y is None:
            raise InputError(
                "`fit` requires y to be passed, but the target y is None: it needs "
                "labels"
            )
        values = _check_length(column_or_1d(labels_of(y), warn=True), n_documents)
        weights = _check_sample_weight(
            sample_weight, values, dtype=np.float64, ensure_non_negative=True
        )
        if values.dtype.kind == "f" and np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0])
            raise InputError(f"`y` contains infinity: {values[row]} in row {row}")
        known = has_label(values, missing_label)
        if not known.any():
            raise InputError(
                f"`y` has no label in any of {n_documents} rows: {missing_label}, "
                "None, NaN, NA and blanks stand for documents without label"
            )
        rows = np.flatnonzero(known)
        found = cls.check(_plain(values[rows]), len(rows), weights[rows])
        rest = np.flatnonzero(~known & (weights > 0))
        return cls(
            found.classes,
            found.codes,
            found.weights,
            rows[found.kept],
            rest,
            weights[rest],
        )

    def sampled(self, most: int) -> TrainingLabels:
        """Return these labels with at most so many documents without, at random."""
        if len(self.unlabelled) <= most:
            return self
        random = np.random.default_rng(0)
        some = np.sort(random.permutation(len(self.unlabelled))[:most])
        weights = self.unlabelled_weights[some]
        return replace(
            self, unlabelled=self.unlabelled[some], unlabelled_weights=weights
        )

    def merged(self, contents: NDArray[np.uint64]) -> TrainingLabels:
        """Return equal documents as one of their total weight.

        A copy of a document then counts as one of twice the weight, also where
        documents are held out, and their order does not matter. `contents` are
        :func:`fingerprints` of all documents.
        """

        def distinct(rows: NDArray[np.intp], codes: Any, weights: Floats) -> Any:
            keys = np.stack([contents[rows], np.broadcast_to(codes, rows.shape)], 1)
            _, first, number = np.unique(
                keys.astype(np.uint64), axis=0, return_index=True, return_inverse=True
            )
            return first, np.bincount(number.reshape(-1), weights, len(first))

        first, weights = distinct(self.kept, self.codes, self.weights)
        rest, others = distinct(self.unlabelled, 0, self.unlabelled_weights)
        return TrainingLabels(
            self.classes,
            self.codes[first],
            weights,
            self.kept[first],
            self.unlabelled[rest],
            others,
        )

    def column(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return the labels of documents, None where there is none."""
        found = np.full(rows.max() + 1, None, dtype=object)
        kept = self.kept <= rows.max()
        found[self.kept[kept]] = self.classes[self.codes[kept]]
        return _plain(found[rows])

    @property
    def rows(self) -> NDArray[np.intp]:
        """The rows that count: those with a label, and then the rest."""
        return np.concatenate([self.kept, self.unlabelled])

    def targets(self) -> tuple[Floats, Floats]:
        """Return weights for `rows`: in the classes, and of those without label."""
        n, rest = len(self.kept), len(self.unlabelled)
        known = np.zeros((n + rest, len(self.classes)))
        known[np.arange(n), self.codes] = self.weights
        return known, np.concatenate([np.zeros(n), self.unlabelled_weights])


def fingerprints(X: Any) -> NDArray[np.uint64]:
    """Return a number for each row of a matrix, alike for equal rows."""
    if hasattr(X, "indptr"):
        bounds = list(zip(X.indptr[:-1], X.indptr[1:], strict=True))
        rows = [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in bounds]
    else:
        rows = [row.tobytes() for row in X]
    digests = [hashlib.blake2b(row, digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def has_label(values: NDArray[Any], missing_label: Any = -1) -> NDArray[np.bool_]:
    """Whether each document has a label: not None, NaN, NA, blank or `missing_label`.

    Where no more than one other label is left, -1 is the other of two classes, as in
    labels -1 and 1. The string "-1" is always a class.
    """
    if values.dtype.kind in "OUS":
        known = np.array(
            [
                bool(v.strip()) if isinstance(v, (str, bytes)) else not is_nothing(v)
                for v in values
            ],
            dtype=np.bool_,
        )
    else:
        known = np.asarray(values == values)
    if is_nothing(missing_label):
        return known
    pairs = zip(known, values, strict=True)
    same = np.array([bool(k) and _is(v, missing_label) for k, v in pairs], dtype=bool)
    others = {v for v, k in zip(values.tolist(), known & ~same, strict=True) if k}
    one_more = missing_label == -1 and len(others) == 1 and bool(known.all())
    return known if one_more else known & ~same


def _is(value: Any, label: Any) -> bool:
    """Whether a value is the label, and of its kind: the string "-1" is not -1."""
    return isinstance(value, str) == isinstance(label, str) and bool(value == label)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Return labels in their own type, where they stood among None or NaN."""
    if values.dtype.kind != "O":
        return values
    labels = values.tolist()
    if len({isinstance(label, str) for label in labels if label is not None}) > 1:
        raise InputError(
            "`y` has strings and numbers as labels: make all of them strings"
        )
    return np.array(labels)


def label_array(y: Any) -> NDArray[Any]:
    """Return labels as an array, in which None, NaN and numbers stay what they are.

    (NumPy makes the string "nan" of a NaN that is among strings in a list.)
    """
    if not isinstance(y, (list, tuple)):
        return np.asarray(y)
    alike = len({type(label) for label in y}) < 2
    return np.asarray(y) if alike else np.array(y, dtype=object)


def labels_of(y: Any) -> NDArray[Any]:
    """Return labels as an array; refuse entries that are neither string nor number."""
    if isinstance(y, (list, tuple)):
        for row, label in enumerate(y):
            if not (isinstance(label, _LABELS) or is_nothing(label)):
                raise InputError(
                    f"row {row} of `y` must be one label, a string or a number, got "
                    f"{type(label).__name__}"
                )
    return label_array(y)


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
