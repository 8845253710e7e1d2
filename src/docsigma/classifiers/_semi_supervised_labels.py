"""Labels of which some are unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from docsigma._array_checks import Floats
from docsigma.classifiers._class_gaussians import Membership
from docsigma.classifiers._labels import TrainingLabels, is_nothing, label_array
from docsigma.exceptions import InputError

UNKNOWN = -1


def is_labelled(y: Any) -> NDArray[np.bool_]:
    """Whether each document has a label: not None, NaN, blank or the number -1.

    As scikit-learn has it, -1 is no class of its own where labels may be missing; the
    string "-1" is a class.
    """
    values = column_or_1d(label_array(y), warn=True)
    if values.dtype.kind not in "OUS":
        return np.asarray(~((values == UNKNOWN) | (values != values)))
    return np.array([not is_missing(label) for label in values], dtype=np.bool_)


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, pandas' NA, blank or the number -1."""
    if isinstance(label, (str, bytes)):
        return not label.strip()
    return is_nothing(label) or bool(label == UNKNOWN)


@dataclass(frozen=True)
class SemiSupervisedLabels:
    """Labels of the documents that count, and the documents without label.

    `labels` are those of the documents with one; `unlabelled` are the rows of the rest,
    `unlabelled_weights` their weights.
    """

    labels: TrainingLabels
    unlabelled: NDArray[np.intp]
    unlabelled_weights: Floats

    @classmethod
    def check(
        cls, y: Any, n_documents: int, sample_weight: Any = None
    ) -> SemiSupervisedLabels:
        """Check labels and weights; documents of weight zero are dropped."""
        values = column_or_1d(label_array(y), warn=True)
        if len(values) != n_documents:
            raise InputError(
                f"`y` has {len(values)} labels, but `X` has {n_documents} documents"
            )
        weights = _check_sample_weight(
            sample_weight, values, dtype=np.float64, ensure_non_negative=True
        )
        if values.dtype.kind == "f" and np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0])
            raise InputError(f"`y` has the label {values[row]} (infinity) in row {row}")
        known = is_labelled(values)
        if not known.any():
            raise InputError(
                f"`y` has no label in any of {n_documents} rows: -1, None, NaN and "
                "blanks stand for documents without label"
            )
        rows = np.flatnonzero(known)
        given = values[rows]
        if values.dtype.kind == "O" and not isinstance(given[0], str):
            given = np.array(given.tolist())
        found = TrainingLabels.check(given, len(rows), weights[rows])
        labels = TrainingLabels(
            found.classes, found.codes, found.weights, rows[found.kept]
        )
        rest = np.flatnonzero(~known & (weights > 0))
        return cls(labels, rest, weights[rest])

    def membership(self, unlabelled_weight: float, like: torch.Tensor) -> Membership:
        """Return weights of the labelled documents, and then of the rest."""
        n, rest = len(self.labels.kept), len(self.unlabelled)
        known = like.new_zeros(n + rest, len(self.labels.classes))
        known[:n] = torch.from_numpy(self.labels.membership.T).to(like)
        unknown = like.new_zeros(n + rest)
        unknown[n:] = unlabelled_weight * torch.from_numpy(self.unlabelled_weights)
        return Membership(known, unknown)
