"""Posteriors with a prior mean per document, where the prior is divided out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from docsigma import (
    EvidenceClassifier,
    GaussianIndex,
    GaussianPosterior,
    GaussianPrior,
    InputError,
)
from docsigma.classifiers._factors import Information

LAMBDA, K, N = 2.0, 3, 40


def posteriors(seed=0):
    """What documents say, as posteriors under one prior and under one each."""
    random = np.random.default_rng(seed)
    shape = np.array([3.0, 1.0, 0.5])
    sizes, points = random.gamma(2, size=N), random.standard_normal((N, K))
    precision = sizes[:, None] * shape
    linear = precision * points
    variance = 1 / (LAMBDA + precision)
    means = random.standard_normal((N, K))
    tokens = np.full(N, 10.0)

    def under(mean):
        prior = GaussianPrior(mean, LAMBDA)
        at = variance * (linear + LAMBDA * prior.mean)
        return GaussianPosterior(at, variance, prior=prior, n_tokens=tokens)

    return under(np.zeros(K)), under(means), linear


def test_what_documents_say_does_not_depend_on_their_prior():
    shared, own, linear = posteriors()
    for q in (shared, own):
        information = Information.of(q, torch.device("cpu"), np.ones(N))
        found = information.factors(q).linear.numpy()
        np.testing.assert_allclose(found, linear, rtol=1e-6)


def test_a_classifier_of_one_kind_predicts_the_other():
    shared, own, _ = posteriors()
    labels = np.where(shared.mean[:, 0] > 0, "high", "low")
    classifier = EvidenceClassifier().fit(shared, labels)
    ours, theirs = (classifier.predict_proba(q) for q in (shared, own))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_an_index_wants_one_prior_for_all():
    shared, own, _ = posteriors()
    index = GaussianIndex()
    index.add(shared)
    assert len(index) == N
    with pytest.raises(InputError, match="each has its own prior mean"):
        GaussianIndex().add(own)
