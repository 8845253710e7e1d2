"""Linear classifiers of scikit-learn, on documents that have weights in the classes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from docsigma._array_checks import Floats

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC


@dataclass(frozen=True)
class LinearScores:
    """Scores that are linear in features: features x classes, and intercepts."""

    coefficients: Floats
    intercept: Floats

    @classmethod
    def fit(
        cls, machine: LinearSVC | LogisticRegression, features: Any, targets: Floats
    ) -> LinearScores:
        """Train on documents that have weights in the classes.

        Each document is trained on for its heaviest class, with the weight that it has
        there. A class of no document is less probable than one of a single document.
        """
        rows, n_classes = np.flatnonzero(targets.any(axis=1)), targets.shape[1]
        features, targets = features[rows], targets[rows]
        codes, weights = targets.argmax(axis=1), targets.max(axis=1)
        # Steps take a millisecond: threads of BLAS only wait for each other.
        with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
            warnings.simplefilter("ignore", ConvergenceWarning)
            # One label per class is nothing to warn of.
            warnings.filterwarnings("ignore", "The number of unique classes")
            machine.fit(features, codes, weights)
        found, offset = machine.coef_.T, machine.intercept_
        if len(machine.classes_) == 2:
            found, offset = (
                np.hstack([-found, found]) / 2,
                np.append(-offset, offset) / 2,
            )
        coefficients = np.zeros((features.shape[1], n_classes))
        intercept = np.full(n_classes, -np.log1p(weights.sum()))
        coefficients[:, machine.classes_] = found
        intercept[machine.classes_] = offset
        return cls(coefficients, intercept)

    def scores(self, features: Any) -> Floats:
        """Return the scores of the classes."""
        return np.asarray(features @ self.coefficients + self.intercept)

    def log_proba(self, features: Any) -> Floats:
        """Return the scores as log probabilities, which are not calibrated."""
        return np.asarray(log_softmax(self.scores(features), axis=1))
