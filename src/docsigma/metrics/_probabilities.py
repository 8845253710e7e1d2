"""Predicted probabilities and labels, checked once for every metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_labels", "check_probabilities"]


def check_labels(
    labels: Any, n_documents: int, n_classes: int, classes: Any = None
) -> NDArray[np.intp]:
    """Index of the column of each label.

    Labels are names out of `classes`, or column numbers where there are none.
    """
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
        try:
            codes = [index[label] for label in labels.tolist()]
        except KeyError as error:
            raise InputError(
                f"`labels` has {error.args[0]!r}, which is not in `classes`"
            ) from None
        return np.array(codes, dtype=np.intp)
    if labels.dtype.kind not in "iu":
        raise InputError(
            "`labels` must be column numbers where no `classes` are given, got "
            f"labels of type {labels.dtype}"
        )
    if labels.min() < 0 or labels.max() >= n_classes:
        wrong = labels.min() if labels.min() < 0 else labels.max()
        raise InputError(
            f"`labels` has {wrong}, but `probabilities` has {n_classes} columns"
        )
    return np.asarray(labels, dtype=np.intp)


def check_probabilities(
    probabilities: Any, labels: Any, classes: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Probabilities, documents x classes, whose rows add up to 1, and label codes."""
    values = np.asarray(probabilities, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(
            f"`probabilities` must be documents x classes, got the shape {values.shape}"
        )
    codes = check_labels(labels, len(values), values.shape[1], classes)
    bad = np.argwhere(~((values >= 0) & (values <= 1 + 1e-6)))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"`probabilities` has {values[row, column]} in row {row}, column "
            f"{column}; probabilities lie between 0 and 1"
        )
    sums = values.sum(axis=1)
    # Float32 probabilities of a few thousand classes add up to this.
    row = int(np.abs(sums - 1).argmax())
    if abs(sums[row] - 1) > 1e-4:
        raise InputError(
            f"`probabilities` adds up to {sums[row]} in row {row}, not to 1"
        )
    return values, codes
