"""Checks of predicted probabilities and labels, for all metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError


def _columns_of(
    labels: Any, n_documents: int, n_classes: int, classes: Any = None
) -> NDArray[np.intp]:
    """Return the column of each label: its place in `classes`, or the label itself."""
    labels = np.asarray(labels)
    if labels.shape != (n_documents,):
        raise InputError(
            f"`labels` has the shape {labels.shape}, but `probabilities` has "
            f"{n_documents} rows"
        )
    if classes is not None:
        if len(classes) != n_classes:
            raise InputError(
                f"`classes` has {len(classes)} names, but `probabilities` has "
                f"{n_classes} columns"
            )
        index = {name: code for code, name in enumerate(np.asarray(classes).tolist())}
        for label in labels.tolist():
            if label not in index:
                raise InputError(f"`labels` has {label!r}, which is not in `classes`")
        return np.array([index[label] for label in labels.tolist()], dtype=np.intp)
    if labels.dtype.kind not in "iu":
        raise InputError(
            "`labels` must be column numbers if no `classes` are given, got "
            f"labels of type {labels.dtype}"
        )
    if labels.min() < 0 or labels.max() >= n_classes:
        wrong = labels.min() if labels.min() < 0 else labels.max()
        raise InputError(
            f"`labels` has {wrong}, but `probabilities` has {n_classes} columns"
        )
    return np.asarray(labels, dtype=np.intp)


def check_probabilities(
    probabilities: Any, labels: Any, classes: Any = None, *, log: bool = False
) -> tuple[Floats, NDArray[np.intp]]:
    """Return the probabilities as an array, and the column of each label.

    Rows must add up to 1; logarithms are only checked to be at most 0.
    """
    values = np.asarray(probabilities, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(
            f"`probabilities` must be documents x classes, got the shape {values.shape}"
        )
    codes = _columns_of(labels, len(values), values.shape[1], classes)
    # Rounding may put a float32 probability of 1 this far above 1.
    within = values <= 1e-6 if log else (values >= 0) & (values <= 1 + 1e-6)
    if not within.all():
        row, column = np.argwhere(~within)[0]
        rule = "log probabilities are not above 0"
        raise InputError(
            f"`probabilities` has {values[row, column]} in row {row}, column "
            f"{column}; {rule if log else 'probabilities lie between 0 and 1'}"
        )
    if log:
        return values, codes
    sums = values.sum(axis=1)
    # Rounding error of the sum of a few thousand float32 probabilities.
    row = int(np.abs(sums - 1).argmax())
    if abs(sums[row] - 1) > 1e-4:
        raise InputError(
            f"`probabilities` adds up to {sums[row]} in row {row}, not to 1"
        )
    return values, codes
