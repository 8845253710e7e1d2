"""Perplexity with covariances that a user gives, against quadrature in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from docsigma import BayesianSMM, GaussianPosterior, InputError
from docsigma.marginal_likelihood import ESTIMATORS

V, K, PRECISION = 12, 2, 2.0
MEAN = np.array([0.2, -0.1])
COVARIANCE = np.array([[0.12, 0.1], [0.1, 0.15]])
# A statistical test fails by chance once in a million, with so many standard errors.
SIGMAS = 5


class Oracle:
    """One document under a model of two dimensions, by Gauss-Hermite quadrature."""

    def __init__(self, model, document, mean=MEAN, covariance=COVARIANCE):
        self.loadings, self.bias = model.components_.T, model.log_unigram_
        self.x, self.mean, self.covariance = document, mean, covariance
        line, weights = np.polynomial.hermite_e.hermegauss(60)
        axes = np.meshgrid(line, line, indexing="ij")
        self.noise = np.stack([axis.ravel() for axis in axes], axis=1)
        self.weights = np.outer(weights, weights).ravel() / (2 * np.pi)

    def points(self, noise):
        return self.mean + noise @ np.linalg.cholesky(self.covariance).T

    def lse(self, points):
        return logsumexp(self.bias + points @ self.loadings.T, axis=1)

    def kl(self):
        trace = PRECISION * np.trace(self.covariance)
        length = PRECISION * self.mean @ self.mean
        log_ratio = K * np.log(PRECISION) + np.linalg.slogdet(self.covariance)[1]
        return 0.5 * (trace + length - K - log_ratio)

    def bound_with(self, lse):
        linear = self.x @ (self.bias + self.loadings @ self.mean)
        return linear - self.x.sum() * lse - self.kl()

    def bound(self):
        return self.bound_with(self.weights @ self.lse(self.points(self.noise)))

    def bound_error(self, n_pairs):
        """Standard error of the bound from that many pairs of opposite draws."""
        both = [self.lse(self.points(sign * self.noise)) for sign in (1, -1)]
        pairs = self.x.sum() * 0.5 * (both[0] + both[1])
        variance = self.weights @ pairs**2 - (self.weights @ pairs) ** 2
        return np.sqrt(variance / n_pairs)

    def jensen(self):
        squares = np.einsum(
            "vi,ij,vj->v", self.loadings, self.covariance, self.loadings
        )
        return self.bound_with(
            logsumexp(self.bias + self.loadings @ self.mean + squares / 2)
        )

    def log_weights(self):
        """log p(x, w) - log q(w) at the nodes."""
        points = self.points(self.noise)
        likelihood = self.x @ (self.bias[:, None] + self.loadings @ points.T)
        likelihood -= self.x.sum() * self.lse(points)
        log_prior = K * np.log(PRECISION) - PRECISION * (points**2).sum(axis=1)
        log_q = -np.linalg.slogdet(self.covariance)[1] - (self.noise**2).sum(axis=1)
        return likelihood + 0.5 * (log_prior - log_q)

    def log_evidence(self):
        return logsumexp(self.log_weights(), b=self.weights)

    def evidence_error(self, n_draws):
        ratio = np.exp(self.log_weights() - self.log_evidence())
        return np.sqrt((self.weights @ ratio**2 - 1) / n_draws)


@pytest.fixture(scope="module")
def model():
    random = np.random.default_rng(0)
    some = random.poisson(2.0, (40, V)).astype(np.float64)
    model = BayesianSMM(
        K, prior_precision=PRECISION, max_iter=2, device="cpu", random_state=0
    )
    model.fit(some)
    # Loadings for which covariances matter.
    model.components_ = random.standard_normal((K, V))
    return model


@pytest.fixture(scope="module")
def document():
    return np.random.default_rng(1).poisson(1.0, V).astype(np.float64)


def repeated(document, n, covariance=COVARIANCE):
    q = GaussianPosterior(
        np.tile(MEAN, (n, 1)), covariance=np.tile(covariance, (n, 1, 1))
    )
    return sp.csr_matrix(np.tile(document, (n, 1))), q


@pytest.fixture(scope="module")
def gap(model, document):
    """What leaving out the off-diagonals does to the bound."""
    flat = Oracle(model, document, covariance=np.diag(np.diag(COVARIANCE)))
    return abs(Oracle(model, document).bound() - flat.bound())


def test_jensen(model, document):
    counts, q = repeated(document, 2)
    found = model.perplexity(counts, estimator="jensen", posterior=q).log_evidence
    np.testing.assert_allclose(found, Oracle(model, document).jensen(), rtol=1e-10)


def test_monte_carlo(model, document, gap):
    counts, q = repeated(document, 4)
    n_draws = 4000
    found = model.perplexity(counts, n_draws=n_draws, posterior=q).log_evidence
    oracle = Oracle(model, document)
    error = oracle.bound_error(len(found) * n_draws // 2)
    assert 2 * SIGMAS * error < gap
    assert abs(found.mean() - oracle.bound()) < SIGMAS * error


def test_importance(model, document):
    # Wider than the true posterior everywhere, or the weights have no finite variance.
    wide = np.array([[0.5, 0.2], [0.2, 0.6]])
    oracle = Oracle(model, document, covariance=wide)
    counts, q = repeated(document, 4, wide)
    options = {"estimator": "importance", "posterior": q}
    n_draws = 8000
    found = model.perplexity(counts, n_draws=n_draws, **options).log_evidence
    error = oracle.evidence_error(n_draws)
    assert error < 0.05
    np.testing.assert_allclose(
        found, oracle.log_evidence(), rtol=0, atol=SIGMAS * error
    )


def test_one_draw_of_importance_is_the_bound_on_average(model, document, gap):
    # The evidence itself does not depend on the covariance; this does.
    oracle = Oracle(model, document)
    counts, q = repeated(document, 20000)
    options = {"estimator": "importance", "posterior": q}
    found = model.perplexity(counts, n_draws=1, **options).log_evidence
    error = found.std() / np.sqrt(len(found))
    assert 2 * SIGMAS * error < gap
    assert abs(found.mean() - oracle.bound()) < SIGMAS * error


@pytest.mark.parametrize("estimator", ["monte_carlo", "jensen", "importance"])
def test_the_models_own_full_covariances_may_be_given(estimator):
    random = np.random.default_rng(0)
    counts = random.poisson(1.0, (20, V)).astype(np.float64)
    own = BayesianSMM(K, covariance="full", max_iter=3, device="cpu", random_state=0)
    own.fit(counts)
    q = own.posterior(counts)
    assert q.covariance is not None
    plain = own.perplexity(counts, estimator=estimator).log_evidence
    given = own.perplexity(counts, estimator=estimator, posterior=q).log_evidence
    np.testing.assert_allclose(given, plain, rtol=1e-9)


@pytest.mark.parametrize("estimator", ["monte_carlo", "jensen", "importance"])
def test_a_covariance_that_is_none_gets_one_sentence(model, document, estimator):
    wrong = np.array([[0.12, 0.15], [0.15, 0.15]])
    counts, q = repeated(document, 3, wrong)
    with pytest.raises(
        InputError, match=r"`posterior.covariance` is not positive definite in row 0"
    ):
        model.perplexity(counts, estimator=estimator, posterior=q)


def test_points_have_no_perplexity_without_one(document):
    counts, q = repeated(document, 3)
    options = {"max_iter": 2, "device": "cpu", "random_state": 0}
    points = BayesianSMM(K, covariance="point", **options).fit(counts)
    for estimator in ESTIMATORS:
        with pytest.raises(InputError, match="points here, not Gaussians"):
            points.perplexity(counts, estimator=estimator)
        found = points.perplexity(counts, estimator=estimator, posterior=q)
        assert np.isfinite(found.corpus)


def test_posteriors_of_other_documents_are_refused(model, document):
    counts, q = repeated(document, 3)
    with pytest.raises(InputError, match=r"shape 3 x 2, got \(2, 2\)"):
        model.perplexity(counts, posterior=q[:2])
