"""The benchmarks of many processes run, and the cost model finds what it should."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def cost_model(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import cost_model

    return cost_model


def rows(a, b, u, evaluations):
    """Measurements as the model would have them."""
    found = []
    for v, k, n in [(1000, 10, 10), (1000, 100, 90), (5000, 10, 10), (5000, 50, 9)]:
        one = v * (a * k + b)
        row = {"n_documents": 3000, "n_features": v, "k": k, "batches": n}
        row["pass_seconds"] = 3000 * one + n * v * k * u
        found.append(row | {"embed_seconds": evaluations * one})
    return found


def test_constants_are_found_again(cost_model):
    # Four equations and three unknowns without noise: exact up to rounding.
    found = cost_model.constants(rows(2e-10, 3e-9, 5e-9, 7.0))
    expected = {"a": 2e-10, "b": 3e-9, "u": 5e-9, "evaluations": 7.0}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-6)
    assert found["off_at_most"] < 1e-9


def test_messages_are_paid_by_more_than_one(cost_model):
    c = {"a": 1e-10, "b": 0.0, "u": 0.0}
    sizes = (1e6, 1000, 100)
    one = cost_model.pass_seconds(c, *sizes, 1, network=1e9)
    assert one == pytest.approx(1e6 * 1000 * 100 * 1e-10)
    two = cost_model.pass_seconds(c, *sizes, 2, network=1e9)
    # Half the work, and 4 bytes per number to and from each of the two per batch.
    assert two == pytest.approx(one / 2 + 1e6 / 1024 * 1000 * 100 * 4 / 1e9)


@pytest.mark.release
def test_a_million_can_be_tried_without_a_gpu(tmp_path):
    sizes = ["--documents", "300", "--features", "60", "--components", "2"]
    out = tmp_path / "report.json"
    command = [sys.executable, BENCHMARKS / "million_on_gpu.py", *sizes]
    command += ["--passes", "2", "--device", "cpu", "--json", out, "--folder", tmp_path]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    report = json.loads(out.read_text())
    assert report["n_documents"] == 300
    assert report["fit"]["n_iter"] == 2
    assert report["embed"]["documents_per_second"] > 0
    assert report["profile_of_a_pass"]["kernel_share"] > 0
    assert report["profile_of_embedding"]["kernels"]
