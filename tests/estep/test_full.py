"""Full covariances, and a family of them, against quadrature and an optimiser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from docsigma.covariances import Diagonal, Full
from docsigma.estep import FullSettings, infer, infer_full
from docsigma.estep.full import DrawnBound
from docsigma.kernels import CountTensor
from docsigma.likelihoods import Multinomial, Polya
from docsigma.loadings import PointLoadings
from docsigma.marginal_likelihood import estimate_marginal_likelihood
from docsigma.parts import Parts
from docsigma.priors import IsotropicPrior, PriorTensors
from second_kinds import FullPrior, LowRank
from toy import toy

# For the noise of draws to be small beside what is tested.
MANY = FullSettings(n_draws=4096, most_draws=4096)
FAMILIES = {"full": Full(), "low rank": LowRank(1)}
KINDS = {
    "paper": {},
    "prior": {"prior": FullPrior(shift=0.4, correlation=0.6, precision=2.0)},
    "likelihood": {"likelihood": Polya(20.0)},
}


def parts(kind):
    given = {
        "likelihood": Multinomial(),
        "prior": IsotropicPrior(2.0),
        "covariance": Diagonal(),
        "loadings": PointLoadings(),
    }
    return Parts(**(given | KINDS[kind]))


def setting(kind, k, **options):
    problem = toy(k, precision=2.0, **({"tokens": 20, "seed": 4} | options))
    chosen = parts(kind)
    return problem, chosen, chosen.model(problem.loadings, problem.bias)


def log_evidence(problem, chosen):
    """log p(x) by quadrature in numpy."""
    k = problem.loadings.shape[1]
    points, log_cell = problem.grid({1: 4001, 2: 301}[k])
    linear = problem.bias.numpy() + points @ problem.loadings.numpy().T
    log_theta = linear - logsumexp(linear, axis=1, keepdims=True)
    x = problem.matrix.toarray()
    likelihood = x @ log_theta.T
    if isinstance(chosen.likelihood, Polya):
        alpha = chosen.likelihood.concentration
        share = alpha * np.exp(log_theta)
        rising = [((gammaln(share + row) - gammaln(share)) * (row > 0)) for row in x]
        total = gammaln(alpha) - gammaln(alpha + x.sum(axis=1))
        likelihood = np.stack([r.sum(axis=1) for r in rising]) + total[:, None]
    prior = chosen.prior.gaussian(k)
    away = points - prior.mean
    square = np.einsum("gk,kl,gl->g", away, prior.precision_matrix(), away)
    log_prior = 0.5 * (prior.log_determinant() - k * np.log(2 * np.pi) - square)
    return logsumexp(likelihood + log_prior, axis=1) + log_cell


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_bound_lies_under_the_evidence_by_quadrature_and_near_it(kind, family, k):
    problem, chosen, model = setting(kind, k)
    found = infer_full(problem.counts, model, FAMILIES[family])
    assert found.converged.all()
    evidence = log_evidence(problem, chosen)
    got = estimate_marginal_likelihood(
        problem.counts, found.posterior, model, n_draws=4000, seed=1
    )
    # 4.5 standard errors over 12 documents: fails by chance with 1 in 12 000.
    slack = 4.5 * got.standard_error.numpy() + 1e-6
    assert (got.log_evidence.numpy() < evidence + slack).all()
    assert (evidence - got.log_evidence.numpy() < 0.3).all()


def quadrature_bound(problem, document, mean, factor):
    """The exact bound of one document, by a product rule; differentiable."""
    line, weights = np.polynomial.hermite_e.hermegauss(24)
    axes = np.meshgrid(line, line, indexing="ij")
    noise = torch.tensor(np.stack([axis.ravel() for axis in axes], axis=1))
    weights = torch.tensor(np.outer(weights, weights).ravel() / (2 * np.pi))
    x = torch.tensor(problem.matrix[document].toarray()[0])
    w = mean + noise @ factor.t()
    lse = torch.logsumexp(problem.bias + w @ problem.loadings.t(), dim=1)
    linear = x @ (problem.bias + problem.loadings @ mean)
    lam = problem.prior.precision
    trace = lam * factor.square().sum()
    volume = 2 * factor.diagonal().abs().log().sum() + 2 * np.log(lam) + 2
    kl = 0.5 * (trace + lam * mean @ mean - volume)
    return linear - x.sum() * (weights @ lse) - kl


def test_full_optimum_is_that_of_a_general_optimiser():
    problem, _, model = setting("paper", 2, n=6)
    q = infer_full(problem.counts, model, Full(), tol=1e-4, settings=MANY).posterior
    for d in range(6):

        def objective(flat, d=d):
            x = torch.tensor(flat, requires_grad=True)
            factor = torch.stack([torch.stack([x[2], 0 * x[2]]), x[3:]])
            value = -quadrature_bound(problem, d, x[:2], factor)
            value.backward()
            return value.item(), x.grad.numpy()

        start = np.array([0.0, 0.0, 0.5, 0.0, 0.5])
        best = minimize(objective, start, jac=True, method="BFGS", tol=1e-9)
        ours = quadrature_bound(problem, d, q.mean[d], q.factor[d]).item()
        # 4096 draws move mean and precision by about a 64th of themselves, and the
        # bound by the square of that.
        assert -best.fun - 1e-3 < ours < -best.fun + 1e-9
        factor = np.array([[best.x[2], 0], best.x[3:]])
        covariance = factor @ factor.T
        scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
        away = (q.covariance[d].numpy() - covariance) / scale
        assert np.abs(away).max() < 0.1
        moved = (q.mean[d].numpy() - best.x[:2]) / np.sqrt(np.diag(covariance))
        assert np.abs(moved).max() < 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_value_and_derivatives_are_autograds(kind):
    problem, chosen, model = setting(kind, 3)
    words = DrawnBound(model, Full(), 8)
    source = torch.Generator().manual_seed(0)
    mean = 0.3 * torch.randn(12, 3, generator=source, dtype=torch.float64)
    root = torch.randn(12, 3, 3, generator=source, dtype=torch.float64).tril()
    root.diagonal(dim1=1, dim2=2).abs_()
    q = Full().constant(12, 3, 1.0, mean).like({"mean": mean, "factor": 0.3 * root})
    likelihood = model.likelihood.bind(problem.counts, model.loadings, model.bias)
    found = words.evaluate(likelihood, q, q.mean, model.prior)

    def bound(mean):
        points = mean[:, None] + words.noise @ q.factor.mT
        logits = problem.bias + points @ problem.loadings.t()
        log_theta = torch.log_softmax(logits, dim=2)
        x = torch.tensor(problem.matrix.toarray())[:, None]
        value = (x * log_theta).sum(dim=2)
        if kind == "likelihood":
            alpha = torch.tensor(20.0, dtype=torch.float64)
            share = alpha * log_theta.exp()
            value = (torch.lgamma(share + x) - torch.lgamma(share)).sum(dim=2)
            value = value + torch.lgamma(alpha) - torch.lgamma(alpha + x.sum(dim=2))
        gaussian = chosen.prior.gaussian(3)
        normal = torch.distributions.MultivariateNormal
        kl = torch.distributions.kl_divergence(
            normal(mean, scale_tril=q.factor),
            normal(
                torch.tensor(gaussian.mean),
                precision_matrix=torch.tensor(gaussian.precision_matrix()),
            ),
        )
        return value.mean(dim=1) - kl

    at = mean.clone().requires_grad_()
    value = bound(at)
    (gradient,) = torch.autograd.grad(value.sum(), at)
    torch.testing.assert_close(found.value, value.detach(), rtol=1e-10, atol=1e-9)
    torch.testing.assert_close(found.gradient, gradient, rtol=0, atol=1e-8)
    if kind in ("paper", "prior"):
        # Elsewhere the curvature leaves out what the docstring says.
        hessian = torch.autograd.functional.hessian(lambda m: bound(m).sum(), mean)
        expected = torch.stack([-hessian[d, :, d] for d in range(12)])
        own = torch.tensor(chosen.prior.gaussian(3).precision_matrix())
        torch.testing.assert_close(own + found.information, expected, rtol=0, atol=1e-8)


def test_more_covariance_gives_a_higher_bound():
    problem, _, model = setting("paper", 6, n=40, v=60, tokens=60)
    diagonal = infer(problem.counts, model, Diagonal())
    families = [LowRank(1), LowRank(3), Full()]
    found = [diagonal, *(infer_full(problem.counts, model, f) for f in families)]
    bounds, errors = [], []
    for one in found:
        got = estimate_marginal_likelihood(
            problem.counts, one.posterior, model, n_draws=2000, seed=3
        )
        bounds.append(got.log_evidence)
        errors.append(got.standard_error)
    for i in range(3):
        lower, higher = bounds[i : i + 2]
        # The draws are not the same for all covariances. Five errors over 120 pairs
        # fail by chance once in 30 000; the last term is what 170 draws may miss.
        noise = 5 * torch.hypot(*errors[i : i + 2]) + 0.02
        assert (higher > lower - noise).all()
    # Over all documents the gain is far more than the noise.
    error = torch.hypot(errors[0], errors[3]).square().sum().sqrt()
    assert (bounds[3] - bounds[0]).sum() > 10 * error


@pytest.mark.parametrize("kind", KINDS)
def test_document_without_words_gets_the_prior(kind):
    problem, chosen, model = setting(kind, 2)
    # Word variances move logits even where no token is.
    empty = CountTensor(sp.csr_matrix((1, len(problem.bias))), problem.bias)
    q = infer_full(empty, model, Full()).posterior
    prior = chosen.prior.gaussian(2)
    np.testing.assert_allclose(q.mean[0].numpy(), prior.mean, rtol=0, atol=1e-9)
    expected = np.linalg.inv(prior.precision_matrix())
    np.testing.assert_allclose(q.covariance[0].numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("family", [Full(), LowRank(2)])
def test_documents_do_not_depend_on_neighbours_or_blocks(family):
    problem, _, model = setting("paper", 5, n=30)
    together = infer_full(problem.counts, model, family).posterior
    small = FullSettings(memory=1)
    assert small.rows(model.loadings, 16) == 1
    one_by_one = infer_full(problem.counts, model, family, settings=small)
    for name, tensor in together.tensors().items():
        other = one_by_one.posterior.tensors()[name]
        torch.testing.assert_close(other, tensor, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("family", [Full(), LowRank(2)])
def test_single_precision_is_near_double(family):
    problem, _, model = setting("paper", 5, n=30, v=80)
    double = infer_full(problem.counts, model, family, tol=1e-3).posterior
    single_model = replace(
        model,
        loadings=model.loadings.float(),
        bias=model.bias.float(),
        prior=PriorTensors(model.prior.gaussian, torch.empty(0)),
    )
    counts = CountTensor(problem.matrix, single_model.bias)
    single = infer_full(counts, single_model, family, tol=1e-3).posterior
    assert single.mean.dtype == torch.float32
    # Other draws: noise of another dtype is another noise.
    deviation = double.variance.sqrt()
    away = (single.mean - double.mean) / deviation
    assert away.abs().max() < 0.25
    assert ((single.variance / double.variance).log().abs() < 0.25).all()


@pytest.mark.parametrize("steepness", [1, 6])
def test_bound_never_falls_under_the_diagonal_one_on_the_draws(steepness):
    problem, _, model = setting("paper", 6, n=40, tokens=4)
    model = replace(model, loadings=steepness * model.loadings)
    words = DrawnBound(model, Full(), FullSettings().draws(6))
    likelihood = model.likelihood.bind(problem.counts, model.loadings, model.bias)
    start = infer(problem.counts, model, Diagonal()).posterior
    before = words.evaluate(likelihood, start, start.mean, model.prior).value
    for family in (LowRank(2), Full()):
        found = infer_full(problem.counts, model, family)
        assert torch.isfinite(found.bound).all()
        assert (found.bound >= before - 1e-9).all()
        after = words.evaluate(
            likelihood, found.posterior, start.mean, model.prior
        ).value
        assert (after >= before - 1e-9).all()


def test_draws_are_many_in_few_dimensions_and_come_in_pairs():
    settings = FullSettings()
    assert [settings.draws(k) for k in (1, 2, 10, 100, 400)] == [256, 256, 102, 16, 16]
