from __future__ import annotations

import numpy as np
import pytest

from docsigma import Corpus, GaussianPosterior
from docsigma.cli import _demo as demo
from docsigma.cli.demo import _tables
from docsigma.metrics.plots import document_map, variance_against_length


@pytest.mark.parametrize(
    "whole", [False, pytest.param(True, marks=pytest.mark.release)]
)
def test_demo_writes_model_and_plots_and_beats_the_unigram(
    whole, docstrings, monkeypatch, tmp_path
):
    few = Corpus("docstrings", docstrings.train[:300], docstrings.test[:100])
    if not whole:
        monkeypatch.setattr(demo, "load_corpus", lambda _: few)
    lines = []
    result = demo.run_demo(tmp_path, n_components=5, max_iter=15, log=lines.append)
    names = {path.name for path in tmp_path.iterdir()}
    plots = {"bound.png", "uncertainty.png", "map.png", "reliability.png"}
    assert names == {"model", "classifier", "explore.html"} | plots
    kinds = ["hybrid", "evidence", "glcu", "glc", "lr"]
    assert list(result.topic_id) == [*kinds, "TF-IDF + LR"]
    assert all(scores["accuracy"] > 10 for scores in result.topic_id.values())
    assert result.perplexity.corpus < result.perplexity.unigram_corpus
    assert len(_tables(result)) == 4
    assert any("plots" in line for line in lines)


@pytest.mark.parametrize("n_labels", [1, 2, 5])
def test_document_map_takes_any_number_of_labels(n_labels, tmp_path):
    random = np.random.default_rng(0)
    q = GaussianPosterior(random.standard_normal((40, 4)), np.full((40, 4), 0.1))
    labels = [f"label {i % n_labels}" for i in range(40)]
    document_map(q, labels).savefig(tmp_path / "map.png")
    variance_against_length(q, np.arange(40), 0.1).savefig(tmp_path / "length.png")
    assert (tmp_path / "map.png").stat().st_size > 10_000
