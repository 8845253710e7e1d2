from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.optimize import minimize

from docsigma.inference.multinomial import MultinomialCounts
from docsigma.inference.natural_gradient import infer_posterior
from toy import toy


def infer(problem, matrix=None, **options):
    matrix = problem.matrix if matrix is None else matrix
    counts = MultinomialCounts(matrix, problem.bias)
    arguments = {"seed": 0, **options}
    return infer_posterior(
        counts, problem.loadings, problem.bias, problem.prior, **arguments
    )


def single(problem):
    """The same problem in float32, as models compute it."""
    problem.loadings = problem.loadings.float()
    problem.bias = problem.bias.float()
    return problem


def test_optimum_is_the_one_scipy_finds_with_quadrature():
    problem = toy(1, precision=2.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    result = infer(problem, n_draws=2000, tol=1e-6, max_iter=500)
    t, m = problem.loadings.numpy(), problem.bias.numpy()
    lam = problem.prior.precision
    for d in range(problem.matrix.shape[0]):
        x = problem.matrix[d].toarray()[0]

        def negative_bound(p, x=x):
            nu, log_std = p
            w = nu + np.exp(log_std) * nodes
            lse = np.logaddexp.reduce(m + w[:, None] * t[:, 0], axis=1) @ weights
            variance = np.exp(2 * log_std)
            kl = 0.5 * (lam * (variance + nu**2) - 2 * log_std - np.log(lam) - 1)
            return -(x @ (m + t[:, 0] * nu) - x.sum() * lse - kl)

        best = minimize(negative_bound, [0.0, -1.0], tol=1e-10)
        ours = [float(result.posterior.mean[d]), float(result.posterior.log_std[d])]
        assert negative_bound(ours) - best.fun < 1e-4
        np.testing.assert_allclose(ours, best.x, atol=0.02)


def test_a_document_does_not_depend_on_its_neighbours():
    problem = single(toy(5, n=300, v=400, tokens=100, precision=1.0))
    whole = infer(problem).posterior
    order = np.random.default_rng(0).permutation(300)
    shuffled = infer(problem, problem.matrix[order]).posterior
    alone = [infer(problem, problem.matrix[[d]]).posterior for d in range(20)]
    back = np.argsort(order)
    for name in ("mean", "log_std"):
        expected = getattr(whole, name)
        got = getattr(shuffled, name)[back]
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)
        singles = torch.cat([getattr(q, name) for q in alone])
        torch.testing.assert_close(singles, expected[:20], rtol=0, atol=1e-4)


def test_a_document_does_not_depend_on_the_number_of_threads():
    problem = single(toy(5, n=200, v=4000, tokens=100))
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(infer(problem).posterior)
    finally:
        torch.set_num_threads(before)
    one, two = results
    torch.testing.assert_close(one.mean, two.mean, rtol=0, atol=1e-4)
    torch.testing.assert_close(one.log_std, two.log_std, rtol=0, atol=1e-4)


def test_a_document_with_no_known_word_gets_the_prior():
    problem = toy(3, precision=4.0)
    empty = sp.csr_matrix((2, 15))
    result = infer(problem, sp.vstack([problem.matrix[:1], empty]).tocsr())
    assert (result.posterior.mean[1:] == 0).all()
    variance = (2 * result.posterior.log_std[1:]).exp()
    torch.testing.assert_close(variance, torch.full_like(variance, 0.25))
    assert result.converged.all()


@pytest.mark.parametrize("tokens", [5, 100, 5000])
def test_strongly_correlated_loadings_converge(tokens):
    problem = toy(8, n=100, v=300, tokens=tokens)
    shared = torch.randn(300, 1, generator=torch.Generator().manual_seed(0)).double()
    problem.loadings = shared + 0.1 * problem.loadings
    result = infer(problem, max_iter=300)
    assert result.converged.double().mean() > 0.95
    assert torch.isfinite(result.posterior.mean).all()
    # No step is wasted in the wrong direction: the mean's gradient is nothing.
    assert result.n_iter.double().mean() < 100


def test_documents_stop_one_by_one():
    problem = toy(4, n=200, tokens=100)
    steps = infer(problem).n_iter
    assert steps.min() < steps.max()
    assert (infer(problem, max_iter=2).n_iter == 2).all()


def test_longer_documents_are_surer():
    problem = toy(3)
    longer = infer(problem, problem.matrix * 10).posterior
    shorter = infer(problem).posterior
    assert (longer.log_std.sum(dim=1) < shorter.log_std.sum(dim=1)).all()


def test_true_embeddings_lie_inside_the_intervals_as_often_as_they_should():
    problem = toy(4, n=3000, v=300, tokens=120, seed=7)
    q = infer(problem).posterior
    z = np.abs((problem.embeddings - q.mean.numpy()) / q.log_std.exp().numpy())
    inside = {0.5: (z < 0.6745).mean(), 0.9: (z < 1.6449).mean()}
    # 12 000 intervals: a standard error of 0.5 % at 50 % and 0.3 % at 90 %. Beyond
    # that the diagonal Gaussian is a little too sure of itself: its variances are
    # the conditional ones. Tolerance 3 %, six standard errors and more.
    assert inside[0.5] == pytest.approx(0.5, abs=0.03)
    assert inside[0.9] == pytest.approx(0.9, abs=0.03)
