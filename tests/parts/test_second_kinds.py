"""Each part has a second kind, written in a few lines, and quadrature agrees."""

from __future__ import annotations

import inspect
from functools import cache

import numpy as np
import pytest
import torch
from scipy.special import gammaln, logsumexp

import second_kinds
from docsigma.covariances import Diagonal, Full
from docsigma.estep import infer
from docsigma.likelihoods import Multinomial, Polya
from docsigma.loadings import PointLoadings
from docsigma.marginal_likelihood import estimate_marginal_likelihood
from docsigma.objective import kl_divergence
from docsigma.parts import Parts
from docsigma.priors import IsotropicPrior, LearnedFullPrior
from second_kinds import FullPrior, LowRank
from toy import toy

GRID = {1: 4001, 2: 301}
KINDS = {
    "paper": {},
    "learned prior": {"prior": LearnedFullPrior(2.0)},
    "prior": {"prior": FullPrior(shift=0.4, correlation=0.6, precision=2.0)},
    "likelihood": {"likelihood": Polya(20.0)},
    "low rank": {"covariance": LowRank(1)},
    "full": {"covariance": Full()},
    "all at once": {
        "prior": FullPrior(shift=0.4, correlation=0.6, precision=2.0),
        "likelihood": Polya(20.0),
        "covariance": LowRank(1),
    },
}


def parts(kind, k):
    given = {
        "likelihood": Multinomial(),
        "prior": IsotropicPrior(2.0),
        "covariance": Diagonal(),
        "loadings": PointLoadings(),
    }
    chosen = Parts(**(given | KINDS[kind]))
    if kind == "learned prior":
        mean = torch.tensor([30.0, -10.0]).double()[:k]
        square = torch.tensor([[60.0, 20.0], [20.0, 30.0]]).double()[:k, :k]
        chosen.prior.update({"mean": mean, "square": square, "n": torch.tensor(80.0)})
    return chosen


def log_joint(problem, chosen, points):
    """log p(x, w) by numpy: documents x points."""
    t, m = problem.loadings.numpy(), problem.bias.numpy()
    x = problem.matrix.toarray()
    linear = m + points @ t.T
    log_theta = linear - logsumexp(linear, axis=1, keepdims=True)
    if isinstance(chosen.likelihood, Polya):
        alpha = chosen.likelihood.concentration
        share = alpha * np.exp(log_theta)
        likelihood = np.stack(
            [
                gammaln(alpha)
                - gammaln(alpha + row.sum())
                + ((gammaln(share + row) - gammaln(share)) * (row > 0)).sum(axis=1)
                for row in x
            ]
        )
    else:
        likelihood = x @ log_theta.T
    prior = chosen.prior.gaussian(points.shape[1])
    away = points - prior.mean
    square = np.einsum("gk,kl,gl->g", away, prior.precision_matrix(), away)
    constant = points.shape[1] * np.log(2 * np.pi)
    return likelihood + 0.5 * (prior.log_determinant() - constant - square)


@cache
def setting(kind, k):
    """Return a problem and its evidence by quadrature; tests only read them."""
    problem = toy(k, precision=2.0, tokens=20, seed=4)
    chosen = parts(kind, k)
    model = chosen.model(problem.loadings, problem.bias)
    line = np.linspace(-6, 6, GRID[k])
    axes = np.meshgrid(*[line] * k, indexing="ij")
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    joint = log_joint(problem, chosen, points)
    cell = k * np.log(line[1] - line[0])
    return problem, chosen, model, points, joint, logsumexp(joint, axis=1) + cell


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_bound_lies_under_the_evidence_by_quadrature_and_near_it(kind, k):
    problem, chosen, model, _, _, evidence = setting(kind, k)
    found = infer(problem.counts, model, chosen.covariance, tol=1e-4, max_iter=500)
    assert (found.bound.numpy() < evidence + 1e-9).all()
    got = estimate_marginal_likelihood(
        problem.counts, found.posterior, model, n_draws=4000, seed=1
    )
    # 4.5 standard errors over 12 documents: fails by chance with 1 in 12 000.
    slack = 4.5 * got.standard_error.numpy() + 1e-6
    assert (got.log_evidence.numpy() < evidence + slack).all()
    assert (evidence - got.log_evidence.numpy() < 0.6).all()


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_importance_agrees_with_quadrature(kind, k):
    problem, chosen, model, _, _, evidence = setting(kind, k)
    found = infer(problem.counts, model, chosen.covariance)
    got = estimate_marginal_likelihood(
        problem.counts,
        found.posterior,
        model,
        estimator="importance",
        n_draws=3000,
        seed=2,
    )
    distance = np.abs(got.log_evidence.numpy() - evidence)
    # The seed is fixed; 4.5 standard errors, as above.
    assert (distance < 4.5 * got.standard_error.numpy() + 1e-6).all()


