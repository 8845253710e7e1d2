"""Commands on a folder of counts do what they do on the documents."""

from __future__ import annotations

import contextlib
import json
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from counting import counted
from docsigma import BayesianSMM
from docsigma.counts import CountsWriter, DiskCounts, MemoryCounts
from running import refuse, run, succeed

QUICK = ("--components", 2, "--max-iter", 3)


@pytest.fixture
def stored(tmp_path, documents, capsys):
    out = tmp_path / "counts"
    counted(capsys, documents, "--out", out, "--min-df", 6)
    return out


@pytest.fixture
def model(tmp_path, documents, capsys):
    out = tmp_path / "model"
    succeed(capsys, "fit", documents, "--out", out, "--min-df", 6, *QUICK)
    return out


def test_fit_on_disk_is_the_fit_in_memory(
    tmp_path, stored, documents, capsys, monkeypatch
):
    given = []
    plain = BayesianSMM.fit
    monkeypatch.setattr(
        BayesianSMM,
        "fit",
        lambda self, X, **more: (given.append(type(X)), plain(self, X, **more))[1],
    )
    reports, models = [], []
    for name, source in (("memory", documents), ("disk", stored)):
        fit = ("fit", source, "--out", tmp_path / name, "--min-df", 6, *QUICK)
        reports.append(json.loads(succeed(capsys, *fit, "--seed", 3, "--json")))
        models.append(BayesianSMM.load(tmp_path / name))
    assert given == [sp.csr_matrix, DiskCounts]
    for name in ("components_", "log_unigram_", "training_log_unigram_"):
        np.testing.assert_array_equal(*(getattr(model, name) for model in models))
    assert models[0].vocabulary_ == models[1].vocabulary_
    for report in reports:
        for name in ("model", "corpus", "seconds"):
            del report[name]
    assert reports[0] == reports[1]


def test_fit_on_disk_agrees_over_many_batches(tmp_path, capsys):
    config = tmp_path / "settings.toml"
    config.write_text("batch_size = 32\n")
    folder = tmp_path / "counts"
    counted(capsys, "synthetic", "--out", folder)
    models = []
    for name, source in (("memory", "synthetic"), ("disk", folder)):
        fit = ("fit", source, "--out", tmp_path / name, "--config", config, *QUICK)
        succeed(capsys, *fit)
        models.append(BayesianSMM.load(tmp_path / name))
    # Sums are in another order, so the last digits may differ.
    for name in ("components_", "log_unigram_"):
        found, expected = (getattr(model, name) for model in models)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@contextlib.contextmanager
def asked_to_stop():
    asked = threading.Event()
    asked.set()
    yield asked


def test_a_stopped_fit_on_disk_goes_on(tmp_path, stored, capsys, monkeypatch):
    fit = ("fit", stored, "--out", tmp_path / "model", *QUICK)
    monkeypatch.setattr("docsigma.cli.fit._interruptible", asked_to_stop)
    code, _, err = run(capsys, *fit)
    assert code == 130
    assert "stopped after pass 1 of 3" in err
    monkeypatch.undo()
    succeed(capsys, *fit, "--resume")
    succeed(capsys, "fit", stored, "--out", tmp_path / "whole", *QUICK)
    resumed, whole = (BayesianSMM.load(tmp_path / n) for n in ("model", "whole"))
    np.testing.assert_array_equal(resumed.components_, whole.components_)


@pytest.mark.parametrize("suffix", [".jsonl", ".npz", ".parquet"])
@pytest.mark.parametrize("size", [7, 8192])
def test_embeddings_of_a_folder_are_those_of_the_texts(
    tmp_path, stored, documents, model, capsys, monkeypatch, suffix, size
):
    monkeypatch.setattr("docsigma.counts._base.BLOCK", size)
    sizes = []
    plain = BayesianSMM.posterior
    monkeypatch.setattr(
        BayesianSMM,
        "posterior",
        lambda self, X: (sizes.append(X.shape[0]), plain(self, X))[1],
    )
    tables, reports = [], []
    for name, source in (("disk", stored), ("memory", documents)):
        out = tmp_path / f"{name}{suffix}"
        shown = succeed(capsys, "embed", model, source, "--out", out, "--json")
        reports.append(json.loads(shown) | {"file": None})
        tables.append(without_source(read_table(out)))
    assert sizes == ([7, 7, 7, 4, 25] if size == 7 else [25, 25])
    assert reports[0].pop("mean_total_variance") == pytest.approx(
        reports[1].pop("mean_total_variance"), rel=1e-6
    )
    assert reports[0] == reports[1]
    assert list(tables[0]) == list(tables[1])
    for name, found in tables[0].items():
        if size == 8192 or found.dtype.kind != "f":
            np.testing.assert_array_equal(found, tables[1][name])
        else:  # products of other sizes may round otherwise
            np.testing.assert_allclose(found, tables[1][name], rtol=1e-5, atol=1e-6)
    assert tables[0]["id"][24] == "d24"
    assert tables[0]["label"][3] == "money"
    assert tables[0]["n_unknown"].sum() > 0
    assert not list(tmp_path.glob(".*"))


