"""Calibration: how far predicted probabilities are from observed frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError
from docsigma.metrics._probabilities import check_probabilities


@dataclass(frozen=True)
class ReliabilityCurve:
    """Predicted and observed frequencies in bins of probability.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Limits of the bins; a bin includes its upper limit.
    counts : ndarray of shape (n_bins,)
        Predictions in each bin.
    confidence : ndarray of shape (n_bins,)
        Mean predicted probability of each bin; NaN if it is empty.
    accuracy : ndarray of shape (n_bins,)
        Observed frequency of each bin; NaN if it is empty.
    """

    edges: Floats
    counts: NDArray[np.intp]
    confidence: Floats
    accuracy: Floats

    @property
    def expected_calibration_error(self) -> float:
        """Absolute difference of the two frequencies, averaged over predictions."""
        used = self.counts > 0
        gaps = np.abs(self.confidence[used] - self.accuracy[used])
        return float(gaps @ self.counts[used] / self.counts.sum())


def reliability_curve(
    probabilities: Any,
    labels: Any,
    n_bins: int = 15,
    strategy: str = "uniform",
    *,
    classes: Any = None,
) -> ReliabilityCurve:
    """Return confidence and accuracy of the most probable class, in bins.

    Parameters
    ----------
    probabilities, labels, classes
        As for :func:`~docsigma.metrics.classification.accuracy`.
    n_bins : int
        Number of bins; equal quantiles are merged into fewer.
    strategy : {"uniform", "quantile"}
        Bins of equal width between 0 and 1, or of equally many predictions.
    """
    values, codes = check_probabilities(probabilities, labels, classes)
    top = values.argmax(axis=1)
    rows = np.arange(len(codes))
    return _curve(values[rows, top], top == codes, n_bins, strategy)


def expected_calibration_error(
    probabilities: Any,
    labels: Any,
    n_bins: int = 15,
    strategy: str = "uniform",
    scope: str = "top_label",
    *,
    classes: Any = None,
) -> float:
    r"""Return the gap between confidence and accuracy, averaged over documents.

    .. math::

        \mathrm{ECE} = \sum_b \frac{n_b}{n}
        \left| \mathrm{accuracy}_b - \mathrm{confidence}_b \right|.

    Parameters
    ----------
    probabilities, labels, classes
        As for :func:`~docsigma.metrics.classification.accuracy`.
    n_bins, strategy
        As for :func:`reliability_curve`.
    scope : {"top_label", "classwise"}
        Error of the most probable class, or the mean over all classes of the error of
        their probabilities.
    """
    if scope == "top_label":
        curve = reliability_curve(
            probabilities, labels, n_bins, strategy, classes=classes
        )
        return curve.expected_calibration_error
    if scope != "classwise":
        raise InputError(f"`scope` must be 'top_label' or 'classwise', got {scope!r}")
    values, codes = check_probabilities(probabilities, labels, classes)
    errors = [
        _curve(column, codes == code, n_bins, strategy).expected_calibration_error
        for code, column in enumerate(values.T)
    ]
    return float(np.mean(errors))


def _curve(
    confidence: Floats, correct: NDArray[np.bool_], n_bins: int, strategy: str
) -> ReliabilityCurve:
    if n_bins < 1:
        raise InputError(f"`n_bins` must be at least 1, got {n_bins}")
    confidence = np.minimum(confidence, 1.0)
    if strategy == "uniform":
        edges = np.linspace(0, 1, n_bins + 1)
    elif strategy == "quantile":
        edges = np.unique(np.quantile(confidence, np.linspace(0, 1, n_bins + 1)))
        if len(edges) == 1:
            edges = np.array([0.0, edges[0]])
    else:
        raise InputError(
            f"`strategy` must be 'uniform' or 'quantile', got {strategy!r}"
        )
    size = len(edges) - 1
    # The lowest bin includes its lower limit as well.
    bins = np.clip(np.searchsorted(edges, confidence) - 1, 0, size - 1)
    counts = np.bincount(bins, minlength=size)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(bins, confidence, minlength=size) / counts
        observed = np.bincount(bins, correct, minlength=size) / counts
    return ReliabilityCurve(edges, counts, mean, observed)
