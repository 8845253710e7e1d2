"""The recipes of docs/beyond-one-machine.md that fit a model, run by their engines.

Outside `make test`: `make test-recipes` has Ray Train's, `make test-spark` Spark's.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from docsigma import BayesianSMM, load_corpus, load_model
from docsigma.counts import CountsWriter, DiskCounts

PAGE = Path(__file__).parents[2] / "docs" / "beyond-one-machine.md"
MODEL = "BayesianSMM(3, max_iter=3, random_state=0)"
SESSION = """
import os, sys
from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable
session = SparkSession.builder.master("local-cluster[2,1,2048]")
session.config("spark.executor.memory", "2g").getOrCreate()
"""


def recipe(name):
    """Return the block of the page that has `name`."""
    blocks = re.findall(r"^ *```py\n(.*?)^ *```", PAGE.read_text("utf-8"), re.M | re.S)
    (found,) = (textwrap.dedent(block) for block in blocks if name in block)
    return found


@pytest.fixture
def shared(tmp_path):
    """A folder with counts on disk."""
    counts = load_corpus("synthetic").train.counts
    words = [f"w{i}" for i in range(counts.shape[1])]
    with CountsWriter(tmp_path / "counts", counts.shape[1], words) as out:
        out.add(counts)
    return tmp_path


def check(script, shared):
    """Run a recipe with two processes; its model is that of one."""
    script = script.replace("/shared", str(shared)).replace("BayesianSMM(100)", MODEL)
    (shared / "recipe.py").write_text(script.replace("=8", "=2"), "utf-8")
    done = subprocess.run(
        [sys.executable, shared / "recipe.py"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = load_model(shared / "model").components_
    expected = BayesianSMM(3, max_iter=3, random_state=0)
    expected = expected.fit(DiskCounts(shared / "counts")).components_
    largest = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * largest)


@pytest.mark.recipes
def test_ray_train(shared):
    check(recipe("TorchTrainer"), shared)


@pytest.mark.spark
def test_spark_torch_distributor(shared):
    function = recipe("TorchTrainer").split("TorchTrainer(fit")[0]
    function = function[function.index("def fit") :]
    check(SESSION + function + recipe("TorchDistributor"), shared)
