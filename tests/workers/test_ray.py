from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from docsigma import DocumentEmbedder
from docsigma.counts import DiskCounts, Vocabulary

pytest.importorskip("ray", reason="pip install docsigma[ray]")
# test_batches.py has what the workers do, without Ray.
pytestmark = pytest.mark.release
SCRIPT = Path(__file__).parents[1] / "support" / "ray_job.py"


@pytest.fixture(scope="module")
def job(write_raw, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    write_raw(folder / "raw")
    (folder / "out").mkdir()
    done = subprocess.run(
        [sys.executable, SCRIPT, folder / "raw", folder / "out"],
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "out"


def assert_complete(table, texts, job):
    """All documents once, with the library's embeddings."""
    order = np.argsort([int(name[1:]) for name in table["id"].to_pylist()])
    table = table.take(order)
    assert table["id"].to_pylist() == [f"d{i}" for i in range(len(texts))]
    q = DocumentEmbedder.load(job / "model").posterior(texts)
    for name in ("mean", "variance"):
        found = np.array(table[name].to_pylist())
        np.testing.assert_allclose(found, getattr(q, name), atol=1e-4)


def test_embeddings_are_complete_though_a_worker_is_killed(job, texts):
    assert (job / "killed-once").exists()
    assert_complete(pq.read_table(job / "embedded.parquet"), texts, job)


def test_files_are_complete_though_a_worker_is_killed(job, texts):
    assert (job / "killed-too").exists()
    files = sorted((job / "files").iterdir())
    assert [file.name for file in files] == [f"part-{i}.parquet" for i in range(4)]
    assert_complete(pq.read_table(job / "files"), texts, job)


def test_counts_are_those_of_one_machine(job, texts):
    counts = DiskCounts(job / "counts")
    expected = Vocabulary.from_texts(texts, min_df=2)
    assert counts.vocabulary == expected
    rows = np.argsort([int(name[1:]) for name in counts.ids()])
    plain = expected.count(texts).counts.toarray()
    np.testing.assert_array_equal(counts[rows].toarray(), plain)
