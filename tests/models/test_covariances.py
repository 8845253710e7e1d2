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
from docsigma.posteriors import LowRank

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
        "low_rank": model.posterior(test, covariance=LowRank(rank=2)),
        "full": model.posterior(test, covariance="full"),
    }


def test_forms(posteriors, model, corpus):
    n = corpus.test.counts.shape[0]
    assert posteriors["diagonal"].covariance is None
    assert posteriors["low_rank"].precision_factor.shape == (n, K, 2)
    assert posteriors["low_rank"].covariance.shape == (n, K, K)
    assert posteriors["full"].covariance.shape == (n, K, K)
    for q in posteriors.values():
        assert q.prior == posteriors["diagonal"].prior
        np.testing.assert_array_equal(q.n_tokens, posteriors["diagonal"].n_tokens)
    named = model.posterior(corpus.test.counts, covariance="low_rank")
    # Sixteen directions, but no more than there are.
    assert named.precision_factor.shape == (n, K, K)
    own = model.posterior(corpus.test.counts, covariance="diagonal")
    np.testing.assert_array_equal(own.variance, posteriors["diagonal"].variance)


def test_perplexity_takes_every_form_and_falls(posteriors, model, corpus):
    found = {
        name: model.perplexity(corpus.test.counts, n_draws=512, posterior=q).corpus
        for name, q in posteriors.items()
    }
    assert found["full"] < found["low_rank"] < found["diagonal"]
    evidence = model.perplexity(
        corpus.test.counts,
        n_draws=2000,
        estimator="importance",
        posterior=posteriors["full"],
    ).corpus
    # A bound lies under the evidence; with full covariances not far.
    assert evidence < found["full"] < evidence + 0.2 * (found["diagonal"] - evidence)


@pytest.mark.parametrize("estimator", ["monte_carlo", "jensen", "importance"])
def test_low_rank_and_expanded_are_one_gaussian(estimator, posteriors, model, corpus):
    low = posteriors["low_rank"]
    expanded = GaussianPosterior(low.mean, covariance=low.covariance)
    values = [
        model.perplexity(
            corpus.test.counts, n_draws=512, estimator=estimator, posterior=q
        )
        for q in (low, expanded)
    ]
    if estimator == "jensen":
        # No draws: only float32 tells them apart.
        assert values[0].corpus == pytest.approx(values[1].corpus, rel=1e-5)
    else:
        # Their roots differ, and so do their draws.
        assert values[0].corpus == pytest.approx(values[1].corpus, rel=2e-3)


def test_classifier_takes_every_form(posteriors, corpus):
    labels = (posteriors["full"].mean[:, 0] > 0).astype(int)
    predictions = {}
    for name, q in posteriors.items():
        classifier = UncertainGaussianClassifier(max_iter=3).fit(q, labels)
        predictions[name] = classifier.predict_proba(q)
    low = posteriors["low_rank"]
    expanded = GaussianPosterior(low.mean, covariance=low.covariance)
    again = UncertainGaussianClassifier(max_iter=3).fit(expanded, labels)
    np.testing.assert_allclose(
        again.predict_proba(expanded), predictions["low_rank"], rtol=1e-6
    )
    # Off-diagonals reach the classifier.
    assert np.abs(predictions["full"] - predictions["diagonal"]).max() > 1e-3


def test_point_and_unknown_families_get_one_sentence(model, corpus):
    test = corpus.test.counts
    with pytest.raises(InputError, match="gives points, no Gaussians"):
        model.posterior(test, covariance="point")
    with pytest.raises(InputError, match="one of diagonal, full, low_rank, point"):
        model.posterior(test, covariance="banded")
    with pytest.raises(InputError, match="`rank` must not be negative, got -1"):
        model.posterior(test, covariance=LowRank(rank=-1))


def test_a_point_model_gives_gaussians_when_asked(corpus):
    points = BayesianSMM(K, covariance="point", **QUICK).fit(corpus.train.counts)
    with pytest.raises(InputError, match="gives points, no Gaussians"):
        points.posterior(corpus.test.counts)
    assert points.posterior(corpus.test.counts, "full").covariance is not None


def test_a_low_rank_model_trains_saves_and_loads(tmp_path, corpus):
    some = corpus.train.counts[:100]
    model = BayesianSMM(3, covariance=LowRank(rank=1), **QUICK).fit(some)
    q = model.posterior(some)
    assert q.precision_factor.shape == (100, 3, 1)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.parts_.covariance.rank == 1
    again = loaded.posterior(some)
    np.testing.assert_allclose(again.covariance, q.covariance, rtol=1e-6)
    q.save(tmp_path / "q.safetensors")
    back = GaussianPosterior.load(tmp_path / "q.safetensors")
    np.testing.assert_array_equal(back.precision_factor, q.precision_factor)
