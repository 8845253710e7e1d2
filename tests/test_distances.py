from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import sqrtm
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal, norm

from docsigma import GaussianPosterior, GaussianPrior, InputError, distances

K = 4
EPS = np.finfo(np.float64).eps


def diagonal(n, seed):
    random = np.random.default_rng(seed)
    mean, variance = random.standard_normal((n, K)), random.uniform(0.1, 2.0, (n, K))
    return GaussianPosterior(mean, variance)


def full(n, seed):
    random = np.random.default_rng(seed)
    factor = random.standard_normal((n, K, K))
    covariance = factor @ factor.transpose(0, 2, 1) + 0.1 * np.eye(K)
    return GaussianPosterior(random.standard_normal((n, K)), covariance=covariance)


FORMS = [diagonal, full]
every_form = pytest.mark.parametrize("right", FORMS)
each_form = pytest.mark.parametrize("left", FORMS)
NAMES = ("wasserstein2", "kl", "expected_likelihood")


def gaussians(q):
    return list(zip(q.mean, q._full_covariance(), strict=True))


def by_closed_form(name, one, other):
    (m, S), (n, R) = one, other
    away = m - n
    if name == "wasserstein2":
        half = sqrtm(S)
        return np.sqrt(away @ away + np.trace(S + R - 2 * sqrtm(half @ R @ half).real))
    if name == "kl":
        inverse = np.linalg.inv(R)
        logs = np.linalg.slogdet(R)[1] - np.linalg.slogdet(S)[1]
        return 0.5 * (np.trace(inverse @ S) + away @ inverse @ away - K + logs)
    return multivariate_normal(n, S + R).logpdf(m)


@pytest.mark.parametrize("name", NAMES)
@each_form
@every_form
def test_distance_is_the_closed_form(name, left, right):
    a, b = left(3, 0), right(4, 1)
    expected = [
        [by_closed_form(name, p, q) for q in gaussians(b)] for p in gaussians(a)
    ]
    # Condition numbers of these matrices are below 1e3; sqrtm takes roots of eps.
    np.testing.assert_allclose(getattr(distances, name)(a, b), expected, rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
@each_form
@every_form
def test_pairwise_is_the_diagonal_of_the_matrix(name, left, right):
    a, b = left(4, 0), right(4, 1)
    matrix = getattr(distances, name)(a, b)
    pairs = getattr(distances, f"pairwise_{name}")(a, b)
    assert pairs.shape == (4,)
    np.testing.assert_allclose(pairs, np.diagonal(matrix), rtol=100 * EPS)


def test_kl_and_expected_likelihood_are_integrals():
    a, b = GaussianPosterior([[0.3]], [[0.4]]), GaussianPosterior([[-0.5]], [[1.2]])
    p, q = norm(0.3, np.sqrt(0.4)), norm(-0.5, np.sqrt(1.2))
    divergence, _ = quad(lambda w: p.pdf(w) * (p.logpdf(w) - q.logpdf(w)), -9, 9)
    product, _ = quad(lambda w: p.pdf(w) * q.pdf(w), -9, 9)
    assert distances.kl(a, b)[0, 0] == pytest.approx(divergence, rel=1e-7)
    likelihood = distances.expected_likelihood(a, b, log=False)[0, 0]
    assert likelihood == pytest.approx(product, rel=1e-7)
    pairs = distances.pairwise_expected_likelihood(a, b, log=False)
    assert pairs[0] == pytest.approx(product, rel=1e-7)


def test_wasserstein2_is_the_cost_of_the_best_transport():
    # In one dimension the best transport keeps the order, so quantiles are matched.
    a, b = GaussianPosterior([[0.3]], [[0.4]]), GaussianPosterior([[-0.5]], [[1.2]])
    p, q = norm(0.3, np.sqrt(0.4)), norm(-0.5, np.sqrt(1.2))
    square, _ = quad(lambda u: (p.ppf(u) - q.ppf(u)) ** 2, 0, 1)
    assert distances.wasserstein2(a, b)[0, 0] == pytest.approx(np.sqrt(square), 1e-5)


def test_wasserstein2_of_full_covariances_is_near_the_best_assignment_of_draws():
    a, b = full(1, 0), full(1, 1)
    n = 600
    left = a.draws(n, random_state=0)[:, 0]
    right = b.draws(n, random_state=1)[:, 0]
    costs = np.square(left[:, None] - right[None]).sum(axis=2)
    cost = np.sqrt(costs[linear_sum_assignment(costs)].mean())
    # The cost of 600 draws in four dimensions lies above the truth, by under a tenth;
    # the draws are fixed, so that the test never fails by chance.
    assert distances.wasserstein2(a, b)[0, 0] == pytest.approx(cost, rel=0.1)


@pytest.mark.parametrize("make", FORMS)
def test_a_document_is_at_distance_zero_from_itself(make):
    q = make(3, 0)
    # A sum of 2 K terms of size 10 that cancel, and the root of what is left.
    left = np.sqrt(20 * K * EPS) * 10
    assert (distances.pairwise_wasserstein2(q, q) < left).all()
    assert (np.abs(distances.pairwise_kl(q, q)) < 1000 * EPS * K).all()
    if make is diagonal:
        assert (distances.pairwise_wasserstein2(q, q) == 0).all()
        assert (distances.pairwise_kl(q, q) == 0).all()


def test_float32_posteriors_are_measured_in_float64():
    q = GaussianPosterior(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))
    assert distances.kl(q, q).dtype == np.float64


