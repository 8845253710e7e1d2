"""A linear support vector machine on words and pairs of words."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from docsigma._array_checks import Floats

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Margins:
    """Each class against the rest: features x classes, and intercepts.

    The scores are twice the margins, so that those of a document at the margins of a
    class and of its rest are as far apart as their log odds by a logistic curve.
    """

    coefficients: Floats
    intercept: Floats

    @classmethod
    def fit(
        cls,
        features: sp.csr_matrix,
        codes: NDArray[np.intp],
        weights: Floats,
        n_classes: int,
        C: float,
    ) -> Margins:
        """Train on labelled documents; a class that has none is outside all margins."""
        machine = LinearSVC(C=C, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # One label per class is nothing to warn of.
            warnings.filterwarnings("ignore", "The number of unique classes")
            machine.fit(features, codes, weights)
        found, offset = machine.coef_.T, machine.intercept_
        if len(machine.classes_) == 2:
            found, offset = np.hstack([-found, found]), np.append(-offset, offset)
        coefficients = np.zeros((features.shape[1], n_classes))
        intercept = np.full(n_classes, -1.0)
        coefficients[:, machine.classes_] = found
        intercept[machine.classes_] = offset
        return cls(2 * coefficients, 2 * intercept)

    def scores(self, features: sp.csr_matrix) -> Floats:
        """Return the scores of the classes."""
        return np.asarray(features @ self.coefficients + self.intercept)

    def log_proba(self, features: sp.csr_matrix) -> Floats:
        """Return the scores as log probabilities, which are not calibrated."""
        return np.asarray(log_softmax(self.scores(features), axis=1))
