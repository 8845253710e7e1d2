"""What TF32 cannot finish is finished in float32, with TF32 imitated on a CPU."""

from __future__ import annotations

import pytest
import torch

from docsigma.covariances import Diagonal
from docsigma.estep import infer, newton
from docsigma.kernels import CountTensor, rounding, softmax_moments, use_rounding
from docsigma.kernels.softmax_moments import SoftmaxWords
from toy import toy

TOL = 0.04


def ten_bits(values):
    """Round to the mantissa of TF32."""
    fraction, exponent = torch.frexp(values)
    return torch.ldexp((fraction * 2**11).round() / 2**11, exponent)


@pytest.fixture
def imitated(monkeypatch):
    """Products of the bound round as on a GPU wherever TF32 is in force."""
    n_points = []

    def coarse(like):
        return like.dtype == torch.float32 and rounding.rounding() == "tf32"

    def moments(points, words, **options):
        if coarse(points):
            words = SoftmaxWords(ten_bits(words.loadings), words.bias)
            points = ten_bits(points)
        else:
            n_points.append(len(points))
        return softmax_moments(points, words, **options)

    monkeypatch.setattr(rounding, "is_coarse", coarse)
    monkeypatch.setattr(newton, "is_coarse", coarse)
    monkeypatch.setattr("docsigma.objective.softmax_moments", moments)
    return n_points


def problem(tokens):
    made = toy(10, n=60, v=400, tokens=tokens, precision=10.0, seed=3)
    made.loadings, made.bias = made.loadings.float(), made.bias.float()
    return made


def embed(made, name, **options):
    counts = CountTensor(made.matrix, made.bias)
    with use_rounding(name):
        return infer(counts, made.model, Diagonal(), tol=TOL, **options)


def off(found, expected):
    """Return the distance of means in standard deviations, per document."""
    away = (found.posterior.mean - expected.posterior.mean).square()
    return (away / expected.posterior.variance).mean(dim=1).sqrt()


def test_long_documents_are_off_in_tf32_and_finished_in_float32(imitated, monkeypatch):
    made = problem(400_000)
    exact = embed(made, "float32")
    with monkeypatch.context() as patch:
        patch.setattr(newton, "finish", lambda *_: None)
        coarse = embed(made, "tf32")
    assert coarse.converged.double().mean() < 0.2
    found = embed(made, "tf32")
    assert found.converged.all()
    # Both stop within the tolerance of the optimum.
    assert off(found, exact).max() < 2 * TOL
    assert off(found, exact).mean() < off(coarse, exact).mean()


def test_documents_of_usual_length_take_no_pass_in_float32(imitated):
    made = problem(100)
    found = embed(made, "tf32")
    assert imitated == []
    assert found.converged.all()
    assert off(found, embed(made, "float32")).max() < 2 * TOL


def test_passes_of_both_are_counted_and_limited(imitated):
    made = problem(400_000)
    found = embed(made, "tf32", max_iter=12)
    assert (found.n_iter > 1).all()
    assert (found.n_iter <= 12).all()
