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


# Generic checks bring arrays that are not [mean, variance]. All of these checks run
# on the two classifiers below, and here fail for one of two reasons:
ODD = "brings an odd number of columns, which cannot be means and variances"
NEGATIVE = "brings negative numbers where the variances are"
EXPECTED_FAILURES = {
    "check_dict_unchanged": ODD,
    "check_dont_overwrite_parameters": ODD,
    "check_estimators_dtypes": ODD,
    "check_estimators_nan_inf": ODD,
    "check_estimators_pickle": ODD,
    "check_f_contiguous_array_estimator": ODD,
    "check_fit2d_predict1d": ODD,
    "check_fit_score_takes_y": ODD,
    "check_methods_sample_order_invariance": ODD,
    "check_methods_subset_invariance": ODD,
    "check_pipeline_consistency": ODD,
    "check_sample_weights_list": ODD,
    "check_supervised_y_2d": ODD,
    "check_classifiers_classes": NEGATIVE,
    "check_classifiers_train": NEGATIVE,
    "check_estimators_fit_returns_self": NEGATIVE,
    "check_estimators_overwrite_params": NEGATIVE,
    "check_n_features_in_after_fitting": NEGATIVE,
    "check_positive_only_tag_during_fit": NEGATIVE,
    "check_readonly_memmap_input": NEGATIVE,
}


@parametrize_with_checks(
    [UncertainGaussianClassifier(uncertainty="none"), AbsoluteVariances(tol=1e-4)]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [UncertainGaussianClassifier()],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learn_contract_as_columns(estimator, check):
    check(estimator)
