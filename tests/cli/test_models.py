"""Every command with every kind of model."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from counting import TEXTS, counted
from docsigma import BayesianSMM, Vocabulary, load_model
from docsigma.classifiers import CountsClassifier
from docsigma.covariances import Full, Point
from docsigma.priors import IsotropicPrior
from docsigma_paper import NVDM, SMM
from running import refuse, succeed

QUICK = {"max_iter": 3, "random_state": 0, "device": "cpu"}
MODELS = {
    "BayesianSMM": lambda: BayesianSMM(2, **QUICK),
    "SMM": lambda: SMM(2, **QUICK),
    "NVDM": lambda: NVDM(2, hidden_units=5, learning_rate=1e-2, **QUICK),
    # Parts as objects; this one gives points too.
    "points": lambda: BayesianSMM(
        2, covariance=Point(), prior=IsotropicPrior(4.0), **QUICK
    ),
}
POINTS = {"SMM", "points"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    words, found = Vocabulary.fit_count([text for text, _ in TEXTS])
    for name, make in MODELS.items():
        make().fit(found.counts).set_vocabulary(words).save(root / name)
    return root


@pytest.fixture(params=list(MODELS))
def kind(request):
    return request.param


@pytest.fixture
def model(saved, kind):
    return saved / kind


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_load_model_gives_the_class_that_was_saved(model, kind):
    loaded = load_model(model)
    assert type(loaded).__name__ == kind.replace("points", "BayesianSMM")
    again = type(loaded).load(model)
    np.testing.assert_array_equal(loaded.components_, again.components_)


def test_info_names_the_kind_and_its_parameters(model, kind, capsys):
    report = json.loads(succeed(capsys, "info", model, "--json"))
    assert report["kind"] == kind.replace("points", "BayesianSMM")
    assert report["n_components"] == 2
    assert report["parameters"]["max_iter"] == 3
    shown = succeed(capsys, "info", model)
    assert ("KL to the prior" in shown) == (kind not in POINTS)
    assert ("hidden_units" in shown) == (kind == "NVDM")


def test_info_prints_parts_as_text(saved, tmp_path, capsys):
    report = json.loads(succeed(capsys, "info", saved / "points", "--json"))
    assert report["parameters"]["prior"] == "IsotropicPrior(precision=4.0)"
    assert report["parameters"]["covariance"] == "Point()"
    assert report["parameters"]["likelihood"] == "multinomial"
    assert "IsotropicPrior(precision=4.0)" in succeed(capsys, "info", saved / "points")
    full = BayesianSMM(2, covariance=Full(), **QUICK).fit(np.eye(4))
    full.save(tmp_path / "full")
    report = json.loads(succeed(capsys, "info", tmp_path / "full", "--json"))
    assert report["parameters"]["covariance"] == "Full()"


@pytest.mark.parametrize("on_disk", [False, True])
def test_embed_writes_what_the_model_gives(
    model, kind, documents, tmp_path, capsys, on_disk
):
    source = documents
    if on_disk:
        source = tmp_path / "counts"
        counted(capsys, documents, "--out", source, "--vocabulary", model)
    out = tmp_path / "out.jsonl"
    report = json.loads(succeed(capsys, "embed", model, source, "--out", out, "--json"))
    rows = read(out)
    names = {"id", "label", "mean", "n_tokens", "n_unknown"}
    if source == documents:
        names |= {"row", "text"}
    if kind not in POINTS:
        names |= {"variance", "total_variance"}
    assert set(rows[0]) == names
    assert (report["mean_total_variance"] is None) == (kind in POINTS)
    loaded = load_model(model)
    texts = [text for text, _ in TEXTS]
    expected = loaded.transform(loaded.vocabulary_.count(texts).counts)
    np.testing.assert_allclose([row["mean"] for row in rows], expected, rtol=1e-5)
    for suffix in ("npz", "parquet"):
        out = tmp_path / f"out.{suffix}"
        shown = succeed(capsys, "embed", model, source, "--out", out)
        assert ("mean total variance" in shown) == (kind not in POINTS)


def test_topics_with_and_without_documents(model, kind, documents, capsys):
    dimensions = json.loads(succeed(capsys, "topics", model, "--json"))["dimensions"]
    assert len(dimensions) == 2
    assert "top words" in succeed(capsys, "topics", model)
    groups = ("topics", model, documents, "--clusters", 2)
    clusters = json.loads(succeed(capsys, *groups, "--json"))["clusters"]
    assert sum(cluster["size"] for cluster in clusters) == len(TEXTS)
    for cluster in clusters:
        assert (cluster["mean_total_variance"] is None) == (kind in POINTS)
    shown = succeed(capsys, *groups)
    assert ("variance" in shown) == (kind not in POINTS)
    assert "nearest document" in shown


def test_perplexity_needs_gaussians(model, kind, documents, capsys):
    if kind in POINTS:
        sentence = refuse(capsys, "perplexity", model, documents)
        assert "gives points, not Gaussians, and so has no perplexity" in sentence
        return
    found = json.loads(succeed(capsys, "perplexity", model, documents, "--json"))
    assert found["n_draws"] == (20 if kind == "NVDM" else 32)
    draws = ("--draws", 8, "--json")
    found = json.loads(succeed(capsys, "perplexity", model, documents, *draws))
    assert found["n_draws"] == 8


@pytest.mark.parametrize("classifier", ["glc", "glcu", "lr"])
def test_classifiers_on_every_kind(
    model, kind, documents, tmp_path, capsys, classifier
):
    clf = tmp_path / "clf"
    fit = ("classifier", "fit", model, documents, "--out", clf, "--kind", classifier)
    if classifier == "glcu" and kind in POINTS:
        sentence = refuse(capsys, *fit)
        assert "glcu needs Gaussians" in sentence
        assert "gives points: use hybrid, glc or lr" in sentence
        assert not clf.exists()
        return
    assert json.loads(succeed(capsys, *fit, "--json"))["n_classes"] == 3
    loaded = CountsClassifier.load(clf)
    assert type(loaded.model_) is type(load_model(model))
    evaluate = ("classifier", "evaluate", clf, documents)
    report = json.loads(succeed(capsys, *evaluate, "--json"))
    assert report["n_documents"] == len(TEXTS)
    assert "accuracy" in succeed(capsys, *evaluate)
    out = tmp_path / "labels.jsonl"
    succeed(capsys, "classifier", "predict", clf, documents, "--out", out)
    rows = read(out)
    assert ("total_variance" in rows[0]) == (kind not in POINTS)
    labels = np.array([label for _, label in TEXTS])
    right = np.mean(labels == [row["predicted"] for row in rows])
    assert 100 * right == pytest.approx(report["accuracy"])


def test_other_kinds_get_one_sentence(saved, documents, tmp_path, capsys):
    clf, model = tmp_path / "clf", tmp_path / "model"
    fit = ("classifier", "fit", saved / "SMM", documents, "--kind", "glc")
    succeed(capsys, *fit, "--out", clf)
    known = "none of the models that docsigma knows: BayesianSMM, NVDM, SMM"
    assert "glc" in succeed(capsys, "info", clf)
    commands = [
        ("topics",),
        ("perplexity", documents),
        ("embed", documents, "--out", tmp_path / "out.npz"),
    ]
    for command, *rest in commands:
        sentence = refuse(capsys, command, clf, *rest)
        assert str(clf) in sentence
        assert "of the kind TopicClassifier, which is a classifier" in sentence

    class Mine(BayesianSMM):
        pass

    Mine(1, **QUICK).fit(np.eye(4)).save(model)
    assert f"of the kind Mine, which is {known}" in refuse(capsys, "info", model)

    shutil.copytree(saved / "NVDM", tmp_path / "copy")
    config = tmp_path / "copy" / "config.json"
    fields = json.loads(config.read_text())
    del fields["kind"]
    config.write_text(json.dumps(fields))
    assert "damaged" in refuse(capsys, "info", tmp_path / "copy")
