"""Gaussian classes against full matrices, quadrature and known models."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import log_softmax
from scipy.stats import multivariate_normal

from docsigma import GaussianPosterior, GaussianPrior
from docsigma.classifiers import EvidenceClassifier, _class_gaussians
from docsigma.classifiers._class_gaussians import (
    ClassGaussians,
    _ascend,
    expected_scatter,
    left_out,
    overall,
)
from docsigma.classifiers._factors import Factors, Information

CPU = torch.device("cpu")


def positive(rng, K):
    root = rng.normal(size=(K, 2 * K))
    return root @ root.T / (2 * K)


def draw_classes(rng, n, K, n_classes):
    """Information, factors and classes, all at random, as NumPy and torch."""
    G, within = positive(rng, K), positive(rng, K)
    means, size = rng.normal(size=(n_classes, K)), rng.uniform(0.5, 20, n)
    linear = rng.normal(size=(n, K)) * np.sqrt(size)[:, None]
    as_tensor = torch.from_numpy
    information = Information(
        as_tensor(G), torch.zeros(K).double(), torch.eye(K).double()
    )
    classes = ClassGaussians(information, as_tensor(means), as_tensor(within))
    every = torch.ones(n, dtype=torch.float64)
    factors = Factors(as_tensor(linear), as_tensor(size), every)
    return classes, factors, (G, within, means, linear, size)


def log_marginals(G, within, means, linear, size):
    """The factor is a sight (cG)^-1 h of the embedding with the noise (cG)^-1."""
    found = np.empty((len(size), len(means)))
    for d, (h, c) in enumerate(zip(linear, size, strict=True)):
        noise = np.linalg.inv(c * G)
        seen = noise @ h
        empty = multivariate_normal(np.zeros(len(h)), noise).logpdf(seen)
        for k, mean in enumerate(means):
            found[d, k] = multivariate_normal(mean, within + noise).logpdf(seen)
        found[d] -= empty
    return found


@pytest.mark.parametrize("K", [1, 2, 5])
def test_scores_are_gaussian_marginals(K):
    classes, factors, parts = draw_classes(np.random.default_rng(K), 20, K, 3)
    ours = classes.scores(factors) + classes.constants(factors)[:, None]
    np.testing.assert_allclose(ours, log_marginals(*parts), rtol=1e-9, atol=1e-9)


def test_scores_agree_with_quadrature():
    classes, factors, parts = draw_classes(np.random.default_rng(7), 5, 1, 2)
    G, within, means, linear, size = parts
    ours = classes.scores(factors) + classes.constants(factors)[:, None]
    for d in range(5):
        for k in range(2):

            def density(w, d=d, k=k):
                factor = linear[d, 0] * w - size[d] * G[0, 0] * w**2 / 2
                away = -((w - means[k, 0]) ** 2) / within[0, 0] / 2
                return np.exp(factor + away) / np.sqrt(2 * np.pi * within[0, 0])

            precision = size[d] * G[0, 0] + 1 / within[0, 0]
            centre = (linear[d, 0] + means[k, 0] / within[0, 0]) / precision
            wide = 12 / np.sqrt(precision)
            value, _ = quad(density, centre - wide, centre + wide, epsrel=1e-12)
            np.testing.assert_allclose(ours[d, k], np.log(value), atol=1e-10)


def full_likelihood(G, factors, weights, means, within):
    """Return the weighted log likelihood by full matrices, for autograd."""
    total = torch.zeros(()).double()
    for h, c, own in zip(factors.linear, factors.size, weights, strict=True):
        noise = torch.linalg.inv(c * G)
        for mean, weight in zip(means, own, strict=True):
            if weight > 0:
                normal = torch.distributions.MultivariateNormal(mean, within + noise)
                total = total + weight * normal.log_prob(noise @ h)
    return total


def test_em_ends_where_the_penalised_likelihood_is_flat(monkeypatch):
    monkeypatch.setattr(_class_gaussians, "TOLERANCE", 0.0)
    rng = np.random.default_rng(0)
    K = 2
    classes, factors, _ = draw_classes(rng, 40, K, 3)
    known = torch.eye(3).double()[torch.arange(40) % 3]
    known *= torch.from_numpy(rng.uniform(0.5, 2, (40, 1)))
    centre, start = torch.ones(K).double() / 3, torch.eye(K).double() / 2
    found = _ascend(classes, factors, known, None, centre, start, steps=2000)
    means = found.means.clone().requires_grad_()
    within = found.within.clone().requires_grad_()
    G = classes.information.matrix
    likelihood = full_likelihood(G, factors, known, means, within)
    # Means come from N(m, Sigma) with the present Sigma, and Sigma from K documents.
    precision = torch.linalg.inv(found.within)
    away = means - centre
    of_means = likelihood - torch.einsum("ki,ij,kj->", away, precision, away) / 2
    of_within = likelihood - K / 2 * (
        torch.logdet(within) + torch.trace(torch.linalg.solve(within, start))
    )
    (slope,) = torch.autograd.grad(of_means, means, retain_graph=True)
    (other,) = torch.autograd.grad(of_within, within)
    np.testing.assert_allclose(slope, 0, atol=1e-7)
    np.testing.assert_allclose(other + other.mT, 0, atol=1e-7)


def test_a_step_of_em_raises_the_penalised_likelihood():
    rng = np.random.default_rng(1)
    classes, factors, _ = draw_classes(rng, 40, 2, 1)
    known = torch.ones(40, 1).double()
    start, G = torch.eye(2).double(), classes.information.matrix
    values = []
    for _ in range(30):
        precision = torch.linalg.inv(classes.within)
        penalty = torch.logdet(classes.within) + torch.trace(precision @ start)
        found = full_likelihood(G, factors, known, classes.means, classes.within)
        # A prior mean at the mean: what is left of the prior is of the covariance.
        values.append(float(found - penalty))
        classes = _ascend(
            classes, factors, known, None, classes.means[0], start, steps=1
        )
    assert (np.diff(values) > -1e-10).all()
    assert values[-1] > values[0] + 1


def shared_shape(rng, G, prior, size, *, full):
    """Posteriors whose precisions are that of the prior and c G."""
    K = len(G)
    precision = prior.precision_matrix() + size[:, None, None] * G
    mean = rng.normal(size=(len(size), K))
    carried = {"prior": prior, "n_tokens": size}
    if full:
        return GaussianPosterior(mean, covariance=np.linalg.inv(precision), **carried)
    variance = 1 / precision.diagonal(axis1=1, axis2=2)
    return GaussianPosterior(mean, variance, **carried)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("full_prior", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_information_and_sizes_are_recovered(full, full_prior, weighted):
    rng = np.random.default_rng(5)
    K, size = 4, rng.uniform(1, 50, 30)
    G = positive(rng, K)
    if not full:
        G = np.diag(G.diagonal())
    precision = positive(rng, K) if full_prior else rng.uniform(1, 3, K)
    prior = GaussianPrior(rng.normal(size=K), precision)
    q = shared_shape(rng, G, prior, size, full=full)
    weights = rng.uniform(0, 2, 30) if weighted else np.ones(30)
    information = Information.of(q, CPU, weights)
    np.testing.assert_allclose(information.matrix, G, rtol=1e-9, atol=1e-10)
    factors = information.factors(q)
    np.testing.assert_allclose(factors.size, size, rtol=1e-9)
    # h = (Lambda + cG) nu - Lambda m0.
    own = prior.precision_matrix() + size[:, None, None] * G
    expected = np.einsum("nij,nj->ni", own, q.mean)
    expected -= prior.precision_matrix() @ prior.mean
    np.testing.assert_allclose(factors.linear, expected, rtol=1e-8, atol=1e-8)


def test_documents_without_words_say_nothing():
    rng = np.random.default_rng(6)
    prior = GaussianPrior.isotropic(2.0, 3)
    q = shared_shape(rng, np.eye(3), prior, np.array([0.0, 4.0]), full=False)
    factors = Information.of(q, CPU, np.ones(2)).factors(q)
    assert factors.size.tolist()[0] == 0
    np.testing.assert_array_equal(factors.linear[0], 0)


@pytest.mark.parametrize("full", [False, True])
def test_a_known_model_is_recovered(full):
    """Its cross-entropy comes near that of the model that drew the documents."""
    rng = np.random.default_rng(9)
    K, n_classes, n = 5, 4, 1500
    G = positive(rng, K) / 4
    if not full:
        G = np.diag(G.diagonal())
    within, means = positive(rng, K), 1.2 * rng.normal(size=(n_classes, K))
    prior = GaussianPrior.isotropic(1.0, K)

    def draw():
        y = rng.integers(n_classes, size=n)
        size = np.exp(rng.uniform(0, np.log(60), n))
        w = means[y] + rng.normal(size=(n, K)) @ np.linalg.cholesky(within).T
        noise = rng.normal(size=(n, K)) @ np.linalg.cholesky(G).T
        h = size[:, None] * (w @ G) + np.sqrt(size)[:, None] * noise
        covariance = np.linalg.inv(np.eye(K) + size[:, None, None] * G)
        mean = np.einsum("nij,nj->ni", covariance, h)
        form = {"covariance": covariance}
        if not full:
            form = {"variance": covariance.diagonal(axis1=1, axis2=2)}
        q = GaussianPosterior(mean, prior=prior, n_tokens=size, **form)
        return q, y, (h, size)

    q, y, _ = draw()
    new, truth, (h, size) = draw()
    rows = np.arange(n)
    clf = EvidenceClassifier().fit(q, y)
    ours = -clf.predict_log_proba(new)[rows, truth]
    oracle = log_softmax(log_marginals(G, within, means, h, size), axis=1)
    best = -oracle[rows, truth]
    # The difference of two losses of 1500 documents has a standard error near 0.01;
    # one with the wrong shape of precisions loses half a nat.
    assert (ours - best).mean() < 0.05
    assert best.mean() < 0.9
    assert np.abs(clf.means_ - means).max() < 0.5


def test_mean_and_covariance_of_everything_are_found():
    rng = np.random.default_rng(10)
    n, covariance = 3000, np.array([[1.0, 0.6], [0.6, 2.0]])
    w = rng.multivariate_normal([1.0, -1.0], covariance, n)
    information = Information.exact(w, CPU, np.ones(n))
    factors = information.factors_of_points(w)
    found = overall(information, factors, torch.ones(n).double()).numpy()
    np.testing.assert_allclose(found[0], w.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(found[1:], np.cov(w.T), atol=0.01)


@pytest.mark.parametrize("spread", [0.0, 1e-12, 3e-6, 3e-5, 1.0])
def test_the_scatter_is_a_sum_over_documents_and_classes(spread):
    rng = np.random.default_rng(0)
    n, K, n_classes = 60, 7, 4
    # Rates that are equal, nearly equal, far apart, and zero.
    word = np.append(0.3 * (1 + spread * np.arange(K - 2)), [0.0, 0.0])
    doubt = 1 / (1 + rng.uniform(0, 100, (n, 1)) * word)
    linear, means = rng.normal(size=(n, K)), rng.normal(size=(n_classes, K))
    weights = rng.dirichlet(np.ones(n_classes), n) * rng.uniform(0, 2, (n, 1))
    direct = np.diag(weights.sum(axis=1) @ doubt)
    for column, mean in enumerate(means):
        away = linear - (1 - doubt) * mean
        direct += away.T @ (weights[:, [column]] * away)
    ours = expected_scatter(
        *(torch.from_numpy(a) for a in (linear, doubt, word, weights, means))
    ).numpy()
    # Rates within 1e-5 count as equal, others lose eps / 1e-5 to the division.
    scale = np.abs(direct).max()
    np.testing.assert_allclose(ours, direct, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(ours, ours.T, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("n_unlabelled", [0, 15])
def test_left_out_documents_are_scored_by_means_without_them(n_unlabelled):
    rng = np.random.default_rng(11)
    n, K, n_classes = 24, 3, 4
    classes, factors, _ = draw_classes(rng, n + n_unlabelled, K, n_classes)
    codes, weights = np.arange(n) % n_classes, rng.uniform(0.5, 2, n)
    known = np.zeros((n + n_unlabelled, n_classes))
    known[np.arange(n), codes] = weights
    unknown = np.repeat([0.0, 0.7], [n, n_unlabelled])
    log_prior = np.log(rng.dirichlet(np.ones(n_classes)))
    everything = np.vstack([rng.normal(size=K), np.eye(K)])
    arrays = (torch.from_numpy(a) for a in (known, unknown, log_prior, everything))
    found = left_out(classes, factors, *arrays).numpy()
    proba = np.exp(log_softmax(classes.scores(factors).numpy() + log_prior, axis=1))
    every, centre = known + unknown[:, None] * proba, torch.from_numpy(everything[0])
    for row in range(n):
        # The mean of its own class lacks the document; the others do not have it.
        rest = every.copy()
        rest[row] = 0.0
        means = classes.means_of(factors, torch.from_numpy(rest), centre)
        one = ClassGaussians(classes.information, means, classes.within)
        expected = one.scores(factors[row : row + 1])[0].numpy()
        # Sums of 40 terms of which one is taken away again.
        np.testing.assert_allclose(found[row], expected, rtol=1e-9, atol=1e-9)
