from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.optimize import minimize

from docsigma.covariances import Diagonal
from docsigma.estep import NewtonSettings
from docsigma.estep import infer as infer_posterior
from docsigma.estep.evaluator import Evaluator
from docsigma.kernels import CountTensor
from docsigma.objective import ExpectedLse
from docsigma.random import Stream, antithetic_normals, generator
from toy import KINDS, ill_conditioned, toy

GRID = {1: 4001, 2: 401}
EXACT = {"tol": 1e-6, "max_iter": 2000}
# Loadings of standard deviation 7 make posteriors with several bends, which steps creep
# along. No document of the six corpora of benchmarks/results/bounds.json comes near
# that: the longest takes 26 passes.
CREEPING = "ten times as large"


@pytest.fixture(params=["all words", "frequent words first"])
def start(request):
    return request.param


@pytest.fixture
def infer(start):
    """Everything holds for either start; small vocabularies take the first."""
    least = 0 if start == "frequent words first" else 2**30

    def run(problem, matrix=None, **options):
        matrix = problem.matrix if matrix is None else matrix
        loop = {
            name: options.pop(name) for name in ("chunk", "alive") if name in options
        }
        settings = NewtonSettings(large_vocabulary=least, **loop)
        return infer_posterior(
            CountTensor(matrix, problem.bias),
            problem.model,
            Diagonal(),
            settings=settings,
            **options,
        )

    return run


def single(problem):
    """The same problem in float32, as models compute it."""
    problem.loadings = problem.loadings.float()
    problem.bias = problem.bias.float()
    return problem


def dense(problem):
    return torch.from_numpy(problem.matrix.toarray())


def kl(problem, mean, log_std):
    lam = problem.prior.precision
    terms = lam * (2 * log_std).exp() - 2 * log_std + lam * mean**2
    return 0.5 * (terms - np.log(lam) - 1).sum(dim=1)


def tilted_logits(problem, mean, log_std, centre):
    """The exponents on the right side of the bound."""
    away = problem.loadings - centre[:, None, :]
    variance = (2 * log_std).exp()
    exponents = problem.bias + torch.einsum("dvk,dk->dv", away, mean)
    return exponents + 0.5 * torch.einsum("dvk,dk->dv", away**2, variance)


def jensen_bound(problem, mean, log_std, centre):
    """The bound of the docstring written out, with the counts' own part x . m."""
    x, t = dense(problem), problem.loadings
    exponents = tilted_logits(problem, mean, log_std, centre)
    lse = (centre * mean).sum(dim=1) + torch.logsumexp(exponents, dim=1)
    likelihood = (x * (problem.bias + mean @ t.t())).sum(dim=1)
    return likelihood - x.sum(dim=1) * lse - kl(problem, mean, log_std)


def tilted(problem, mean, log_std, centre):
    """Probabilities that the right side of the bound defines."""
    return torch.softmax(tilted_logits(problem, mean, log_std, centre), dim=1)


