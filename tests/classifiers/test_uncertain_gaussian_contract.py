"""Scikit-learn's own checks of UncertainGaussianClassifier, and a GPU against a CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
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


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_gpu_gives_the_cpus_probabilities():
    random = np.random.default_rng(0)
    y = random.integers(0, 4, 600)
    means = random.standard_normal((4, 60))[y] + random.standard_normal((600, 60))
    X = np.hstack([means, random.uniform(0.1, 2.0, means.shape)])
    cpu = UncertainGaussianClassifier(layout="mean_variance", device="cpu").fit(X, y)
    gpu = UncertainGaussianClassifier(layout="mean_variance", device="cuda").fit(X, y)
    np.testing.assert_allclose(gpu.covariance_, cpu.covariance_, atol=1e-8)
    np.testing.assert_allclose(gpu.predict_proba(X), cpu.predict_proba(X), atol=1e-8)