def test_wrong_shapes_are_refused_with_both_numbers():
    other = GaussianPosterior(np.zeros((2, 3)), np.ones((2, 3)))
    with pytest.raises(InputError, match="`a` has 4 components, `b` has 3"):
        distances.kl(diagonal(2, 0), other)
    with pytest.raises(InputError, match="`a` has 2 documents, but `b` has 3"):
        distances.pairwise_kl(diagonal(2, 0), diagonal(3, 0))


def test_no_documents_make_an_empty_matrix():
    assert distances.wasserstein2(diagonal(3, 0)[:0], diagonal(2, 0)).shape == (0, 2)


def logs_of_one_document(a, b, prior, i, j):
    """The log ratio from the densities' closed forms, by precisions and matrices."""
    own = prior.precision_matrix()
    first, second = (
        np.linalg.inv(q._full_covariance()[row]) for q, row in ((a, i), (b, j))
    )
    linear = first @ a.mean[i] + second @ b.mean[j] - own @ prior.mean
    both = first + second - own
    mean = np.linalg.solve(both, linear)
    # At its mode, a Gaussian is (2 pi)^(-K/2) times the root of its precision.
    log = [
        multivariate_normal(a.mean[i], np.linalg.inv(first)).logpdf(mean),
        multivariate_normal(b.mean[j], np.linalg.inv(second)).logpdf(mean),
        -multivariate_normal(prior.mean, np.linalg.inv(own)).logpdf(mean),
        -multivariate_normal(mean, np.linalg.inv(both)).logpdf(mean),
    ]
    return sum(log)


def under_a_prior(form, n, seed):
    """Posteriors that are surer than their prior, in diagonal or full form."""
    random = np.random.default_rng(seed)
    mean = random.standard_normal((n, K))
    precision = np.array([2.0, 0.5, 1.0, 3.0])
    prior = GaussianPrior(np.array([0.3, 0.0, -0.2, 0.1]), precision)
    if form == "diagonal":
        variance = 1 / (precision + random.uniform(0.1, 5.0, (n, K)))
        return GaussianPosterior(mean, variance, prior=prior)
    factor = random.standard_normal((n, K, K))
    covariance = np.linalg.inv(np.diag(precision) + factor @ factor.transpose(0, 2, 1))
    return GaussianPosterior(mean, covariance=covariance, prior=prior)


@pytest.mark.parametrize("left", ["diagonal", "full"])
@pytest.mark.parametrize("right", ["diagonal", "full"])
def test_ratio_of_one_document_is_that_of_scipy(left, right):
    a, b = under_a_prior(left, 3, 0), under_a_prior(right, 2, 1)
    found = distances.same_document(a, b)
    for i in range(3):
        for j in range(2):
            expected = logs_of_one_document(a, b, a.prior, i, j)
            np.testing.assert_allclose(found[i, j], expected, rtol=1e-9, atol=1e-9)


def test_ratio_of_one_document_is_that_of_quadrature():
    prior = GaussianPrior.isotropic(2.0, 1)
    a = GaussianPosterior([[0.7]], [[0.2]], prior=prior)
    b = GaussianPosterior([[-0.1]], [[0.3]], prior=prior)

    def product(w):
        ratio = norm(0.7, 0.2**0.5).pdf(w) * norm(-0.1, 0.3**0.5).pdf(w)
        return ratio / norm(0, 0.5**0.5).pdf(w)

    expected = np.log(quad(product, -10, 10, epsabs=1e-12)[0])
    found = distances.same_document(a, b)
    np.testing.assert_allclose(found, [[expected]], rtol=1e-9)


def test_a_document_without_words_is_as_likely_one_as_two():
    q = under_a_prior("diagonal", 3, 0)
    nothing = GaussianPosterior(
        np.tile(q.prior.mean, (1, 1)),
        1 / q.prior.precision_diagonal()[None],
        prior=q.prior,
    )
    np.testing.assert_allclose(distances.same_document(q, nothing), 0, atol=1e-12)


def test_one_document_needs_one_prior():
    q = under_a_prior("diagonal", 2, 0)
    bare = GaussianPosterior(q.mean, q.variance)
    with pytest.raises(InputError, match="same prior"):
        distances.same_document(bare, bare)
