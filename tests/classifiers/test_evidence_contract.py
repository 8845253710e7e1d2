"""Scikit-learn's own checks of EvidenceClassifier."""

from __future__ import annotations

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma import GaussianPosterior, GaussianPrior
from docsigma.classifiers import EvidenceClassifier


class SharpMeans(EvidenceClassifier):
    """Reads any array as means with small variances.

    scikit-learn's checks bring arrays of any width and sign.
    """

    def _from_array(self, X):
        prior = GaussianPrior.isotropic(1e-4, X.shape[1])
        return GaussianPosterior(X, np.full(X.shape, 0.1), prior=prior)


FIXED = {"tempering": (1, 100)}
FAILURES = {
    "check_classifiers_classes": "-1 is a document without label, as scikit-learn has "
    "it where labels may be missing",
}
FOLDS = "what is chosen on folds depends on how documents are dealt to them"


def expected_failures(estimator):
    weights = "check_sample_weight_equivalence_on_dense_data"
    return FAILURES | ({weights: FOLDS} if estimator.tempering == "auto" else {})


@parametrize_with_checks(
    [
        SharpMeans(),
        SharpMeans(covariance="diagonal"),
        SharpMeans(**FIXED),
        SharpMeans(covariance="diagonal", **FIXED),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
