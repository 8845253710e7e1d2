from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from docsigma import GaussianPosterior, GaussianPrior, InputError
from docsigma.classifiers import EvidenceClassifier
from evidence_draws import draw_classes, draw_documents

FORMS = ["full", "diagonal"]


@pytest.fixture(scope="module", params=FORMS)
def setting(request):
    rng = np.random.default_rng(2)
    means, root = draw_classes(rng, 3, 30)
    if request.param == "diagonal":
        root = np.diag([0.5, 0.8, 1.0])
    q, y = draw_documents(rng, 1500, means, root)
    clf = EvidenceClassifier(covariance=request.param, tempering=(1, 1e15))
    return clf.fit(q, y), rng, root


def sights(q):
    """Unbiased sights of the embeddings and their noise, from N(0, I) posteriors."""
    P = 1 / q.variance - 1
    return q.mean / q.variance / P, 1 / P


def test_ratios_are_those_of_joint_gaussians(setting):
    """Two sights of one topic are jointly Gaussian: an independent way to the ratio."""
    clf, rng, root = setting
    means, _ = draw_classes(rng, 3, 5)
    q, _ = draw_documents(rng, 12, means, root)
    seen, noise = sights(q)
    S, B = clf.covariance_, clf.between_covariance_
    expected = np.empty((6, 6))
    for i in range(6):
        for j in range(6):
            a, b = i, 6 + j
            A, C = (B + S + np.diag(noise[d]) for d in (a, b))
            joint = np.block([[A, B], [B, C]])
            m = clf.centre_
            together = multivariate_normal(np.concatenate([m, m]), joint)
            apart = [multivariate_normal(m, c) for c in (A, C)]
            expected[i, j] = together.logpdf(np.concatenate([seen[a], seen[b]]))
            expected[i, j] -= apart[0].logpdf(seen[a]) + apart[1].logpdf(seen[b])
    found = clf.same_topic_log_ratio(q[:6], q[6:])
    # Precisions of 0.05 to 15 are 1 / variance - 1: two digits are lost, twice.
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    pairs = clf.pairwise_same_topic_log_ratio(q[:6], q[6:])
    np.testing.assert_allclose(pairs, found.diagonal(), rtol=1e-12, atol=1e-12)


def test_the_evidence_of_a_topic_agrees_with_quadrature():
    rng = np.random.default_rng(0)
    prior = GaussianPrior.isotropic(1.0, 1)
    q = GaussianPosterior(
        rng.normal(size=(40, 1)), rng.uniform(0.1, 0.9, (40, 1)), prior=prior
    )
    clf = EvidenceClassifier(tempering=(1, 1e9)).fit(q, np.repeat([0, 1, 2, 3], 10))
    seen, noise = (values[:, 0] for values in sights(q))
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
    assert abs(found - expected) < 1e-10


def test_ratios_are_calibrated_on_new_topics(setting):
    """As log odds they beat guessing, and are neither too sure nor too unsure."""
    clf, rng, root = setting
    means, _ = draw_classes(rng, 3, 2000)
    left, y = draw_documents(rng, 2000, means, root)
    same = rng.random(2000) < 0.5
    partner = np.where(same, y, (y + 1) % 2000)
    w = means[partner] + rng.normal(size=(2000, 3)) @ root.T
    P = 1 / left.variance - 1
    h = P * w + np.sqrt(P) * rng.normal(size=P.shape)
    right = GaussianPosterior(
        h / (P + 1), 1 / (P + 1), prior=left.prior, n_tokens=left.n_tokens
    )
    ratio = clf.pairwise_same_topic_log_ratio(left, right)

    def loss(log_odds):
        return -np.log(expit(np.where(same, log_odds, -log_odds)).clip(1e-300)).mean()

    # The loss of 2000 pairs has a standard error below 0.02; guessing has 0.693.
    assert loss(ratio) < 0.65
    assert loss(ratio) < min(loss(0.5 * ratio), loss(2 * ratio))


def test_documents_that_say_nothing_give_no_ratio(setting):
    clf, rng, root = setting
    q, _ = draw_documents(rng, 3, np.zeros((1, 3)), root)
    silent = GaussianPosterior(
        np.zeros((2, 3)), np.ones((2, 3)), prior=q.prior, n_tokens=[0, 0]
    )
    np.testing.assert_allclose(clf.same_topic_log_ratio(q, silent), 0, atol=1e-12)


def test_pairs_need_as_many_documents(setting):
    clf, rng, root = setting
    q, _ = draw_documents(rng, 5, np.zeros((1, 3)), root)
    with pytest.raises(InputError, match="`a` has 5 documents, but `b` has 4"):
        clf.pairwise_same_topic_log_ratio(q, q[:4])
