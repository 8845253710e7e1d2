"""The curvature of a document against the dense matrix it describes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from docsigma.estep import NewtonSettings, curvature
from docsigma.estep.curvature import LoadingsBasis, WordCurvature
from toy import toy

N, K, LAM = 9, 4, 2.0


@pytest.fixture
def problem():
    return toy(K, n=N, precision=LAM, seed=1)


@pytest.fixture
def described(problem):
    """A WordCurvature and the matrices that its docstring describes, by numpy."""
    t, m = problem.loadings.numpy(), problem.bias.numpy()
    x = problem.matrix.toarray()
    tokens = x.sum(axis=1)
    linear = problem.counts.project(problem.loadings)
    squares = problem.counts.project(problem.loadings**2)
    n_tokens = problem.counts.n_tokens[:, None]
    own = squares - linear**2 / n_tokens
    generator = torch.Generator().manual_seed(0)
    informed = own * torch.rand(N, K, generator=generator, dtype=torch.float64)
    model = WordCurvature(
        problem.counts,
        problem.loadings,
        LoadingsBasis(problem.loadings, problem.bias, problem.prior_tensors),
        problem.prior_tensors,
        linear,
        own.sum(dim=1, keepdim=True),
        informed.sum(dim=1, keepdim=True),
    )
    unigram = np.exp(m) / np.exp(m).sum()
    shared = np.cov(t.T, aweights=unigram, ddof=0)
    matrices = []
    for d in range(N):
        mine = np.cov(t.T, fweights=x[d].astype(int), ddof=0) * tokens[d]
        trace = float(informed[d].sum())
        part = min(NewtonSettings.own_part * trace / max(np.trace(mine), 1e-3), 2.0)
        rest = max(trace - part * np.trace(mine), 0.0)
        scaled = rest * shared / np.trace(shared)
        matrices.append(LAM * np.eye(K) + part * mine + scaled)
    return model, torch.from_numpy(np.stack(matrices)), informed


def normals(seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(N, K, generator=generator, dtype=torch.float64)


def test_basis_holds_the_moments_of_the_loadings_under_the_unigram(problem):
    t, m = problem.loadings.numpy(), problem.bias.numpy()
    unigram = np.exp(m) / np.exp(m).sum()
    basis = LoadingsBasis(problem.loadings, problem.bias, problem.prior_tensors)
    np.testing.assert_allclose(basis.means[0], np.average(t, axis=0, weights=unigram))
    covariance = np.cov(t.T, aweights=unigram, ddof=0)
    np.testing.assert_allclose(basis.variance, np.diag(covariance), atol=1e-12)
    vectors = basis.vectors.numpy()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(K), atol=1e-12)
    rebuilt = vectors @ np.diag(basis.values.numpy()) @ vectors.T
    np.testing.assert_allclose(rebuilt, covariance, atol=1e-12)


def test_equal_columns_leave_no_eigenvalue_under_zero(problem):
    loadings = problem.loadings[:, :1].expand(-1, K).contiguous()
    basis = LoadingsBasis(loadings.float(), problem.bias.float(), problem.prior_tensors)
    assert (basis.values > 0).all()


def test_times_is_the_product_with_the_dense_matrix(described):
    model, matrices, _ = described
    vectors = normals()
    expected = torch.einsum("dkl,dl->dk", matrices, vectors)
    torch.testing.assert_close(model.times(vectors), expected, rtol=0, atol=1e-9)


def test_the_trace_is_the_one_that_is_known(described):
    model, _, informed = described
    columns = torch.eye(K, dtype=torch.float64)
    diagonal = [model.times(c.expand(N, K))[:, k] for k, c in enumerate(columns)]
    trace = torch.stack(diagonal).sum(dim=0)
    torch.testing.assert_close(trace, K * LAM + informed.sum(dim=1))


def test_solve_with_many_steps_is_the_dense_solution(described):
    model, matrices, _ = described
    vectors = normals()
    expected = torch.linalg.solve(matrices, vectors[:, :, None])[:, :, 0]
    got = model.solve(vectors, n_iter=3 * K)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-9)


def test_each_step_of_solve_brings_every_document_nearer(described):
    model, matrices, _ = described
    vectors = normals()
    exact = torch.linalg.solve(matrices, vectors[:, :, None])[:, :, 0]
    before = None
    for n_iter in (1, 2, 3, 4):
        error = model.solve(vectors, n_iter=n_iter) - exact
        energy = torch.einsum("dk,dkl,dl->d", error, matrices, error)
        assert before is None or (energy <= before + 1e-12).all()
        before = energy


def test_solve_gives_zero_for_zero_and_the_prior_for_empty_documents(problem):
    counts = type(problem.counts)(problem.matrix * 0, problem.bias)
    nothing = torch.zeros(N, K, dtype=torch.float64)
    prior = problem.prior_tensors
    basis = LoadingsBasis(problem.loadings, problem.bias, prior)
    model = WordCurvature(
        counts, problem.loadings, basis, prior, nothing, nothing[:, :1], nothing[:, :1]
    )
    assert (model.solve(nothing) == 0).all()
    torch.testing.assert_close(model.solve(normals()), normals() / LAM)


# Matrices on which MKL gives up, one with one thread and one with two.
@pytest.mark.parametrize(
    ("threads", "seed", "size", "used"), [(1, 1, 265, 5), (2, 11, 381, 23)]
)
def test_unused_components_leave_an_eigenbasis(threads, seed, size, used):
    generator = torch.Generator().manual_seed(seed)
    # They were found with two numbers drawn before.
    torch.randint(2, (2,), generator=generator)
    rows = torch.randperm(size, generator=generator)[:used]
    factor = torch.randn(used, used + 5, generator=generator)
    matrix = torch.zeros(size, size)
    matrix[rows[:, None], rows] = factor @ factor.t() * 1e-3
    matrix, before = matrix.double(), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        values, vectors = curvature.eigen(matrix)
    finally:
        torch.set_num_threads(before)
    unit = torch.eye(size, dtype=torch.float64)
    torch.testing.assert_close((vectors * values) @ vectors.t(), matrix)
    torch.testing.assert_close(vectors.t() @ vectors, unit)


def test_where_torch_gives_up_numpy_finds_the_basis(problem, monkeypatch):
    prior = problem.prior_tensors
    expected = LoadingsBasis(problem.loadings, problem.bias, prior)

    def give_up(_matrix):
        raise torch.linalg.LinAlgError("failed to converge")

    monkeypatch.setattr(torch.linalg, "eigh", give_up)
    found = LoadingsBasis(problem.loadings, problem.bias, prior)
    torch.testing.assert_close(found.values, expected.values)
    torch.testing.assert_close(found.vectors.abs(), expected.vectors.abs())
