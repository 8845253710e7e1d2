from __future__ import annotations

import json

import pytest

from docsigma import Documents, InputError, load_corpus
from docsigma_paper.cut_documents import cut, main, run


def test_cutting_keeps_a_window_of_words():
    documents = Documents(["a", "b"], ["one two three", "four"], labels=["x", "y"])
    assert cut(documents, 0, 2).texts == ["one two", "four"]
    assert cut(documents, 1, 5).texts == ["two three", ""]
    assert cut(documents, 1, 5).labels == ["x", "y"]
    with pytest.raises(InputError, match="only texts can be cut"):
        cut(load_corpus("synthetic").train, 0, 1)


def test_a_corpus_without_texts_or_long_documents_is_refused():
    with pytest.raises(InputError, match="no texts"):
        run("synthetic")


@pytest.mark.data
def test_uncertainty_pays_on_short_documents(data_folder, tmp_path):
    file = tmp_path / "cut.json"
    arguments = ["--corpus", "switchboard", "--start", "200", "--components", "30"]
    arguments += ["--max-iter", "80", "--json", str(file)]
    main([*arguments, "--plot", str(tmp_path / "cut.png")])
    cuts = json.loads(file.read_text())["cuts"]
    at = {(c["n_words"], c["kind"]): c["cross_entropy"] for c in cuts}
    assert at[10, "glcu"] < at[10, "glc"]
    assert at[200, "glcu"] < at[10, "glcu"]
    assert (tmp_path / "cut.png").stat().st_size > 10_000
