"""scikit-learn's own contract, run on every estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma import BayesianSMM


@parametrize_with_checks([BayesianSMM(n_components=2, max_iter=5, random_state=0)])
def test_estimator_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.mark.release
@parametrize_with_checks(
    [BayesianSMM(n_components=2, max_iter=5, output="mean_variance", l1=0, l2=1)]
)
def test_another_variant_keeps_scikit_learns_contract(estimator, check):
    check(estimator)
