from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from docsigma.covariances import Point, Points
from docsigma.estep import infer as infer_posterior
from docsigma.kernels import CountTensor, softmax_moments
from docsigma.objective import document_bound, kl_divergence
from toy import toy


def infer(problem, matrix=None, **options):
    counts = CountTensor(problem.matrix if matrix is None else matrix, problem.bias)
    return infer_posterior(counts, problem.model, Point(), **options).posterior.mean


def objective(problem, points):
    model = problem.model
    likelihood = model.likelihood.bind(problem.counts, model.loadings, model.bias)
    lse = softmax_moments(points, model.loadings, model.bias).lse
    penalty = kl_divergence(Points(points, points), model.prior)
    return document_bound(likelihood.value(points, lse), penalty)


@pytest.mark.parametrize("k", [1, 3])
def test_it_finds_what_scipy_finds(k):
    problem = toy(k, precision=2.0)
    ours = infer(problem, tol=1e-6, max_iter=500)
    lam = problem.prior.precision
    for d in range(len(problem.counts)):
        norm = 0.5 * k * np.log(lam / (2 * np.pi))

        def negative(w, d=d, norm=norm):
            return -(problem.log_joint(w[None])[d, 0] - norm)

        best = minimize(negative, np.zeros(k), tol=1e-12)
        np.testing.assert_allclose(ours[d].numpy(), best.x, atol=1e-4)
        value = float(objective(problem, ours)[d])
        assert value == pytest.approx(-best.fun, abs=1e-7)


def test_large_loadings_do_not_throw_it_off():
    problem = toy(4, n=30, v=40, tokens=30, precision=1.0)
    problem.loadings *= 10
    found = infer(problem, tol=1e-5, max_iter=1000)
    w = found.clone().requires_grad_()
    log_theta = torch.log_softmax(problem.bias + w @ problem.loadings.t(), dim=1)
    x = torch.from_numpy(problem.matrix.toarray())
    ((x * log_theta).sum() - 0.5 * w.square().sum()).backward()
    # The gradient of a concave objective is zero at its top.
    assert w.grad.abs().max() < 1e-2
    assert (objective(problem, found) >= objective(problem, found * 0)).all()


def test_a_document_does_not_depend_on_its_neighbours():
    problem = toy(3, n=40)
    whole = infer(problem)
    order = np.random.default_rng(0).permutation(40)
    shuffled = infer(problem, problem.matrix[order])
    torch.testing.assert_close(shuffled[np.argsort(order)], whole, atol=1e-9, rtol=0)


def test_an_empty_document_is_at_zero():
    problem = toy(3)
    assert (infer(problem, problem.matrix * 0) == 0).all()