@pytest.mark.parametrize("kind", KINDS)
def test_posterior_means_are_near_those_of_quadrature(kind):
    problem, chosen, model, points, joint, _ = setting(kind, 2)
    found = infer(problem.counts, model, chosen.covariance, tol=1e-3)
    weights = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    exact = weights @ points
    variance = weights @ points**2 - exact**2
    z = (found.posterior.mean.numpy() - exact) / np.sqrt(variance)
    assert np.abs(z).max() < 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_divergence_is_that_of_torch(kind):
    problem, chosen, model, *_ = setting(kind, 2)
    q = infer(problem.counts, model, chosen.covariance).posterior
    arrays = {name: torch.from_numpy(a) for name, a in q.arrays().items()}
    covariance = arrays.get("covariance")
    if covariance is None:
        covariance = torch.diag_embed(arrays["variance"])
    prior = chosen.prior.gaussian(2)
    normal = torch.distributions.MultivariateNormal
    mine = normal(arrays["mean"], covariance_matrix=covariance)
    theirs = normal(
        torch.from_numpy(prior.mean.copy()),
        precision_matrix=torch.from_numpy(prior.precision_matrix()),
    )
    expected = torch.distributions.kl_divergence(mine, theirs)
    got = kl_divergence(q, model.prior)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


def test_more_covariance_gives_a_higher_bound():
    bounds = {}
    for kind in ("paper", "low rank", "full"):
        problem, chosen, model, *_ = setting(kind, 2)
        found = infer(problem.counts, model, chosen.covariance, tol=1e-4, max_iter=500)
        bounds[kind] = found.bound
    assert (bounds["low rank"] > bounds["paper"] - 1e-6).all()
    assert (bounds["full"] > bounds["low rank"] - 1e-6).all()


@pytest.mark.parametrize("name", second_kinds.__all__)
def test_each_kind_is_written_in_at_most_sixty_lines(name):
    lines = inspect.getsource(getattr(second_kinds, name)).splitlines()
    assert len(lines) <= 60


def test_gradient_of_the_likelihood_is_autograds():
    """Effective counts are derivatives, and their sum is what the lse weighs."""
    problem = toy(3, seed=2)
    points = torch.randn(12, 3, generator=torch.Generator().manual_seed(0)).double()
    dense = torch.from_numpy(problem.matrix.toarray())
    for likelihood in (Multinomial(), Polya(7.0)):
        w = points.clone().requires_grad_()
        log_theta = torch.log_softmax(problem.bias + w @ problem.loadings.t(), dim=1)
        if isinstance(likelihood, Polya):
            share = likelihood.concentration * log_theta.exp()
            terms = torch.lgamma(share + dense) - torch.lgamma(share)
        else:
            terms = dense * log_theta
        terms.sum().backward()
        bound = likelihood.bind(problem.counts, problem.loadings, problem.bias)
        logits = problem.bias + points @ problem.loadings.t()
        found = bound.at(points, torch.logsumexp(logits, dim=1))
        first = torch.softmax(logits, dim=1) @ problem.loadings
        gradient = found.linear_gradient - found.tokens[:, None] * first
        torch.testing.assert_close(gradient, w.grad, rtol=0, atol=1e-9)
