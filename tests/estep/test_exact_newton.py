from __future__ import annotations

from functools import partial

import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from docsigma.estep.exact_newton import ExactNewton, Point
from docsigma.kernels import CountTensor
from docsigma.objective import Model
from second_kinds import FullPrior
from toy import toy


def problem_with(prior, k=3):
    problem = toy(k, n=6, tokens=8, precision=2.0)
    if prior == "correlated":
        tensors = FullPrior(0.3, 0.4, 2.0).tensors(k, problem.loadings)
        model = problem.model
        return problem, Model(model.loadings, model.bias, model.likelihood, tensors)
    return problem, problem.model


def exact_newton(problem, model):
    counts = CountTensor(problem.matrix, problem.bias)
    return ExactNewton(model.likelihood.bind(counts, model.loadings, model.bias), model)


def bound(problem, prior, d, flat):
    """The bound of one document, written out."""
    mean, variance, centre = flat.view(3, -1)
    away = problem.loadings - centre
    exponents = problem.bias + away @ mean + 0.5 * away**2 @ variance
    lse = centre @ mean + torch.logsumexp(exponents, dim=0)
    x = torch.from_numpy(problem.matrix[d].toarray()[0])
    likelihood = x @ (problem.bias + problem.loadings @ mean) - x.sum() * lse
    q = MultivariateNormal(mean, torch.diag(variance))
    gaussian = prior.gaussian
    p = MultivariateNormal(
        torch.tensor(gaussian.mean),
        precision_matrix=torch.tensor(gaussian.precision_matrix()),
    )
    return likelihood - kl_divergence(q, p)


def some_point(n, k):
    noise = torch.Generator().manual_seed(0)
    mean, log_variance, centre = torch.randn(
        3, n, k, generator=noise, dtype=torch.float64
    )
    return Point(mean, (0.5 * log_variance).exp(), centre)


@pytest.mark.parametrize("prior", ["isotropic", "correlated"])
def test_derivatives_are_those_of_autograd(prior):
    problem, model = problem_with(prior)
    exact = exact_newton(problem, model)
    point = some_point(6, 3)
    gradient, curvature = exact._derivatives(point)
    for d in range(6):
        written = partial(bound, problem, model.prior, d)
        flat = torch.cat([part[d] for part in point])
        slope = torch.autograd.functional.jacobian(written, flat)
        second = torch.autograd.functional.hessian(written, flat)
        torch.testing.assert_close(exact.bound(point)[d], written(flat))
        torch.testing.assert_close(gradient[d], slope, rtol=1e-10, atol=1e-9)
        torch.testing.assert_close(curvature[d], -second, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("prior", ["isotropic", "correlated"])
def test_the_gradient_vanishes_where_it_ends_and_the_bound_is_higher(prior):
    problem, model = problem_with(prior)
    exact = exact_newton(problem, model)
    start = some_point(6, 3)
    point, n_iter, converged = exact.climb(start, 100, 1e-8)
    assert converged.all()
    assert (n_iter < 40).all()
    assert (exact.bound(point) > exact.bound(start)).all()
    gradient, curvature = exact._derivatives(point)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-6)
    # A maximum, no saddle point.
    assert (torch.linalg.eigvalsh(curvature) > 0).all()


def test_one_document_alone_takes_the_same_steps():
    problem, model = problem_with("isotropic")
    exact = exact_newton(problem, model)
    start = some_point(6, 3)
    together, n_iter, _ = exact.climb(start, 100, 1e-3)
    assert n_iter.min() < n_iter.max()
    for d in range(6):
        row = torch.tensor([d])
        alone, count, _ = exact._select(row).climb(start.rows(row), 100, 1e-3)
        torch.testing.assert_close(alone.mean[0], together.mean[d], rtol=0, atol=1e-9)
        assert int(count) == int(n_iter[d])


def test_the_last_step_taken_is_the_last_allowed():
    problem, model = problem_with("isotropic")
    exact = exact_newton(problem, model)
    start = some_point(6, 3)
    point, n_iter, converged = exact.climb(start, 1, 1e-8)
    assert (n_iter == 1).all()
    assert not converged.any()
    assert (exact.bound(point) > exact.bound(start)).all()
