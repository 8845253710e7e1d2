from __future__ import annotations

from functools import partial

import pytest
import torch

from docsigma.kernels import SoftmaxWords, softmax_moments
from docsigma.kernels.softmax_moments import _blocked
from toy import random_words

problem = partial(random_words, n=7)


def direct_lse(points, loadings, bias):
    return torch.logsumexp(bias + points @ loadings.t(), dim=1)


def test_every_derivative_equals_autograd():
    points, loadings, bias, weights = problem()
    leaves = [t.clone().requires_grad_() for t in (points, loadings, bias)]
    lse = direct_lse(*leaves)
    (weights * lse).sum().backward()
    got = softmax_moments(points, loadings, bias, second=True, weights=weights)
    torch.testing.assert_close(got.lse, lse.detach(), rtol=0, atol=1e-12)
    first = leaves[0].grad / weights[:, None]
    torch.testing.assert_close(got.first, first, rtol=0, atol=1e-12)
    torch.testing.assert_close(got.loading_gradient, leaves[1].grad, rtol=0, atol=1e-8)
    torch.testing.assert_close(got.bias_gradient, leaves[2].grad, rtol=0, atol=1e-8)


def test_second_moment_gives_the_diagonal_of_the_hessian():
    points, loadings, bias, _ = problem(n=1)
    hessian = torch.autograd.functional.hessian(
        lambda w: direct_lse(w[None], loadings, bias)[0], points[0]
    )
    got = softmax_moments(points, loadings, bias, second=True)
    curvature = got.second - got.first**2
    torch.testing.assert_close(curvature[0], hessian.diagonal(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("rows", [16, 32, 1000])
def test_result_does_not_depend_on_the_block_size(rows):
    points, loadings, bias, weights = problem(n=101)
    whole = softmax_moments(points, loadings, bias, second=True, weights=weights)
    words = SoftmaxWords(loadings, bias)
    parts = _blocked(points, words, True, True, weights, rows * 23 * 8)
    for name in ("lse", "first", "second", "loading_gradient", "bias_gradient"):
        expected = getattr(whole, name)
        torch.testing.assert_close(getattr(parts, name), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_logits_do_not_overflow(dtype):
    points, loadings, bias, weights = problem(dtype=dtype)
    got = softmax_moments(points * 1e4, loadings, bias, second=True, weights=weights)
    for name in ("lse", "first", "second", "loading_gradient", "bias_gradient"):
        assert torch.isfinite(getattr(got, name)).all()


def test_float32_agrees_with_float64():
    points, loadings, bias, weights = problem(n=50, v=5000)
    exact = softmax_moments(points, loadings, bias, second=True, weights=weights)
    single = softmax_moments(
        points.float(),
        loadings.float(),
        bias.float(),
        second=True,
        weights=weights.float(),
    )
    # A logit is rounded K + 2 times at the scale of its terms, a sum of V terms adds
    # sqrt(V) roundings, and `first` is a ratio of two such sums at the scale of T.
    eps, (v, k) = torch.finfo(torch.float32).eps, loadings.shape
    scale = (points.abs() @ loadings.abs().t() + bias.abs()).max().item()
    relative = eps * ((k + 2) * scale + v**0.5)
    of_first = 2 * relative * loadings.abs().max().item()
    torch.testing.assert_close(single.lse.double(), exact.lse, rtol=0, atol=relative)
    torch.testing.assert_close(
        single.first.double(), exact.first, rtol=0, atol=of_first
    )


def test_no_points_give_empty_results():
    points, loadings, bias, _ = problem()
    got = softmax_moments(points[:0], loadings, bias, first=True)
    assert got.lse.shape == (0,)
    assert got.first.shape == (0, 4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_gpu_gives_the_cpus_numbers():
    points, loadings, bias, weights = problem(n=300, v=5000, k=20)
    there = [t.cuda() for t in (points, loadings, bias)]
    cpu = softmax_moments(points, loadings, bias, second=True, weights=weights)
    gpu = softmax_moments(*there, second=True, weights=weights.cuda())
    for name in ("lse", "first", "second", "loading_gradient", "bias_gradient"):
        got = getattr(gpu, name).cpu()
        torch.testing.assert_close(got, getattr(cpu, name), rtol=1e-9, atol=1e-9)
