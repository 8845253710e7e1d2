"""Scikit-learn's own checks of UncertainGaussianClassifier."""

from __future__ import annotations

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma.classifiers import UncertainGaussianClassifier
from docsigma.classifiers._uncertain_documents import UncertainDocuments


class AbsoluteVariances(UncertainGaussianClassifier):
    """Reads any array as means whose variances are their absolute values.

    scikit-learn's checks bring arrays of any width and sign; so every one of them
    goes through EM and the densities of uncertain documents.
    """

    def _from_array(self, X):
        if np.isfinite(X).all():
            return UncertainDocuments.from_columns(np.hstack([X, np.abs(X)]))
        return super()._from_array(X)

    def _n_columns(self, n_components):
        return n_components


@parametrize_with_checks(
    [
        UncertainGaussianClassifier(),
        AbsoluteVariances(layout="mean_variance", tol=1e-4),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
