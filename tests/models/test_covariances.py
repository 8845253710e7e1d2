"""Covariances per call: what a diagonal model gives when asked for more."""

from __future__ import annotations

import numpy as np
import pytest

from docsigma import (
    BayesianSMM,
    GaussianPosterior,
    InputError,
    UncertainGaussianClassifier,
    load_corpus,
    load_model,
)

K = 5
QUICK = {"max_iter": 20, "device": "cpu", "random_state": 0}


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("synthetic")


@pytest.fixture(scope="module")
def model(corpus):
    return BayesianSMM(K, **QUICK).fit(corpus.train.counts)


@pytest.fixture(scope="module")
def posteriors(model, corpus):
    test = corpus.test.counts
    return {
        "diagonal": model.posterior(test),
        "full": model.posterior(test, covariance="full"),
    }


def test_forms(posteriors, model, corpus):
    n = corpus.test.counts.shape[0]
    assert posteriors["diagonal"].covariance is None
    assert posteriors["full"].covariance.shape == (n, K, K)
    for q in posteriors.values():
        assert q.prior == posteriors["diagonal"].prior
        np.testing.assert_array_equal(q.n_tokens, posteriors["diagonal"].n_tokens)
    own = model.posterior(corpus.test.counts, covariance="diagonal")
    np.testing.assert_array_equal(own.variance, posteriors["diagonal"].variance)


def test_perplexity_takes_every_form_and_falls(posteriors, model, corpus):
    found = {
        name: model.perplexity(corpus.test.counts, n_draws=512, posterior=q).corpus
        for name, q in posteriors.items()
    }
    assert found["full"] < found["diagonal"]
    evidence = model.perplexity(
        corpus.test.counts,
        n_draws=2000,
        estimator="importance",
        posterior=posteriors["full"],
    ).corpus
    # A bound lies under the evidence; with full covariances not far.
    assert evidence < found["full"] < evidence + 0.2 * (found["diagonal"] - evidence)


def test_classifier_takes_every_form(posteriors, corpus):
    labels = (posteriors["full"].mean[:, 0] > 0).astype(int)
    predictions = {}
    for name, q in posteriors.items():
        classifier = UncertainGaussianClassifier(max_iter=3).fit(q, labels)
        predictions[name] = classifier.predict_proba(q)
    # Off-diagonals reach the classifier.
    assert np.abs(predictions["full"] - predictions["diagonal"]).max() > 1e-3


def test_point_and_unknown_families_get_one_sentence(model, corpus):
    test = corpus.test.counts
    with pytest.raises(InputError, match="gives points, not Gaussians"):
        model.posterior(test, covariance="point")
    with pytest.raises(InputError, match="one of diagonal, full, point"):
        model.posterior(test, covariance="banded")


def test_a_point_model_gives_gaussians_when_asked(corpus):
    points = BayesianSMM(K, covariance="point", **QUICK).fit(corpus.train.counts)
    with pytest.raises(InputError, match="gives points, not Gaussians"):
        points.posterior(corpus.test.counts)
    assert points.posterior(corpus.test.counts, "full").covariance is not None


def test_a_full_model_trains_saves_and_loads(tmp_path, corpus):
    some = corpus.train.counts[:100]
    model = BayesianSMM(3, covariance="full", **QUICK).fit(some)
    q = model.posterior(some)
    assert q.covariance.shape == (100, 3, 3)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    again = loaded.posterior(some)
    np.testing.assert_allclose(again.covariance, q.covariance, rtol=1e-6)
    q.save(tmp_path / "q.safetensors")
    back = GaussianPosterior.load(tmp_path / "q.safetensors")
    np.testing.assert_array_equal(back.covariance, q.covariance)
