"""The tiled path of the primitive against the blocked one, in float64."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch

from docsigma.kernels import (
    SoftmaxWords,
    TileSizes,
    Workspace,
    softmax_moments,
    tiles,
)
from docsigma.kernels.softmax_moments import _blocked
from toy import random_words

NAMES = ("lse", "first", "second", "loading_gradient", "bias_gradient")


problem = partial(random_words, n=50)


def blocked(points, loadings, bias, weights):
    words = SoftmaxWords(loadings, bias)
    return _blocked(points, words, True, True, weights)


def agree(got, expected, **tolerance):
    tolerance = {"rtol": 1e-10, "atol": 1e-10} | tolerance
    for name in NAMES:
        torch.testing.assert_close(
            getattr(got, name), getattr(expected, name), **tolerance
        )


@pytest.mark.parametrize("tile", [1, 7, 23, 1024])
@pytest.mark.parametrize(
    ("points_at_once", "kept"), [(1024, 2**28), (16, 2**28), (5, 1)]
)
def test_tiles_give_what_blocks_give(tile, points_at_once, kept):
    arguments = problem()
    expected = blocked(*arguments)
    sizes = TileSizes(words=tile, points=points_at_once, kept_bytes=kept)
    *rest, weights = arguments
    got = softmax_moments(*rest, second=True, weights=weights, sizes=sizes)
    agree(got, expected)
    alone = softmax_moments(*rest, sizes=sizes)
    torch.testing.assert_close(alone.lse, expected.lse, rtol=0, atol=1e-10)
    assert alone.first is alone.second is alone.loading_gradient is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_that_overflow_or_underflow_are_done_again(dtype):
    sizes = TileSizes(words=7, points=16)
    points, loadings, bias, weights = problem(dtype=dtype)
    points[3] *= 1e3
    points[20:23] *= -1e3
    points[49] *= 1e5
    *_, usable = tiles.tiled_moments(
        points,
        tiles.augment(loadings, bias),
        first=True,
        second=True,
        weights=weights,
        workspace=Workspace(),
        sizes=sizes,
    )
    assert torch.nonzero(~usable)[:, 0].tolist() == [3, 20, 21, 22, 49]
    loose = {"rtol": 1e-4, "atol": 1e-2} if dtype == torch.float32 else {}
    got = softmax_moments(
        points, loadings, bias, second=True, weights=weights, sizes=sizes
    )
    agree(got, blocked(points, loadings, bias, weights), **loose)


def test_a_bias_far_below_zero_does_no_harm():
    points, loadings, bias, weights = problem()
    low = bias - 1e4
    got = softmax_moments(points, loadings, low, second=True, weights=weights)
    agree(got, blocked(points, loadings, low, weights), rtol=1e-9)
    torch.testing.assert_close(
        got.lse + 1e4, torch.logsumexp(bias + points @ loadings.t(), dim=1)
    )


def test_one_word_far_below_the_others_has_no_part():
    points, loadings, bias, weights = problem()
    bias[5] = -1e4
    got = softmax_moments(points, loadings, bias, second=True, weights=weights)
    assert got.bias_gradient[5] == 0
    agree(got, blocked(points, loadings, bias, weights))


def test_points_of_weight_zero_leave_the_gradient_alone():
    points, loadings, bias, weights = problem()
    weights[::2] = 0
    points[4] *= 1e4
    got = softmax_moments(points, loadings, bias, second=True, weights=weights)
    agree(got, blocked(points, loadings, bias, weights))
    some = softmax_moments(points[1::2], loadings, bias, weights=weights[1::2])
    torch.testing.assert_close(got.loading_gradient, some.loading_gradient)
    none = softmax_moments(points, loadings, bias, weights=0 * weights)
    assert (none.loading_gradient == 0).all()
    assert (none.bias_gradient == 0).all()


def test_no_points_give_a_gradient_of_zero():
    points, loadings, bias, weights = problem()
    got = softmax_moments(points[:0], loadings, bias, weights=weights[:0])
    assert got.loading_gradient.shape == loadings.shape
    assert (got.loading_gradient == 0).all()


def test_a_table_is_as_good_as_loadings_and_bias():
    points, loadings, bias, weights = problem()
    table = tiles.augment(loadings, bias)
    words = SoftmaxWords.of_table(table)
    assert words.table.data_ptr() == table.data_ptr()
    got = softmax_moments(points, words, second=True, weights=weights)
    agree(got, blocked(points, loadings, bias, weights))
    with pytest.raises(TypeError, match="`bias` is needed"):
        softmax_moments(points, loadings)


def test_a_workspace_serves_calls_of_any_size_and_dtype():
    workspace = Workspace()
    sizes = [(50, 23), (3, 5), (200, 40), (50, 23)]
    for dtype in (torch.float64, torch.float32, torch.float64):
        for n, v in sizes:
            arguments = problem(n=n, v=v, dtype=dtype)
            *rest, weights = arguments
            got = softmax_moments(
                *rest, second=True, weights=weights, workspace=workspace
            )
            kept = {name: getattr(got, name).clone() for name in NAMES}
            fresh = softmax_moments(*rest, second=True, weights=weights)
            for name in NAMES:
                assert torch.equal(kept[name], getattr(fresh, name))


def test_a_workspace_keeps_its_memory_until_more_is_asked_for():
    workspace, like = Workspace(), torch.empty(0, dtype=torch.float64)
    first = workspace.take(10, 4, like)
    assert workspace.take(4, 10, like).data_ptr() == first.data_ptr()
    assert workspace.take(2, 3, like).shape == (2, 3)
    assert workspace.take(2, 3, like.float()).dtype == torch.float32


@pytest.mark.parametrize("n", [1, TileSizes().few_points, TileSizes().few_points + 1])
@pytest.mark.parametrize("second", [False, True])
def test_few_points_and_many_have_the_same_moments(n, second):
    source = torch.Generator().manual_seed(n)
    points = torch.randn(n, 3, generator=source, dtype=torch.float64)
    loadings = torch.randn(50, 3, generator=source, dtype=torch.float64)
    bias = torch.randn(50, generator=source, dtype=torch.float64)
    found = softmax_moments(
        points, loadings, bias, first=True, second=second, sizes=TileSizes(words=7)
    )
    logits = bias + points @ loadings.t()
    theta = logits.softmax(dim=1)
    torch.testing.assert_close(found.lse, logits.logsumexp(dim=1))
    torch.testing.assert_close(found.first, theta @ loadings)
    if second:
        torch.testing.assert_close(found.second, theta @ loadings.square())


def test_threads_and_copies_have_buffers_of_their_own():
    like = torch.zeros(1)
    workspace = Workspace()
    mine = workspace.take(2, 3, like)
    with ThreadPoolExecutor(1) as executor:
        theirs = executor.submit(workspace.take, 2, 3, like).result()
    assert theirs.data_ptr() != mine.data_ptr()
    assert workspace.take(2, 3, like).data_ptr() == mine.data_ptr()
    copied = pickle.loads(pickle.dumps(workspace))
    assert copied.take(2, 3, like).data_ptr() != mine.data_ptr()
