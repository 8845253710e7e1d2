"""Scikit-learn's own checks of UncertainGaussianClassifier."""

from __future__ import annotations

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma.classifiers import UncertainGaussianClassifier
from variances import AddVariances

STEPS = "a pipeline fits the very steps that it was given"
FAILURES = {
    "check_estimators_overwrite_params": STEPS,
    "check_dont_overwrite_parameters": STEPS,
}


@parametrize_with_checks([UncertainGaussianClassifier()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.release
@parametrize_with_checks(
    [
        make_pipeline(
            AddVariances(share=1.0),
            UncertainGaussianClassifier(layout="mean_variance", tol=1e-4),
        )
    ],
    expected_failed_checks=lambda _: FAILURES,
)
def test_scikit_learn_contract_with_variances(estimator, check):
    check(estimator)
