"""Low-rank precisions: their algebra against dense matrices, and how near they come."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from docsigma import GaussianPrior
from docsigma.objective import kl_divergence
from docsigma.posteriors import (
    COVARIANCES,
    Diagonal,
    FullGaussians,
    LowRank,
    LowRankGaussians,
)
from docsigma.posteriors.low_rank import factorize
from docsigma.priors import PriorTensors

N, K, RANK = 4, 6, 2


def matrices(n=N, k=K, seed=0):
    """Precisions of a prior and an information of a few strong directions."""
    source = torch.Generator().manual_seed(seed)
    factor = torch.randn(n, k, k, generator=source, dtype=torch.float64)
    strength = 3 * torch.logspace(1, -1, k, dtype=torch.float64)
    return torch.eye(k).double() + (factor * strength) @ factor.mT / k


def gaussians(rank=RANK, seed=0):
    source = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=source, dtype=torch.float64)

    return LowRankGaussians(normal(N, K), normal(N, K), 3 * normal(N, K, rank))


def loss(precision, diagonal, factor):
    """Divergence of the Gaussian of the second two from that of `precision`."""
    nearest = torch.diag_embed(diagonal) + factor @ factor.mT
    ratio = torch.linalg.solve(nearest, precision)
    trace = ratio.diagonal(dim1=1, dim2=2).sum(dim=1)
    return 0.5 * (trace - torch.logdet(ratio) - precision.shape[1])


def test_is_registered():
    assert COVARIANCES["low_rank"] is LowRank


@pytest.mark.parametrize("rank", [0, 1, RANK, K])
def test_algebra_is_that_of_dense_matrices(rank):
    q = gaussians(rank)
    dense = torch.diag_embed(q.log_diagonal.exp()) + q.factor @ q.factor.mT
    covariance = torch.linalg.inv(dense)
    full = FullGaussians(q.mean, torch.linalg.cholesky(covariance))
    vectors = torch.randn(N, K, generator=torch.Generator().manual_seed(1)).double()
    close = {"rtol": 1e-10, "atol": 1e-10}
    torch.testing.assert_close(q.precision_matrix, dense, **close)
    for name in ("covariance", "variance", "precision"):
        torch.testing.assert_close(getattr(q, name), getattr(full, name), **close)
    for name in ("square", "tilted"):
        ours, theirs = getattr(q, name)(vectors), getattr(full, name)(vectors)
        torch.testing.assert_close(ours, theirs, **close)
    torch.testing.assert_close(q.log_determinant(), full.log_determinant(), **close)


@pytest.mark.parametrize("form", ["isotropic", "diagonal", "full"])
def test_divergence_is_that_of_torch(form):
    q = gaussians()
    precision = {
        "isotropic": 2.0,
        "diagonal": np.arange(1.0, K + 1),
        "full": matrices(1, seed=3)[0].numpy(),
    }[form]
    prior = GaussianPrior(np.linspace(-1, 1, K), precision)
    normal = torch.distributions.MultivariateNormal
    theirs = normal(
        torch.tensor(prior.mean),
        precision_matrix=torch.tensor(prior.precision_matrix()),
    )
    expected = torch.distributions.kl_divergence(
        normal(q.mean, precision_matrix=q.precision_matrix), theirs
    )
    found = kl_divergence(q, PriorTensors(prior, q.mean))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rank", [0, RANK, K])
def test_points_are_a_root_of_the_covariance(rank):
    q = gaussians(rank)
    unit = torch.eye(K, dtype=torch.float64)[None]
    root = (q.points(unit) - q.mean[:, None, :]).mT
    torch.testing.assert_close(root @ root.mT, q.covariance, rtol=1e-10, atol=1e-10)


def test_no_direction_gives_the_diagonal_of_the_precision():
    precision = matrices()
    log_diagonal, factor = factorize(precision, 0)
    assert factor.shape == (N, K, 0)
    expected = precision.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(log_diagonal.exp(), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("rank", [K - 1, K, K + 5])
def test_all_directions_give_the_precision(rank):
    precision = matrices()
    log_diagonal, factor = factorize(precision, rank)
    found = torch.diag_embed(log_diagonal.exp()) + factor @ factor.mT
    torch.testing.assert_close(found, precision, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_nearest_precision_is_that_of_a_general_optimiser(rank):
    precision = matrices(1)
    log_diagonal, factor = factorize(precision, rank, steps=3000)
    reached = loss(precision, log_diagonal.exp(), factor).item()

    def objective(flat):
        x = torch.tensor(flat, requires_grad=True)
        value = loss(precision, x[None, :K].exp(), x[K:].view(1, K, rank)).sum()
        value.backward()
        return value.item(), x.grad.numpy()

    start = np.concatenate([log_diagonal.numpy().ravel(), factor.numpy().ravel()])
    found = minimize(objective, start, jac=True, method="BFGS", tol=1e-10)
    # EM is slow at the end: what it leaves is small beside what directions are worth.
    worth = loss(precision, precision.diagonal(dim1=1, dim2=2), factor[:, :, :0]).item()
    assert reached - found.fun < 1e-3 * worth
    kept = log_diagonal.exp() + factor.square().sum(dim=2)
    expected = precision.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(kept, expected, rtol=1e-2, atol=0)


def test_more_directions_come_nearer():
    precision = matrices(k=12)
    losses = []
    for rank in (0, 1, 2, 4, 8, 12):
        log_diagonal, factor = factorize(precision, rank)
        losses.append(loss(precision, log_diagonal.exp(), factor))
    assert (torch.stack(losses).diff(dim=0) < 1e-9).all()


def test_single_precision_stays_positive_definite():
    # Eigenvalues over six decades.
    axes = torch.linalg.qr(matrices(1)[0])[0]
    values = torch.logspace(0, 6, K, dtype=torch.float64)
    precision = ((axes * values) @ axes.t())[None].float()
    for rank in range(K + 1):
        log_diagonal, factor = factorize(precision, rank)
        assert torch.isfinite(log_diagonal).all()
        assert torch.isfinite(factor).all()
        q = LowRankGaussians(torch.zeros(1, K), log_diagonal, factor)
        assert (q.variance > 0).all()


def test_a_diagonal_posterior_may_be_widened():
    q = Diagonal().constant(N, K, 0.3, torch.empty(0, dtype=torch.float64))
    for family in (LowRank(RANK), COVARIANCES["full"]()):
        wide = family.widen(q)
        torch.testing.assert_close(wide.variance, q.variance)
        torch.testing.assert_close(wide.log_determinant(), q.log_determinant())


def test_halfway_is_near_the_mean_of_the_precisions():
    one, other = gaussians(seed=0), gaussians(seed=1)
    # All directions are kept: the mean is exact.
    wide = [
        LowRankGaussians(q.mean, *factorize(q.precision_matrix, K))
        for q in (one, other)
    ]
    found = wide[0].halfway(wide[1])
    expected = 0.5 * (one.precision_matrix + other.precision_matrix)
    torch.testing.assert_close(found.precision_matrix, expected, rtol=1e-9, atol=1e-9)
    assert one.halfway(other).factor.shape == one.factor.shape