def without_source(table):
    """Return a table without what counts on disk do not have: rows and texts."""
    return {k: v for k, v in table.items() if k not in ("row", "text")}


def read_table(path):
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return dict(arrays)
    if path.suffix == ".parquet":
        from pyarrow import parquet

        rows = parquet.read_table(path).to_pylist()
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {name: np.asarray([row[name] for row in rows]) for name in rows[0]}


def test_perplexity_of_a_folder_is_that_of_the_texts(
    stored, documents, model, capsys, monkeypatch
):
    given = []
    plain = BayesianSMM.perplexity
    monkeypatch.setattr(
        BayesianSMM,
        "perplexity",
        lambda self, X, **more: (given.append(type(X)), plain(self, X, **more))[1],
    )
    on_disk, in_memory = (
        json.loads(succeed(capsys, "perplexity", model, source, "--json"))
        for source in (stored, documents)
    )
    assert on_disk == in_memory
    assert given == [DiskCounts, MemoryCounts]


def test_an_embedding_that_fails_half_way_leaves_nothing(
    tmp_path, stored, model, capsys, monkeypatch
):
    monkeypatch.setattr("docsigma.counts._base.BLOCK", 4)
    damaged = np.load(stored / "indices.npy", mmap_mode="r+")
    damaged[-20:] = -1
    damaged.flush()
    for suffix in (".jsonl", ".npz", ".parquet"):
        out = tmp_path / f"out{suffix}"
        sentence = refuse(capsys, "embed", model, stored, "--out", out)
        assert "indices.npy is damaged" in sentence
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("counts", "documents.jsonl", "model")
    ]


def test_folders_of_other_words_are_refused(tmp_path, documents, model, capsys):
    more = tmp_path / "more"
    counted(capsys, documents, "--out", more)
    words = BayesianSMM.load(model).vocabulary_.words
    turned = tmp_path / "turned"
    with CountsWriter(turned, len(words), words[::-1]) as writer:
        writer.add(sp.csr_matrix(np.ones((2, len(words)))))
    bare = tmp_path / "bare"
    with CountsWriter(bare, 3) as writer:
        writer.add(sp.csr_matrix(np.ones((2, 3))))
    commands = (("embed", ("--out", tmp_path / "out.npz")), ("perplexity", ()))
    for command, options in commands:
        for folder in (more, turned):
            n_words = DiskCounts(folder).n_features
            sentence = refuse(capsys, command, model, folder, *options)
            assert f"has {n_words} words and the model {len(words)}" in sentence
        sentence = refuse(capsys, command, model, bare, *options)
        assert f"3 columns, the model was fitted on {len(words)}" in sentence
    assert not (tmp_path / "out.npz").exists()


def test_folders_without_words_are_fitted_and_embedded(tmp_path, capsys):
    folder = tmp_path / "bare"
    with CountsWriter(folder, 3) as writer:
        writer.add(sp.csr_matrix(np.random.default_rng(0).poisson(2.0, (20, 3))))
    succeed(capsys, "fit", folder, "--out", tmp_path / "model", *QUICK)
    assert BayesianSMM.load(tmp_path / "model").vocabulary_ is None
    out = tmp_path / "out.npz"
    succeed(capsys, "embed", tmp_path / "model", folder, "--out", out)
    table = read_table(out)
    assert "label" not in table
    assert table["id"].tolist() == [str(i) for i in range(1, 21)]
    assert table["n_unknown"].tolist() == [0] * 20


def test_what_folders_cannot_do_gets_one_sentence(
    tmp_path, stored, documents, model, capsys
):
    fit = ("fit", stored, "--out", tmp_path / "other")
    words = tmp_path / "words.txt"
    words.write_text("zebra\n")
    out = ("--out", tmp_path / "out.npz")
    for command in (
        fit,
        ("embed", model, stored, *out),
        ("perplexity", model, stored),
        ("topics", model, stored),
    ):
        sentence = refuse(capsys, *command, "--vocabulary", words)
        assert f"{stored} is a folder of counts" in sentence
    with CountsWriter(tmp_path / "zeros", 3) as writer:
        writer.add(sp.csr_matrix((4, 3)))
    empty = ("fit", tmp_path / "zeros", "--out", tmp_path / "other")
    assert "hold no word" in refuse(capsys, *empty)
    (stored / "n_tokens.npy").unlink()
    assert "n_tokens.npy" in refuse(capsys, *fit)
    assert not (tmp_path / "other").exists()


