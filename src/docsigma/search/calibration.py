"""From log ratios to probabilities that two documents are of one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.classifiers import EvidenceClassifier
    from docsigma.posterior import GaussianPosterior


@dataclass(frozen=True)
class SameTopicCalibration:
    """A rising curve from log ratios to probabilities, learned from labelled pairs.

    The probability is that two documents drawn at random, like those of the training
    data, are of one class, given their log ratio.

    Attributes
    ----------
    log_ratios, probabilities : ndarray
        Points of the curve, which is linear between them.
    """

    log_ratios: Floats
    probabilities: Floats

    @classmethod
    def fit(
        cls,
        classifier: EvidenceClassifier,
        posterior: GaussianPosterior,
        labels: Any,
        random_state: int = 0,
    ) -> SameTopicCalibration | None:
        """Learn from pairs of labelled documents; None if there are fewer than 20.

        Parameters
        ----------
        classifier : EvidenceClassifier
            Computes the log ratios.
        posterior : GaussianPosterior
            Documents, preferably not those that the classifier was trained on.
        labels : sequence
            Their labels, None where there is none.
        random_state : int, default=0
            Seed for choosing pairs if there are many.
        """
        names = np.asarray(list(labels), dtype=object)
        if len(names) != len(posterior):
            raise InputError(
                f"there are {len(posterior)} documents but {len(names)} labels"
            )
        known = np.flatnonzero(np.array([name is not None for name in names]))
        if len(known) < 20:
            return None
        known = np.random.default_rng(random_state).permutation(known)
        # Two million pairs are enough.
        left, right = known[:500], known[:4000]
        ratios = classifier.same_topic_log_ratio(posterior[left], posterior[right])
        same = names[left][:, None] == names[right][None, :]
        others = left[:, None] != right[None, :]
        return cls.of_pairs(ratios[others], same[others])

    @classmethod
    def of_pairs(cls, log_ratios: Floats, same: Any) -> SameTopicCalibration | None:
        """Learn from the log ratios of pairs, and whether each is of one class.

        None if all pairs are, or none is.
        """
        same = np.asarray(same, dtype=np.float64)
        if not 0 < same.mean() < 1:
            return None
        # As if one more pair of each kind had been seen: no probability is 0 or 1.
        least = 1 / (len(same) + 2)
        curve = IsotonicRegression(y_min=least, y_max=1 - least)
        curve.fit(log_ratios, same)
        x, y = curve.X_thresholds_, curve.y_thresholds_
        if len(x) > 200:
            chosen = np.unique(np.linspace(0, len(x) - 1, 200).round().astype(int))
            x, y = x[chosen], y[chosen]
        return cls(np.asarray(x, np.float64), np.asarray(y, np.float64))

    def predict(self, log_ratios: Any) -> Floats:
        """Return the probability of one class for each log ratio."""
        found = np.interp(log_ratios, self.log_ratios, self.probabilities)
        return np.asarray(found, dtype=np.float64)
