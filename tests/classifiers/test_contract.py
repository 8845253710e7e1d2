"""Scikit-learn's own checks of the evidence classifier and the classifier of counts."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma import BayesianSMM
from docsigma.classifiers import CountsClassifier, EvidenceClassifier


def small(kind):
    return CountsClassifier(BayesianSMM(2, max_iter=5, random_state=0), kind)


@parametrize_with_checks([EvidenceClassifier(), small("hybrid")])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.release
@parametrize_with_checks([small(kind) for kind in ("evidence", "glcu", "glc", "lr")])
def test_scikit_learn_contract_of_every_kind(estimator, check):
    check(estimator)