def best_centre(problem, mean, log_std, step=1.0, n_steps=500):
    centre = torch.softmax(problem.bias, dim=0) @ problem.loadings
    centre = centre.expand_as(mean)
    for _ in range(n_steps):
        best = tilted(problem, mean, log_std, centre) @ problem.loadings
        centre = centre + step * (best - centre)
    return centre


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("precision", [0.5, 10.0])
def test_the_bound_lies_under_the_evidence_by_quadrature(infer, k, precision):
    problem = toy(k, precision=precision)
    found = infer(problem, **EXACT)
    assert found.converged.all()
    bound = found.bound.numpy()
    gap = problem.log_evidence(GRID[k]) - bound
    assert (gap > 0).all()
    if k == 1:
        assert gap.max() < 0.1


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_bound_lies_above_the_plain_one_at_its_own_optimum(infer, k):
    problem = toy(k, precision=2.0)
    n = problem.matrix.shape[0]
    mean = torch.zeros(n, k, dtype=torch.float64, requires_grad=True)
    log_std = torch.full((n, k), -0.5, dtype=torch.float64, requires_grad=True)
    nowhere = torch.zeros(n, k, dtype=torch.float64)
    optimizer = torch.optim.LBFGS(
        [mean, log_std],
        max_iter=2000,
        tolerance_grad=1e-9,
        line_search_fn="strong_wolfe",
    )

    def loss():
        optimizer.zero_grad()
        value = -jensen_bound(problem, mean, log_std, nowhere).sum()
        value.backward()
        return value

    optimizer.step(loss)
    plain = jensen_bound(problem, mean, log_std, nowhere).detach()
    ours = infer(problem, **EXACT).bound
    assert (ours > plain - 1e-7).all()
    assert (ours - plain).mean() > 1e-2


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_solution_is_a_stationary_point_of_the_bound(infer, k):
    problem = toy(k, precision=2.0)
    found = infer(problem, **EXACT)
    assert found.converged.all()
    q = found.posterior
    centre = best_centre(problem, q.mean, q.log_std)
    leaves = [t.clone().requires_grad_() for t in (q.mean, q.log_std, centre)]
    value = jensen_bound(problem, *leaves)
    value.sum().backward()
    for leaf in leaves:
        torch.testing.assert_close(leaf.grad, torch.zeros_like(leaf), rtol=0, atol=1e-4)
    torch.testing.assert_close(found.bound, value.detach(), rtol=0, atol=1e-8)
    theta = tilted(problem, q.mean, q.log_std, centre)
    variance = theta @ problem.loadings**2 - (theta @ problem.loadings) ** 2
    n_tokens = dense(problem).sum(dim=1, keepdim=True)
    precision = problem.prior.precision + n_tokens * variance
    torch.testing.assert_close((-2 * q.log_std).exp(), precision, rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", ["well", *KINDS])
def test_no_documents_bound_falls_by_more_than_is_unclear(infer, kind):
    problem = ill_conditioned(kind, n=20)
    settings = NewtonSettings()
    before = torch.full((20,), -np.inf, dtype=torch.float64)
    for max_iter in range(1, 20):
        bound = infer(problem, max_iter=max_iter, tol=1e-9).bound
        extrapolated = max_iter >= settings.patience
        # And the rounding of a log-sum-exp, times the tokens.
        unclear = 1e-11 + (0 if extrapolated else settings.most_unclear)
        assert (bound >= before - unclear).all()
        before = bound


@pytest.mark.parametrize("k", [4, 20])
def test_rounding_decides_nothing(k):
    """What is shaken is what the order of sums shakes, by more than it does.

    Without the slopes, twelve of these documents move by up to 0.003.
    """
    problem = single(toy(k, n=2000, v=300, tokens=1000, precision=10.0))
    draws = torch.Generator().manual_seed(0)
    exact = ExpectedLse(problem.model, Diagonal())

    def shaken(q, centre, shares=None):
        terms = exact(q, centre, shares)
        noise = torch.randn(len(centre), generator=draws, dtype=torch.float64)
        return terms._replace(value=terms.value + 1e-6 * noise)

    def means(expected_lse):
        settings = NewtonSettings()
        words = Evaluator(problem.model, Diagonal(), settings)
        words.expected_lse = expected_lse
        return infer_posterior(
            problem.counts, problem.model, Diagonal(), words=words
        ).posterior.mean

    plain = means(exact)
    for _ in range(5):
        torch.testing.assert_close(means(shaken), plain, rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tokens", [3, 60, 2000])
def test_nearly_all_documents_converge_under_ill_conditioned_loadings(
    infer, kind, tokens
):
    problem = ill_conditioned(kind, tokens=tokens)
    found = infer(problem)
    assert torch.isfinite(found.posterior.mean).all()
    assert torch.isfinite(found.posterior.log_std).all()
    # Over six seeds of 50 documents, at most 1 misses, with scales far apart 3, and 16
    # of three tokens under the largest loadings.
    least = 0.6 if (kind, tokens) == (CREEPING, 3) else 0.9
    assert found.converged.double().mean() > least
    # Those too are no worse off than where they began.
    assert (found.bound >= infer(problem, max_iter=1).bound - 0.05).all()


@pytest.mark.parametrize("kind", ["well", *KINDS])
@pytest.mark.parametrize("tokens", [3, 60, 2000])
def test_what_the_tolerance_leaves_of_the_bound_is_under_a_tenth_of_a_nat(
    infer, kind, tokens
):
    """A Newton step of 0.04 standard deviations is worth K 0.04^2 / 2 = 0.005."""
    problem = ill_conditioned(kind, tokens=tokens)
    found = infer(problem)
    gap = (infer(problem, **EXACT).bound - found.bound)[found.converged]
    # Between several bends the steps decide which optimum a document comes to.
    assert gap.max() < (1 if kind == CREEPING else 0.1)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_documents_of_a_few_tokens_converge(infer, scale):
    problem = toy(8, n=200, v=100, tokens=3, seed=5)
    assert problem.matrix.sum(axis=1).max() <= 5
    problem.loadings = scale * problem.loadings
    found = infer(problem)
    assert found.converged.all()
    assert (found.posterior.log_std <= -0.5 * np.log(problem.prior.precision)).all()


@pytest.mark.parametrize("scale", [0.7, 1.0])
def test_what_is_returned_is_as_good_as_the_bound_says(infer, scale):
    """In 40 dimensions extrapolated steps end documents."""
    problem = toy(40, n=60, v=300, tokens=30, seed=2)
    problem.loadings = scale / 0.7 * problem.loadings
    found = infer(problem)
    q = found.posterior
    centre = best_centre(problem, q.mean, q.log_std, step=0.05, n_steps=2000)
    reached = jensen_bound(problem, q.mean, q.log_std, centre)
    # The covariance is a step ahead of the bound: 40 x 0.04^2 / 2 and a little.
    assert (reached >= found.bound - 0.1).all()


def monte_carlo_bound(problem, mean, log_std, noise):
    w = mean[:, None] + log_std.exp()[:, None] * noise
    lse = torch.logsumexp(problem.bias + w @ problem.loadings.t(), dim=2).mean(dim=1)
    x = dense(problem)
    likelihood = (x * (problem.bias + mean @ problem.loadings.t())).sum(dim=1)
    return likelihood - x.sum(dim=1) * lse - kl(problem, mean, log_std)


@cache
def by_adam(kind, tokens):
    """Return a problem and Adam's answer to it, which either start is compared with."""
    problem = ill_conditioned(kind, n=40, v=40, tokens=tokens, k=4, seed=3)
    noise = antithetic_normals(32, 4, generator(0, Stream.NOISE), problem.bias)[None]
    mean = torch.zeros(40, 4, dtype=torch.float64, requires_grad=True)
    log_std = torch.full_like(mean, -1.0).requires_grad_()
    optimizer = torch.optim.Adam([mean, log_std], lr=0.02, maximize=True)
    for _ in range(1000):
        optimizer.zero_grad()
        monte_carlo_bound(problem, mean, log_std, noise).sum().backward()
        optimizer.step()
    return problem, mean.detach(), log_std.detach()


@pytest.mark.parametrize("tokens", [3, 40])
@pytest.mark.parametrize("kind", ["well", *KINDS])
def test_no_document_is_worse_off_than_after_a_thousand_steps_of_adam(
    infer, kind, tokens
):
    """Adam on the paper's bound with fixed draws; both are judged on other draws."""
    problem, mean, log_std = by_adam(kind, tokens)
    judge = antithetic_normals(2000, 4, generator(1, Stream.NOISE), problem.bias)[None]
    with torch.no_grad():
        theirs = monte_carlo_bound(problem, mean, log_std, judge)
        q = infer(problem).posterior
        ours = monte_carlo_bound(problem, q.mean, q.log_std, judge)
    # For a handful of tokens the deterministic bound may be looser than the paper's,
    # which Adam maximises. On corpora it is not (benchmarks/results/bounds.json).
    few = torch.from_numpy(np.asarray(problem.matrix.sum(axis=1)).ravel() <= 6)
    lower = (theirs - ours) / theirs.abs()
    assert (lower[~few] < 0.005).all()
    loose = 0.005 if kind == "well" else 0.03
    assert lower[few].mean() < (0.2 if (kind, tokens) == (CREEPING, 3) else loose)


def test_at_one_dimension_the_optimum_is_near_the_one_with_quadrature(infer):
    problem = toy(1, precision=2.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    result = infer(problem, **EXACT)
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
        assert negative_bound(ours) - best.fun < 0.01
        np.testing.assert_allclose(ours, best.x, atol=0.1)


def test_a_document_does_not_depend_on_its_neighbours(infer):
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


@pytest.mark.parametrize(
    ("chunk", "alive"), [(7, 0.7), (1, 0.7), (4096, 0.0), (50, 1.0)]
)
def test_a_document_does_not_depend_on_how_the_corpus_is_cut(infer, chunk, alive):
    problem = toy(4, n=90, tokens=40)
    whole = infer(problem)
    parts = infer(problem, chunk=chunk, alive=alive)
    torch.testing.assert_close(
        parts.posterior.mean, whole.posterior.mean, rtol=0, atol=1e-9
    )
    torch.testing.assert_close(
        parts.posterior.log_std, whole.posterior.log_std, rtol=0, atol=1e-9
    )
    torch.testing.assert_close(parts.bound, whole.bound, rtol=0, atol=1e-9)
    assert torch.equal(parts.n_iter, whole.n_iter)
    assert torch.equal(parts.converged, whole.converged)


def test_a_document_does_not_depend_on_the_number_of_threads(infer):
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


def test_a_document_with_no_known_word_gets_the_prior(infer):
    problem = toy(3, precision=4.0)
    empty = sp.csr_matrix((2, 15))
    result = infer(problem, sp.vstack([problem.matrix[:1], empty]).tocsr())
    assert (result.posterior.mean[1:] == 0).all()
    variance = (2 * result.posterior.log_std[1:]).exp()
    torch.testing.assert_close(variance, torch.full_like(variance, 0.25))
    assert result.converged.all()
    assert (result.bound[1:].abs() < 1e-12).all()


def test_documents_without_loadings_get_the_prior(infer):
    problem = toy(3, precision=4.0)
    problem.loadings = torch.zeros_like(problem.loadings)
    result = infer(problem)
    assert result.converged.all()
    assert (result.posterior.mean == 0).all()
    variance = (2 * result.posterior.log_std).exp()
    torch.testing.assert_close(variance, torch.full_like(variance, 0.25))


def test_no_documents_give_no_posteriors(infer):
    problem = toy(3)
    result = infer(problem, problem.matrix[:0])
    assert result.posterior.mean.shape == (0, 3)
    assert result.n_iter.shape == (0,)


@pytest.mark.parametrize("tokens", [5, 100, 5000])
def test_strongly_correlated_loadings_converge(infer, tokens):
    problem = toy(8, n=100, v=300, tokens=tokens)
    shared = torch.randn(300, 1, generator=torch.Generator().manual_seed(0)).double()
    problem.loadings = shared + 0.1 * problem.loadings
    result = infer(problem, max_iter=300)
    assert result.converged.double().mean() > 0.95
    assert torch.isfinite(result.posterior.mean).all()
    # No step is wasted in the wrong direction: the mean's gradient is nothing.
    assert result.n_iter.double().mean() < 100


def test_documents_stop_one_by_one(infer):
    problem = toy(4, n=200, tokens=100)
    steps = infer(problem).n_iter
    assert steps.min() < steps.max()
    assert (infer(problem, max_iter=1).n_iter == 1).all()


def test_longer_documents_are_surer(infer):
    problem = toy(3)
    longer = infer(problem, problem.matrix * 10).posterior
    shorter = infer(problem).posterior
    assert (longer.log_std.sum(dim=1) < shorter.log_std.sum(dim=1)).all()


def test_true_embeddings_lie_inside_the_intervals_as_often_as_they_should(infer):
    problem = toy(4, n=3000, v=300, tokens=120, seed=7)
    q = infer(problem).posterior
    z = np.abs((problem.embeddings - q.mean.numpy()) / q.log_std.exp().numpy())
    inside = {0.5: (z < 0.6745).mean(), 0.9: (z < 1.6449).mean()}
    # 12 000 intervals: a standard error of 0.5 % at 50 % and 0.3 % at 90 %. Beyond
    # that the diagonal Gaussian is a little too sure of itself: its variances are
    # the conditional ones. Tolerance 3 %, six standard errors and more.
    assert inside[0.5] == pytest.approx(0.5, abs=0.03)
    assert inside[0.9] == pytest.approx(0.9, abs=0.03)
