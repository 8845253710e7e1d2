"""Second moments of the words, against dense sums."""

from __future__ import annotations

import pytest
import torch

from docsigma.kernels import second_moments, softmax_moments

N, R, V, K = 7, 3, 200, 5


def problem(dtype, quadratic=False, seed=0):
    source = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=source, dtype=torch.float64).to(dtype)

    columns = normal(V, K * (1 + quadratic))
    inputs = 0.3 * normal(N, R, columns.shape[1])
    bias = normal(V)
    weights = 50 * torch.rand(N, R, generator=source, dtype=torch.float64).to(dtype)
    lse = softmax_moments(inputs.flatten(0, 1), columns, bias).lse.view(N, R)
    return inputs, lse, weights, columns, bias, columns[:, :K]


def dense(inputs, lse, weights, columns, bias, loadings):
    every = [x.double() for x in (inputs, weights, columns, bias, loadings)]
    inputs, weights, columns, bias, loadings = every
    theta = torch.softmax(bias + inputs @ columns.t(), dim=2)
    return torch.einsum("dr,drv,va,vb->dab", weights, theta, loadings, loadings)


@pytest.mark.parametrize("quadratic", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tile", [1, 64, 150, 10_000])
def test_equals_dense_sums(dtype, quadratic, tile):
    # A tile has at least 64 words: 200 words are 4 tiles, 2 or 1.
    per_word = K * (K + 1) // 2 * torch.empty(0, dtype=dtype).element_size()
    given = problem(dtype, quadratic)
    found = second_moments(*given, product_bytes=tile * per_word, points=2 * R)
    assert found.dtype == dtype
    expected = dense(*given)
    # Sums of V products, each rounded a few times; exponents of size ten.
    slack = 20 * torch.finfo(dtype).eps * expected.abs().amax() * V**0.5
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=float(slack))
    assert torch.equal(found, found.mT)


def test_no_weight_gives_zeros():
    given = list(problem(torch.float64))
    given[2] = given[2].clone()
    given[2][3] = 0
    found = second_moments(*given)
    assert not found[3].any()
    assert torch.isfinite(found).all()


def test_documents_do_not_depend_on_their_neighbours():
    inputs, lse, weights, *words = problem(torch.float64)
    together = second_moments(inputs, lse, weights, *words)
    alone = second_moments(inputs[2:3], lse[2:3], weights[2:3], *words)
    # Products of other sizes may sum in another order.
    torch.testing.assert_close(together[2:3], alone, rtol=1e-12, atol=1e-10)


def test_no_documents():
    inputs, lse, weights, *words = problem(torch.float32)
    assert second_moments(inputs[:0], lse[:0], weights[:0], *words).shape == (0, K, K)
