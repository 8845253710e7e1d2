"""The fused kernels, by Triton's interpreter on a CPU and for real on a GPU.

Triton reads TRITON_INTERPRET once, when it is imported, so the interpreted cases run
in a process of their own: this file, as a script.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
import torch

from docsigma.exceptions import InputError
from docsigma.kernels import softmax_moments
from docsigma.kernels.fused import PreparedLoadings, available, fused_moments

NAMES = ("lse", "first", "second", "loading_gradient", "bias_gradient")
# n, V, K and the size of the points.
CASES = {
    "one point": (1, 5, 3, 1.0),
    "two tiles of words": (37, 300, 100, 1.0),
    "two chunks of columns": (5, 130, 130, 1.0),
    "columns in separate passes": (3, 70, 300, 1.0),
    "several blocks of points": (140, 40, 20, 1.0),
    "large logits": (33, 130, 16, 1000.0),
}
# Relative errors in the Frobenius norm, twice those seen. TF32 has 10 bits.
GPU_TOLERANCES = dict(zip(NAMES, (4e-4, 7e-4, 3e-4, 7e-4, 5e-5), strict=True))

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def coarse_problem(n, v, k, size):
    """Give numbers of few bits: rounding to TF32 leaves them, and the logits exact."""
    source = torch.Generator().manual_seed(0)

    def coarse(*shape):
        return torch.randint(-8, 9, shape, generator=source).float() / 16

    weights = torch.rand(n, generator=source) * 300
    weights[1::3] = 0
    bias = coarse(v)
    bias[1::5] = float("-inf")
    return coarse(n, k) * size, coarse(v, k), bias, weights


def realistic_problem(n, v, k):
    source = torch.Generator().manual_seed(0)
    points = 0.3 * torch.randn(n, k, generator=source)
    loadings = 0.3 * torch.randn(v, k, generator=source)
    loadings *= torch.rand(v, k, generator=source) < 0.3
    bias = -torch.arange(1.0, v + 1).log()
    weights = torch.rand(n, generator=source) * 300
    return points, loadings, bias - bias.logsumexp(0), weights


def relative_errors(got, exact):
    errors = {}
    for name in NAMES:
        a, b = getattr(got, name).double(), getattr(exact, name)
        assert a.shape == b.shape
        errors[name] = float((a - b).norm() / b.norm().clamp(min=1e-30))
    return errors


def exact_moments(points, loadings, bias, weights):
    return softmax_moments(
        points.double(),
        loadings.double(),
        bias.double(),
        second=True,
        weights=weights.double(),
    )


def interpret(path):
    results = {}
    for case, sizes in CASES.items():
        *problem, weights = coarse_problem(*sizes)
        results[case] = fused_moments(*problem, second=True, weights=weights)
    *problem, weights = coarse_problem(3, 20, 5, 1.0)
    results["no weight"] = fused_moments(*problem, weights=torch.zeros(3))
    results["lse"] = fused_moments(*problem)
    results["first"] = fused_moments(*problem, first=True)
    prepared = PreparedLoadings.of(*problem[1:], second=True)
    results["prepared"] = fused_moments(*problem, second=True, prepared=prepared)
    try:
        prepared = PreparedLoadings.of(*problem[1:])
        fused_moments(*problem, second=True, prepared=prepared)
    except InputError as error:
        results["no squares"] = str(error)
    torch.save(results, path)


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    path = tmp_path_factory.mktemp("fused") / "results.pt"
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, __file__, path], env=environment, check=True)
    return torch.load(path, weights_only=False)


@pytest.mark.parametrize("case", CASES)
def test_interpreted_kernels_equal_the_plain_primitive(interpreted, case):
    exact = exact_moments(*coarse_problem(*CASES[case]))
    errors = relative_errors(interpreted[case], exact)
    # The logits are exact here; only the probabilities are rounded, to 11 bits.
    assert errors["lse"] < 1e-6
    for name in NAMES[1:]:
        assert errors[name] < 3e-4, (name, errors[name])


def test_points_without_weight_give_no_gradient(interpreted):
    got = interpreted["no weight"]
    assert not got.loading_gradient.any()
    assert not got.bias_gradient.any()


def test_only_what_is_asked_for_is_given(interpreted):
    assert [getattr(interpreted["lse"], n) is None for n in NAMES[1:]] == [True] * 4
    first = [getattr(interpreted["first"], n) is None for n in NAMES[1:]]
    assert first == [False, True, True, True]
    torch.testing.assert_close(interpreted["first"].lse, interpreted["lse"].lse)


def test_prepared_loadings_give_the_same(interpreted):
    assert torch.equal(interpreted["prepared"].first, interpreted["first"].first)


def test_loadings_prepared_without_squares_give_no_second_moment(interpreted):
    assert "`prepared`" in interpreted["no squares"]


def test_no_points_give_empty_results():
    points, loadings, bias, _ = coarse_problem(1, 6, 4, 1.0)
    nothing = torch.empty(0)
    got = fused_moments(points[:0], loadings, bias, second=True, weights=nothing)
    assert got.lse.shape == (0,)
    assert got.second.shape == (0, 4)
    assert torch.equal(got.loading_gradient, torch.zeros(6, 4))


def test_too_many_components_are_refused():
    with pytest.raises(InputError, match="512 columns.*got 513"):
        fused_moments(torch.ones(1, 513), torch.ones(2, 513), torch.ones(2))


def test_cpu_tensors_and_other_dtypes_are_not_available():
    assert not available(torch.ones(1))
    if torch.cuda.is_available():
        assert not available(torch.ones(1, dtype=torch.float64, device="cuda"))


def test_module_can_be_imported_without_triton():
    code = (
        "import sys; sys.modules['triton'] = None; import torch;"
        "from docsigma.kernels.fused import available;"
        "assert not available(torch.ones(1))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.gpu
@gpu
@pytest.mark.parametrize("k", [3, 50, 100, 130, 200, 400, 512])
def test_gpu_errors_stay_within_those_of_tf32(k):
    problem = [x.cuda() for x in realistic_problem(1000, 20000, k)]
    exact = exact_moments(*problem)
    assert available(problem[0])
    *given, weights = problem
    got = fused_moments(*given, second=True, weights=weights)
    for name, error in relative_errors(got, exact).items():
        assert error < GPU_TOLERANCES[name], (name, error)


@pytest.mark.gpu
@gpu
@pytest.mark.parametrize("n", [1, 17, 3000])
@pytest.mark.parametrize("v", [1, 100, 3001])
def test_gpu_is_right_at_every_size(n, v):
    problem = [x.cuda() for x in coarse_problem(n, v, 100, 100.0)]
    exact = exact_moments(*problem)
    *given, weights = problem
    got = fused_moments(*given, second=True, weights=weights)
    for name, error in relative_errors(got, exact).items():
        assert error < 5e-4, (name, error)


if __name__ == "__main__":
    interpret(sys.argv[1])
