"""Ratios of one shared topic to two, against joint Gaussians and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from docsigma import GaussianPosterior, GaussianPrior, InputError
from docsigma.classifiers import EvidenceClassifier

PRIOR = GaussianPrior.isotropic(1.0, 3)


def draw(rng, y, means, root, G, *, full):
    """Posteriors under N(0, I), what they observe of embeddings, and its noise.

    The noise has the precision c G, with c up to 1: documents of the same shape.
    """
    n, K = len(y), len(G)
    size = np.exp(rng.uniform(np.log(0.01), 0, n))
    w = means[y] + rng.normal(size=(n, K)) @ root.T
    noise = np.linalg.inv(size[:, None, None] * G)
    away = np.einsum("nij,nj->ni", np.linalg.cholesky(noise), rng.normal(size=w.shape))
    observed = w + away
    covariance = np.linalg.inv(np.eye(K) + size[:, None, None] * G)
    mean = np.einsum("nij,jk,nk->ni", covariance * size[:, None, None], G, observed)
    form = {"covariance": covariance}
    if not full:
        form = {"variance": covariance.diagonal(axis1=1, axis2=2)}
    q = GaussianPosterior(mean, prior=PRIOR, n_tokens=size, **form)
    return q, observed, noise


@pytest.fixture(scope="module", params=["full", "diagonal"])
def setting(request):
    rng = np.random.default_rng(2)
    root, other = rng.normal(size=(3, 3)) / 3**0.5, rng.normal(size=(3, 6))
    full = request.param == "full"
    G = 4 * (other @ other.T + np.eye(3))
    if not full:
        G = np.diag(G.diagonal())

    def documents(y, means):
        return draw(rng, y, means, root, G, full=full)

    means = rng.normal(size=(30, 3))
    y = np.arange(1500) % 30
    clf = EvidenceClassifier(priors="uniform").fit(documents(y, means)[0], y)
    return clf, rng, documents


def test_ratios_are_those_of_joint_gaussians(setting):
    """Two observations of one topic are jointly Gaussian: an independent way."""
    clf, rng, documents = setting
    q, seen, noise = documents(np.arange(12) % 5, rng.normal(size=(5, 3)))
    S, B, m = clf.covariance_, clf.between_covariance_, clf.centre_
    expected = np.empty((6, 6))
    for i in range(6):
        for j in range(6):
            a, b = i, 6 + j
            A, C = (B + S + noise[d] for d in (a, b))
            joint = np.block([[A, B], [B, C]])
            together = multivariate_normal(np.concatenate([m, m]), joint)
            apart = [multivariate_normal(m, c) for c in (A, C)]
            expected[i, j] = together.logpdf(np.concatenate([seen[a], seen[b]]))
            expected[i, j] -= apart[0].logpdf(seen[a]) + apart[1].logpdf(seen[b])
    found = clf.same_topic_log_ratio(q[:6], q[6:])
    # The shape is estimated from 1500 precisions less the prior's: four digits of 16
    # are lost where a document has the hundredth part of it.
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    pairs = clf.pairwise_same_topic_log_ratio(q[:6], q[6:])
    np.testing.assert_allclose(pairs, found.diagonal(), rtol=1e-12, atol=1e-12)
    turned = clf.same_topic_log_ratio(q[6:], q[:6])
    np.testing.assert_allclose(turned, found.T, rtol=1e-12, atol=1e-12)


def test_the_evidence_of_a_topic_agrees_with_quadrature():
    rng = np.random.default_rng(0)
    prior = GaussianPrior.isotropic(1.0, 1)
    size = rng.uniform(0.05, 1, 40)
    q = GaussianPosterior(
        rng.normal(size=(40, 1)),
        1 / (1 + 9 * size[:, None]),
        prior=prior,
        n_tokens=size,
    )
    clf = EvidenceClassifier().fit(q, np.repeat([0, 1, 2, 3], 10))
    noise = 1 / (9 * size)
    seen = q.mean[:, 0] * (1 + 9 * size) * noise
    variance = clf.covariance_[0, 0] + noise
    mu, step = np.linspace(-30, 30, 200_001, retstep=True)
    topics = np.exp(-0.5 * (mu - clf.centre_[0]) ** 2 / clf.between_covariance_[0, 0])
    topics /= topics.sum() * step

    def density(d):
        return np.exp(-0.5 * (seen[d] - mu) ** 2 / variance[d])

    together = (density(0) * density(1) * topics).sum() * step
    apart = [(density(d) * topics).sum() * step for d in (0, 1)]
    expected = np.log(together / apart[0] / apart[1])
    found = clf.pairwise_same_topic_log_ratio(q[:1], q[1:2])[0]
    # The trapezoidal rule is exact for Gaussians that the grid holds.
    assert abs(found - expected) < 1e-10


def test_ratios_are_calibrated_on_new_topics(setting):
    """As log odds they beat guessing, and are neither too sure nor too unsure."""
    clf, rng, documents = setting
    n = 4000
    means, y = rng.normal(size=(n, 3)), np.arange(n)
    same = rng.random(n) < 0.5
    left, *_ = documents(y, means)
    right, *_ = documents(np.where(same, y, (y + 1) % n), means)
    ratio = clf.pairwise_same_topic_log_ratio(left, right)

    def loss(log_odds):
        return -np.log(expit(np.where(same, log_odds, -log_odds)).clip(1e-300)).mean()

    # The loss of 4000 pairs has a standard error below 0.015; guessing has 0.693.
    assert loss(ratio) < 0.65
    assert loss(ratio) < min(loss(0.5 * ratio), loss(2 * ratio))


def test_the_spread_of_topics_along_the_axes_is_that_of_their_means():
    """Axes are those of classes and words: here both are diagonal."""
    rng = np.random.default_rng(5)
    means, y = rng.normal(size=(30, 3)) * [2, 1, 0.5], np.arange(6000) % 30
    q, *_ = draw(rng, y, means, np.eye(3), np.diag([4.0, 8.0, 16.0]), full=False)
    found = EvidenceClassifier().fit(q, y)
    # 200 documents tell as much of a mean as 67, 91 or 116 of variance 1 would: a
    # variance of 0.015 at the most. Five standard errors; the prior of a mean is one
    # document more, that of the spread one class more.
    np.testing.assert_allclose(found.centre_, means.mean(axis=0), atol=0.12)
    spread, ours = means.var(axis=0), found.between_covariance_.diagonal()
    atol = 0.015 + 5 * 2 * np.sqrt(0.015 * spread / 30)
    assert (np.abs(ours - spread) < atol + (1 / 31 + 2 / 67) * spread).all()


def test_documents_that_say_nothing_give_no_ratio(setting):
    clf, _, documents = setting
    q, *_ = documents(np.zeros(3, dtype=int), np.zeros((1, 3)))
    silent = GaussianPosterior(
        np.zeros((2, 3)), np.ones((2, 3)), prior=q.prior, n_tokens=[0, 0]
    )
    np.testing.assert_allclose(clf.same_topic_log_ratio(q, silent), 0, atol=1e-12)


def test_pairs_need_as_many_documents(setting):
    clf, _, documents = setting
    q, *_ = documents(np.zeros(5, dtype=int), np.zeros((1, 3)))
    with pytest.raises(InputError, match="`a` has 5 documents, but `b` has 4"):
        clf.pairwise_same_topic_log_ratio(q, q[:4])
