"""Prediction sets that hold the true class as often as was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError
from docsigma.metrics._probabilities import check_probabilities


@dataclass(frozen=True)
class PredictionSets:
    r"""Split conformal prediction: the classes that are probable enough, calibrated.

    A class is in a document's set if its probability is not below a threshold: the
    :math:`\lceil (n + 1) c \rceil`-th largest probability that the true classes of n
    calibration documents got, for the coverage c. If all documents are drawn alike, a
    set holds the true class with a probability of at least c, and of at most
    :math:`c + 1/(n+1)` without ties, whatever the classifier. Sets may be empty: then
    no class is probable enough.

    Attributes
    ----------
    true_probabilities : ndarray of shape (n,)
        What the true classes of the calibration documents got.
    top_probabilities : ndarray of shape (n,)
        What their most probable classes got: more than the true ones where the
        prediction was wrong.

    Examples
    --------
    >>> sets = PredictionSets.calibrate([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], [0, 1, 1])
    >>> sets.contains([[0.7, 0.3], [0.5, 0.5]], coverage=0.7)
    array([[ True, False],
           [ True,  True]])
    """

    true_probabilities: Floats
    top_probabilities: Floats

    @classmethod
    def calibrate(
        cls,
        probabilities: Any,
        labels: Any,
        *,
        classes: Any = None,
    ) -> PredictionSets:
        """Learn from documents that the classifier was not trained on.

        Parameters
        ----------
        probabilities, labels, classes
            As for :func:`~docsigma.metrics.classification.accuracy`.
        """
        values, codes = check_probabilities(probabilities, labels, classes)
        true = values[np.arange(len(codes)), codes]
        return cls(true, values.max(axis=1))

    @classmethod
    def of_array(cls, array: Any = ((), ())) -> PredictionSets:
        """Restore what :meth:`to_array` returned; empty without an array."""
        return cls(*np.asarray(array, dtype=np.float64)[:2])

    def to_array(self) -> Floats:
        """Return the calibration documents as an array of two rows, for files."""
        return np.stack([self.true_probabilities, self.top_probabilities])

    def __len__(self) -> int:
        return len(self.true_probabilities)

    def reject_threshold(
        self, *, risk: float | None = None, coverage: float | None = None
    ) -> float:
        """Return the least top probability to answer at; a human takes the rest.

        Parameters
        ----------
        risk : float, optional
            At most this share of the answers is wrong, and as many documents as
            possible are answered. One more wrong answer than the calibration documents
            have is allowed for. Infinite if no threshold does that: a risk of 0.01
            takes 99 documents at the least.
        coverage : float, optional
            At least this share of them is answered. Give one of the two.
        """
        if not len(self):
            raise InputError("there are no calibration documents to choose from")
        ranked = np.sort(self.top_probabilities)[::-1]
        if risk is None:
            if coverage is None:
                raise InputError("give one of `risk` and `coverage`, got neither")
            if not 0 < coverage <= 1:
                raise InputError(
                    f"`coverage` must be above 0 and at most 1, got {coverage:g}"
                )
            return float(ranked[int(np.ceil(coverage * len(self) - 1e-9)) - 1])
        if coverage is not None:
            raise InputError("give one of `risk` and `coverage`, not both")
        if not 0 < risk <= 1:
            raise InputError(f"`risk` must be above 0 and at most 1, got {risk:g}")
        order = np.argsort(-self.top_probabilities, kind="stable")
        wrong = (self.true_probabilities < self.top_probabilities)[order]
        share = (np.cumsum(wrong) + 1) / np.arange(2, len(self) + 2)
        # Documents of equal probability are answered together.
        last = np.append(ranked[1:] != ranked[:-1], True)
        allowed = np.flatnonzero(last & (share <= risk))
        return float(ranked[allowed[-1]]) if len(allowed) else float("inf")

    def threshold(self, coverage: float) -> float:
        """Return the least probability of a class in a set.

        It is 0, and a set holds all classes, where there are too few documents to
        promise the coverage.
        """
        if not 0 < coverage < 1:
            raise InputError(f"`coverage` must be between 0 and 1, got {coverage:g}")
        rank = int(np.ceil((len(self) + 1) * coverage - 1e-9))
        true = np.sort(self.true_probabilities)
        return float(true[len(true) - rank]) if rank <= len(true) else 0.0

    def contains(self, probabilities: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Return which classes are in the sets, documents x classes.

        Parameters
        ----------
        probabilities : array-like of shape (n_documents, n_classes)
            Predicted probabilities.
        coverage : float
            Share of documents whose set is to hold the true class.
        """
        values = np.asarray(probabilities, dtype=np.float64)
        return np.asarray(values >= self.threshold(coverage))
