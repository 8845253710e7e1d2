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
    n_tokens : ndarray of shape (n,) or None
        Lengths of the calibration documents, for thresholds by length.

    Examples
    --------
    >>> sets = PredictionSets.calibrate([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], [0, 1, 1])
    >>> sets.contains([[0.7, 0.3], [0.5, 0.5]], coverage=0.7)
    array([[ True, False],
           [ True,  True]])
    """

    true_probabilities: Floats
    top_probabilities: Floats
    n_tokens: Floats | None = None

    @classmethod
    def calibrate(
        cls,
        probabilities: Any,
        labels: Any,
        *,
        classes: Any = None,
        n_tokens: Any = None,
    ) -> PredictionSets:
        """Learn from documents that the classifier was not trained on.

        Parameters
        ----------
        probabilities, labels, classes
            As for :func:`~docsigma.metrics.classification.accuracy`.
        n_tokens : array-like of shape (n_documents,), optional
            Lengths of the documents.
        """
        values, codes = check_probabilities(probabilities, labels, classes)
        true = values[np.arange(len(codes)), codes]
        return cls(true, values.max(axis=1), _lengths(n_tokens, len(true)))

    def to_array(self) -> Floats:
        """Return the calibration documents as an array of three rows, for files."""
        lengths = self.n_tokens
        if lengths is None:
            lengths = np.full(len(self), np.nan)
        return np.stack([self.true_probabilities, self.top_probabilities, lengths])

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

    def thresholds(self, coverage: float, edges: Any = ()) -> Floats:
        """Return the least probability of a class in a set, per band of length.

        Bands begin at the lengths in `edges`, which rise. The threshold is 0, and a set
        holds all classes, where a band has too few documents to promise the coverage.
        """
        if not 0 < coverage < 1:
            raise InputError(f"`coverage` must be between 0 and 1, got {coverage:g}")
        band = _bands(self.n_tokens, edges, len(self.true_probabilities))
        found = np.zeros(len(edges) + 1)
        for number in range(len(found)):
            true = np.sort(self.true_probabilities[band == number])
            rank = int(np.ceil((len(true) + 1) * coverage - 1e-9))
            if rank <= len(true):
                found[number] = true[len(true) - rank]
        return found

    def contains(
        self,
        probabilities: Any,
        coverage: float = 0.9,
        *,
        n_tokens: Any = None,
        edges: Any = (),
    ) -> NDArray[np.bool_]:
        """Return which classes are in the sets, documents x classes.

        Parameters
        ----------
        probabilities : array-like of shape (n_documents, n_classes)
            Predicted probabilities.
        coverage : float
            Share of documents whose set is to hold the true class.
        n_tokens : array-like of shape (n_documents,), optional
            Lengths of the documents; needed where there are `edges`.
        edges : array-like of float
            Lengths at which a new band begins, rising: the coverage then holds in each
            band, and not only over all documents.
        """
        values = np.asarray(probabilities, dtype=np.float64)
        band = _bands(_lengths(n_tokens, len(values)), edges, len(values))
        thresholds = self.thresholds(coverage, edges)
        return np.asarray(values >= thresholds[band][:, None])


def length_bands(n_tokens: Any, n_bands: int) -> Floats:
    """Return edges that deal documents evenly to bands of length.

    Examples
    --------
    >>> length_bands([1, 2, 3, 4, 5, 6, 7], 2)
    array([4.])
    """
    shares = np.arange(1, n_bands) / n_bands
    return np.unique(np.quantile(np.asarray(n_tokens, dtype=np.float64), shares))


def _lengths(n_tokens: Any, n_documents: int) -> Floats | None:
    if n_tokens is None:
        return None
    lengths = np.asarray(n_tokens, dtype=np.float64)
    if lengths.shape != (n_documents,):
        raise InputError(
            f"`n_tokens` has the shape {lengths.shape}, but there are {n_documents} "
            "documents"
        )
    return lengths


def _bands(n_tokens: Floats | None, edges: Any, n_documents: int) -> NDArray[np.intp]:
    if not len(edges):
        return np.zeros(n_documents, dtype=np.intp)
    if n_tokens is None:
        raise InputError(
            f"`n_tokens` is missing, and documents go to {len(edges) + 1} bands by it"
        )
    return np.searchsorted(np.asarray(edges), n_tokens, side="right")
