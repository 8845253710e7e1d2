"""What an earlier docsigma wrote still loads, and computes what it did then.

``tests/data/saved-before/make.py`` says which commit wrote the files, and how.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from docsigma import BayesianSMM, GaussianPosterior
from docsigma.classifiers import CountsClassifier
from docsigma_paper import NVDM, SMM

FOLDER = Path(__file__).parent / "data" / "saved-before"
SINGLE, DOUBLE = np.finfo(np.float32).eps, np.finfo(np.float64).eps


@pytest.fixture(scope="module")
def expected():
    return json.loads((FOLDER / "expected.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def counts(expected):
    return np.array(expected["counts"], dtype=np.float32)


def assert_same_posterior(q, stored):
    # Inference ends when a mean would move by 1e-4 of its standard deviation, and a
    # variance by 1e-4 of itself: `inference_tol` of the stored models.
    deviation = np.sqrt(stored["variance"])
    assert (np.abs(q.mean - stored["mean"]) < 1e-3 * deviation).all()
    np.testing.assert_allclose(q.variance, stored["variance"], rtol=1e-3)


def test_bayesian_smm(expected, counts):
    model = BayesianSMM.load(FOLDER / "bayesian-smm").set_params(device="cpu")
    assert model.inference_tol == 1e-4
    q = model.posterior(counts)
    assert_same_posterior(q, expected["bayesian-smm"])
    np.testing.assert_array_equal(model.transform(counts), q.mean)
    assert list(model.vocabulary_.words[:2]) == ["word000", "word001"]


def test_smm(expected, counts):
    model = SMM.load(FOLDER / "smm").set_params(device="cpu")
    assert model.inference_tol == 1e-4
    # No point is known better than to the standard deviation of its posterior, which
    # is at most the prior's.
    deviation = model.prior_precision**-0.5
    stored = expected["smm"]["mean"]
    np.testing.assert_allclose(
        model.transform(counts), stored, rtol=0, atol=1e-3 * deviation
    )


def test_nvdm(expected, counts):
    model = NVDM.load(FOLDER / "nvdm").set_params(device="cpu")
    q, stored = model.posterior(counts), expected["nvdm"]
    # One pass through the encoder: each number is a sum over words, then two over
    # hidden units, so the order of the terms moves it by so many roundings at most.
    terms = counts.shape[1] + 2 * model.hidden_units
    for found, name in ((q.mean, "mean"), (q.variance, "variance")):
        largest = np.abs(stored[name]).max()
        np.testing.assert_allclose(
            found, stored[name], rtol=0, atol=terms * SINGLE * largest
        )


def test_diagonal_posterior(expected):
    q = GaussianPosterior.load(FOLDER / "posterior.safetensors")
    assert q.covariance is None
    for name, values in expected["bayesian-smm"].items():
        np.testing.assert_array_equal(getattr(q, name), np.float32(values))


def test_full_posterior(expected):
    q = GaussianPosterior.load(FOLDER / "posterior-full.safetensors")
    mean = np.float32(expected["bayesian-smm"]["mean"])
    np.testing.assert_array_equal(q.mean, mean)
    np.testing.assert_array_equal(
        q.covariance, expected["posterior-full"]["covariance"]
    )


@pytest.mark.parametrize("name", ["glcu", "glcu-none", "glc", "lr"])
def test_classifier(expected, counts, tmp_path, name):
    topics = CountsClassifier.load(FOLDER / f"classifier-{name}")
    stored = expected[f"classifier-{name}"]
    q = GaussianPosterior.load(FOLDER / "posterior.safetensors")
    assert topics.classes_.tolist() == stored["classes"]
    # All arithmetic is float64. A triangular solve may lose as many roundings as its
    # size, 3, times the condition number, below 10; scores lie below 10.
    log_proba = topics.predict_log_proba(q)
    np.testing.assert_allclose(
        log_proba, stored["log_proba"], rtol=0, atol=3 * 10 * 10 * DOUBLE
    )
    assert_same_posterior(
        topics.model.set_params(device="cpu").posterior(counts),
        expected["bayesian-smm"],
    )
    if name.startswith("glcu"):
        # GLCU that took the means of posteriors only was GLC.
        assert topics.kind == name.replace("glcu-none", "glc")
        assert topics.classifier.n_features_in_ == 3
        topics.classifier.predict(q.mean)
    topics.save(tmp_path / "again")
    again = CountsClassifier.load(tmp_path / "again")
    np.testing.assert_array_equal(again.predict_log_proba(q), log_proba)
