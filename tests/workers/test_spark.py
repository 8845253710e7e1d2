from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from docsigma import DocumentEmbedder
from docsigma.counts import Vocabulary
from docsigma.workers import FrequencyBatches

pytestmark = pytest.mark.spark
SCRIPT = Path(__file__).parents[1] / "support" / "spark_job.py"


@pytest.fixture(scope="module")
def job(texts, write_raw, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    write_raw(folder / "raw")
    embedder = DocumentEmbedder(4, random_state=0).fit(texts)
    embedder.save(folder / "model")
    paths = [folder / "model", folder / "raw", folder]
    done = subprocess.run(
        [sys.executable, SCRIPT, *paths], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_embeddings_are_complete_though_a_worker_is_killed(job, texts):
    assert (job / "killed-once").exists()
    table = pq.read_table(job / "embedded")
    order = np.argsort([int(name[1:]) for name in table["id"].to_pylist()])
    table = table.take(order)
    assert table["id"].to_pylist() == [f"d{i}" for i in range(len(texts))]
    q = DocumentEmbedder.load(job / "model").posterior(texts)
    for name in ("mean", "variance"):
        found = np.array(table[name].to_pylist())
        np.testing.assert_allclose(found, getattr(q, name), atol=1e-4)


def test_the_engine_may_add_frequencies_up(job, texts):
    words = FrequencyBatches(min_df=2)
    found = words.vocabulary([pq.read_table(job / "frequencies")])
    assert found == Vocabulary.from_texts(texts, min_df=2)
