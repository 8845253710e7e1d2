from __future__ import annotations

import re

import pytest
import yaml

from docsigma import (
    BayesianSMM,
    DocumentEmbedder,
    TopicClassifier,
    load_corpus,
    load_model,
)
from docsigma_paper import SMM
from running import succeed


def read(folder):
    text = (folder / "README.md").read_text("utf-8")
    _, front, body = text.split("---\n", 2)
    return yaml.safe_load(front), body


def run_program(body, names):
    (program,) = re.findall(r"```python\n(.*?)```", body, re.DOTALL)
    exec(program, names)


@pytest.fixture(scope="module")
def texts(docstrings):
    return docstrings.train.texts[::3]


def test_a_card_says_what_the_model_is_and_how_to_load_it(texts, tmp_path):
    made = DocumentEmbedder(3, model=BayesianSMM(l1=0.1, max_iter=3), random_state=0)
    made.fit(texts).save(tmp_path / "m")
    front, body = read(tmp_path / "m")
    assert front["library_name"] == "docsigma"
    assert front["pipeline_tag"] == "feature-extraction"
    assert "BayesianSMM" in front["tags"]
    n_words = len(made.model_.vocabulary_)
    assert f"| documents | {len(texts)} |" in body
    assert f"| words in the vocabulary | {n_words} |" in body
    assert "| l1 | 0.1 |" in body
    assert "| passes | 3 (all were done) |" in body
    names = {"folder": tmp_path / "m", "texts": texts[:2]}
    run_program(body, names)
    assert names["model"].model_.n_components == 3


def test_a_card_of_counts_loads_too(tmp_path):
    counts = load_corpus("synthetic", n_train=30).train.counts
    BayesianSMM(2, max_iter=2, random_state=0).fit(counts).save(tmp_path / "m")
    _, body = read(tmp_path / "m")
    assert "heaviest dimensions" not in body
    run_program(body, {"folder": tmp_path / "m", "counts": counts})


def test_a_card_of_points_promises_no_variance(tmp_path):
    counts = load_corpus("synthetic", n_train=30).train.counts
    SMM(2, max_iter=2, random_state=0).fit(counts).save(tmp_path / "m")
    _, body = read(tmp_path / "m")
    assert "a point in 2 dimensions" in body
    assert "variance that" not in body


def test_words_do_not_break_the_card(tmp_path):
    counts = load_corpus("synthetic", n_train=30).train.counts
    odd = [f"a|b`c_{i}" for i in range(counts.shape[1])]
    model = BayesianSMM(2, max_iter=2, random_state=0).fit(counts)
    model.set_vocabulary(odd).save(tmp_path / "m")
    _, body = read(tmp_path / "m")
    assert "a\\|b\\`c\\_" in body


def test_the_corpus_is_remembered_when_saved_again(tmp_path, capsys):
    file = tmp_path / "own.txt"
    file.write_text("sun rain\nrain wind\nsun wind\n")
    succeed(capsys, "fit", file, "--out", tmp_path / "m", "--components", 2)
    load_model(tmp_path / "m").save(tmp_path / "again")
    _, body = read(tmp_path / "again")
    assert "own.txt" in body
    assert "| documents | 3 |" in body


def test_documents_of_partial_fit_are_added():
    counts = load_corpus("synthetic", n_train=40).train.counts
    model = BayesianSMM(2, random_state=0).partial_fit(counts[:30])
    assert model.partial_fit(counts[30:]).trained_on_ == {
        "n_documents": 40,
        "n_tokens": int(counts.sum()),
    }


def test_the_card_of_a_classifier_names_its_classes(tmp_path):
    texts = ["sun and rain", "rain and wind", "bread and salt", "salt and butter"] * 5
    embedder = DocumentEmbedder(2, model=BayesianSMM(max_iter=3), random_state=0)
    made = TopicClassifier(embedder, kind="glcu")
    made.fit(texts, ["weather", "weather", "food", "food"] * 5).save(tmp_path / "c")
    front, body = read(tmp_path / "c")
    assert front["pipeline_tag"] == "text-classification"
    assert "2 classes: food, weather" in body
    names = {"folder": tmp_path / "c", "texts": texts[:2]}
    run_program(body, names)
    assert names["model"].classes_.tolist() == ["food", "weather"]
