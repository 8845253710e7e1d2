"""Scikit-learn's own checks of EvidenceClassifier, which reads means and variances.

scikit-learn's checks bring arrays of any width and sign: a step before the classifier
takes them for means and adds small variances.
"""

from __future__ import annotations

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma.classifiers import EvidenceClassifier
from variances import AddVariances

STEPS = "a pipeline fits the very steps that it was given"
LABELS = "-1, NaN and infinity are documents without label"
FAILURES = {
    "check_estimators_overwrite_params": STEPS,
    "check_dont_overwrite_parameters": STEPS,
    "check_classifiers_classes": LABELS,
    "check_supervised_y_no_nan": LABELS,
}


def sharp(**options):
    options = {"prior_precision": 1e-4} | options
    return make_pipeline(AddVariances(least=0.1), EvidenceClassifier(**options))


@parametrize_with_checks([sharp()], expected_failed_checks=lambda _: FAILURES)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.release
@parametrize_with_checks(
    [
        sharp(covariance="diagonal"),
        sharp(tempering=(1, 100)),
        sharp(covariance="diagonal", tempering=(1, 100)),
    ],
    expected_failed_checks=lambda _: FAILURES,
)
def test_scikit_learn_contract_of_every_variant(estimator, check):
    check(estimator)