@pytest.fixture
def classifier(tmp_path, stored, model, capsys):
    """A classifier that knows no pairs of words, as a folder has none."""
    out = tmp_path / "classifier"
    succeed(capsys, "classifier", "fit", model, stored, "--out", out)
    return out


def test_a_classifier_of_a_folder_is_that_of_the_texts(
    tmp_path, stored, documents, model, capsys
):
    proba = []
    for name, source in (("disk", stored), ("memory", documents)):
        fit = ("classifier", "fit", model, source, "--out", tmp_path / name)
        shown = succeed(capsys, *fit, "--kind", "evidence", "--json")
        report = json.loads(shown)
        assert (report["n_documents"], report["n_unlabelled"]) == (25, 0)
        out = tmp_path / f"{name}.npz"
        predict = ("classifier", "predict", tmp_path / name, documents, "--out", out)
        succeed(capsys, *predict)
        table = read_table(out)
        proba.append([table[k] for k in table if k.startswith("probability")])
    np.testing.assert_allclose(*proba, rtol=1e-5)


def test_a_classifier_of_texts_takes_a_folder_without_pairs(
    tmp_path, stored, documents, model, capsys
):
    clf = tmp_path / "pairs"
    succeed(capsys, "classifier", "fit", model, documents, "--out", clf)
    report = succeed(capsys, "classifier", "evaluate", clf, stored, "--json")
    assert json.loads(report)["n_documents"] == 25


@pytest.mark.parametrize("suffix", [".jsonl", ".npz", ".parquet"])
@pytest.mark.parametrize("size", [7, 8192])
def test_labels_of_a_folder_are_those_of_the_texts(
    tmp_path, stored, documents, classifier, capsys, monkeypatch, suffix, size
):
    monkeypatch.setattr("docsigma.counts._base.BLOCK", size)
    tables, reports = [], []
    for name, source in (("disk", stored), ("memory", documents)):
        out = tmp_path / f"{name}{suffix}"
        predict = ("classifier", "predict", classifier, source, "--out", out)
        reports.append(json.loads(succeed(capsys, *predict, "--json")))
        tables.append(without_source(read_table(out)))
    assert list(tables[0]) == list(tables[1])
    for name, found in tables[0].items():
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, tables[1][name], rtol=1e-4, atol=1e-6)
        else:
            np.testing.assert_array_equal(found, tables[1][name])
    for name in ("n_documents", "n_classes", "n_under_half"):
        assert reports[0][name] == reports[1][name]


@pytest.mark.parametrize("size", [7, 8192])
def test_evaluation_of_a_folder_is_that_of_the_texts(
    stored, documents, classifier, capsys, monkeypatch, size
):
    monkeypatch.setattr("docsigma.counts._base.BLOCK", size)
    found, expected = (
        json.loads(succeed(capsys, "classifier", "evaluate", classifier, s, "--json"))
        for s in (stored, documents)
    )
    assert found["n_documents"] == 25
    assert list(found) == list(expected)
    for name, value in expected.items():
        if isinstance(value, float):
            assert found[name] == pytest.approx(value, rel=1e-4, abs=1e-6)
        else:
            assert found[name] == value


def test_topics_of_a_folder_are_those_of_the_texts(stored, documents, model, capsys):
    found, expected = (
        json.loads(succeed(capsys, "topics", model, source, "--clusters", 2, "--json"))
        for source in (stored, documents)
    )
    assert found == expected
    assert found["clusters"][0]["nearest"][0].startswith("d")
    assert "d" in succeed(capsys, "topics", model, stored, "--clusters", 2)


def test_a_folder_without_labels_trains_no_classifier(tmp_path, model, capsys):
    words = BayesianSMM.load(model).vocabulary_
    with CountsWriter(tmp_path / "bare", len(words), words) as writer:
        writer.add(sp.csr_matrix(np.ones((4, len(words)))))
    fit = ("classifier", "fit", model, tmp_path / "bare", "--out", tmp_path / "clf")
    assert "none of its 4 documents has a label" in refuse(capsys, *fit)
    assert not (tmp_path / "clf").exists()
