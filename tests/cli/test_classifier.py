"""`docsigma classifier` as a person meets it."""

from __future__ import annotations

import csv
import json
import sys
import warnings

import numpy as np
import pytest
import tqdm

import docsigma.classifiers.hybrid
import docsigma.counts.vocabulary
import docsigma.models._subspace_model
from docsigma import DocumentEmbedder, TopicClassifier, read_documents
from docsigma.cli.__main__ import main
from running import refuse, run, succeed
from showing import without_delay

TOPICS = {
    "pets": "cats purr dogs bark mice run from cats and dogs",
    "money": "stocks rise bonds fall banks lend money and stocks pay",
    "food": "bread and butter cheese and wine cook the bread",
}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("topics")
    random = np.random.default_rng(0)

    def rows(n):
        for i in range(n):
            for label, text in TOPICS.items():
                words = random.choice(text.split(), 30)
                yield {"id": f"{label}{i}", "text": " ".join(words), "label": label}

    write(root / "train.jsonl", rows(20))
    write(root / "test.jsonl", rows(10))
    arguments = ["fit", root / "train.jsonl", "--out", root / "model", "--l1", "0.01"]
    arguments += ["--components", "3", "--max-iter", "200", "--learning-rate", "0.03"]
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    assert not stop.value.code
    return root


@pytest.mark.parametrize("kind", ["hybrid", "evidence", "glcu", "glc", "lr"])
def test_fit_evaluate_predict_one_after_the_other(folder, tmp_path, capsys, kind):
    clf = tmp_path / "clf"
    fitted = json.loads(
        succeed(
            capsys,
            *("classifier", "fit", folder / "model", folder / "train.jsonl"),
            *("--kind", kind, "--out", clf, "--json"),
        )
    )
    assert fitted["n_classes"] == 3
    evaluate = ("classifier", "evaluate", clf, folder / "test.jsonl")
    report = json.loads(succeed(capsys, *evaluate, "--json"))
    fields = {"accuracy", "cross_entropy", "brier", "ece", "n_documents", "macro_f1"}
    assert fields <= set(report)
    assert set(report["per_class"]) == set(TOPICS)
    assert "coverage" not in report  # nothing was calibrated
    assert report["n_documents"] == 30
    assert report["accuracy"] > 90
    assert "cross-entropy" in succeed(capsys, *evaluate)

    out = tmp_path / "labels.jsonl"
    arguments = ("classifier", "predict", clf, folder / "test.jsonl", "--out", out)
    succeed(capsys, *arguments, "--probabilities")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 30
    names = [f"probability[{name}]" for name in sorted(TOPICS)]
    for row in rows:
        total = sum(row[name] for name in names)
        assert total == pytest.approx(1.0)
        order = sorted(TOPICS, key=lambda n: -row[f"probability[{n}]"])
        assert [row["predicted"], row["second"]] == order[:2]
        assert row["probability"] == row[f"probability[{order[0]}]"]
        assert row["second_probability"] == row[f"probability[{order[1]}]"]
        assert row["label"] == row["id"].rstrip("0123456789")
        assert not {"prediction_set", "unknown_p_value"} & set(row)
        assert row["total_variance"] > 0
        assert row["entropy"] >= 0
    right = np.mean([row["label"] == row["predicted"] for row in rows])
    assert 100 * right == pytest.approx(report["accuracy"])


@pytest.mark.parametrize("kind", ["hybrid", "evidence"])
def test_fit_and_predict_give_what_the_library_gives(folder, tmp_path, capsys, kind):
    train, test = (read_documents(folder / f"{n}.jsonl") for n in ("train", "test"))
    labels = [None if row % 2 else label for row, label in enumerate(train.labels)]
    rows = zip(train.texts, labels, strict=True)
    some = [{"text": text, "label": label} for text, label in rows]
    clf, out = tmp_path / "clf", tmp_path / "labels.jsonl"
    fit = ("classifier", "fit", folder / "model", write(tmp_path / "some.jsonl", some))
    assert run(capsys, *fit, "--kind", kind, "--out", clf)[0] == 0
    predict = ("classifier", "predict", clf, folder / "test.jsonl", "--out", out)
    succeed(capsys, *predict, "--probabilities")
    embedder = DocumentEmbedder.load(folder / "model")
    topics = TopicClassifier(embedder, kind=kind).fit(train.texts, labels)
    own = TopicClassifier.load(clf).classifier_
    assert own.pairs_ == topics.classifier_.pairs_
    assert (own.pairs_ is None) == (kind == "evidence")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    found = [[row[f"probability[{c}]"] for c in topics.classes_] for row in rows]
    expected = topics.predict_proba(test.texts)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_every_step_that_takes_long_shows_a_bar(folder, tmp_path, capsys, monkeypatch):
    model, docs, clf = folder / "model", folder / "train.jsonl", tmp_path / "clf"
    stored = tmp_path / "counts"
    succeed(capsys, "count", docs, "--vocabulary", model, "--out", stored)
    steps = {
        ("classifier", "fit", model, docs): ["counting", "embedding", "choosing"],
        ("classifier", "predict", clf, docs): ["counting", "embedding"],
        ("classifier", "predict", clf, stored): ["blocks"],
        ("embed", model, docs): ["counting", "embedding"],
        ("embed", model, stored): ["blocks"],
        ("index", model, docs): ["counting", "embedding"],
        ("index", model, stored): ["blocks"],
        ("cluster", model, docs): ["counting", "embedding"],
        ("fit", docs, "--components", 2, "--max-iter", 2): ["training"],
    }
    modules = (
        *(docsigma.counts.vocabulary, docsigma.models._subspace_model),
        *(docsigma.classifiers.hybrid, tqdm),
    )
    for module in modules:
        monkeypatch.setattr(module, "tqdm", without_delay)
    for terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda now=terminal: now)
        for number, (command, bars) in enumerate(steps.items()):
            out = tmp_path / f"out{number}.jsonl" if number else clf
            code, _, shown = run(capsys, *command, "--out", out, "--force")
            assert code == 0, shown
            for bar in bars:
                assert (f"{bar}: 100%" in shown) == terminal, (command, bar, shown)


def test_a_second_time_only_by_force(folder, tmp_path, capsys):
    fit = ("classifier", "fit", folder / "model", folder / "train.jsonl")
    fit += ("--kind", "glc", "--out", tmp_path / "clf")
    succeed(capsys, *fit)
    assert "exists already" in refuse(capsys, *fit)
    succeed(capsys, *fit, "--force", "--quiet")


def test_sets_are_calibrated_on_documents_of_their_own(folder, tmp_path, capsys):
    clf, out = tmp_path / "clf", tmp_path / "labels.jsonl"
    fit = ("classifier", "fit", folder / "model", folder / "train.jsonl")
    succeed(
        capsys,
        *(*fit, "--kind", "glc", "--out", clf),
        *("--calibration", folder / "test.jsonl"),
    )
    predict = ("classifier", "predict", clf, folder / "test.jsonl", "--out", out)
    succeed(capsys, *predict, "--coverage", "0.8")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    held = [row["id"].rstrip("0123456789") in row["prediction_set"] for row in rows]
    # The documents are those that the sets were calibrated on.
    assert np.mean(held) >= 0.8
    evaluate = ("classifier", "evaluate", clf, folder / "test.jsonl", "--json")
    report = json.loads(succeed(capsys, *evaluate, "--coverage", "0.8"))
    assert report["coverage"] == pytest.approx(np.mean(held))
    sentence = refuse(capsys, *predict, "--force", "--coverage", "90")
    assert "--coverage must be between 0 and 1, got 90" in sentence


def test_documents_without_a_label_help_the_hybrid(folder, tmp_path, capsys):
    rows = [json.loads(x) for x in (folder / "train.jsonl").read_text().splitlines()]
    for row in rows[6:]:
        row["label"] = None
    train, clf = write(tmp_path / "few.jsonl", rows), tmp_path / "clf"
    fit = ("classifier", "fit", folder / "model", train, "--out", clf, "--json")
    code, out, err = run(capsys, *fit)
    assert code == 0
    expected = (
        "docsigma: 6 of 60 documents have a label; the others are used as unlabelled\n"
    )
    assert err == expected
    report = json.loads(out)
    assert (report["n_documents"], report["n_unlabelled"]) == (6, 54)
    evaluate = ("classifier", "evaluate", clf, folder / "test.jsonl", "--json")
    assert json.loads(succeed(capsys, *evaluate))["accuracy"] > 90


def test_plots_are_written(folder, tmp_path, capsys):
    clf = tmp_path / "clf"
    fit = ("classifier", "fit", folder / "model", folder / "train.jsonl")
    succeed(capsys, *fit, "--out", clf)
    evaluate = ("classifier", "evaluate", clf, folder / "test.jsonl")
    said = succeed(capsys, *evaluate, "--plots", tmp_path / "plots")
    assert "confusion.png" in said
    assert "cross_entropy_by_length.png" in said.replace("\n", "")
    names = {p.name for p in (tmp_path / "plots").iterdir()}
    assert names == {
        "reliability.png",
        "risk_coverage.png",
        "confusion.png",
        "cross_entropy_by_length.png",
    }


def test_unseen_classes_are_counted_and_left_out(folder, tmp_path, capsys):
    clf = tmp_path / "clf"
    fit = ("classifier", "fit", folder / "model", folder / "train.jsonl")
    succeed(capsys, *fit, "--out", clf)
    rows = [json.loads(x) for x in (folder / "test.jsonl").read_text().splitlines()]
    for row in rows[:4]:
        row["label"] = "sport"
    test = write(tmp_path / "test.jsonl", rows)
    report = json.loads(succeed(capsys, "classifier", "evaluate", clf, test, "--json"))
    assert report["n_documents"] == 26
    assert report["n_unseen"] == 4
    assert report["unseen_classes"] == ["sport"]
    assert "sport" in succeed(capsys, "classifier", "evaluate", clf, test)
    for row in rows:
        row["label"] = "sport"
    write(test, rows)
    sentence = refuse(capsys, "classifier", "evaluate", clf, test)
    assert "none of the 30 documents" in sentence


def test_bad_input_gets_one_sentence(folder, tmp_path, capsys):
    model, out = folder / "model", tmp_path / "clf"
    bare = write(tmp_path / "bare.jsonl", [{"text": "cats and dogs"}] * 3)
    fit = ("classifier", "fit", model)
    assert "has no labels" in refuse(capsys, *fit, bare, "--out", out)
    one = write(tmp_path / "one.jsonl", [{"text": "cats dogs", "label": "pets"}] * 3)
    assert "class" in refuse(capsys, *fit, one, "--out", out)
    arguments = (*fit, folder / "train.jsonl", "--out", out)
    assert "evidence, glcu, glc, lr" in refuse(capsys, *arguments, "--kind", "svm")
    assert not out.exists()
    sentence = refuse(capsys, "classifier", "evaluate", model, folder / "test.jsonl")
    assert "holds a BayesianSMM, not a TopicClassifier" in sentence
    succeed(capsys, *arguments)
    (out / "model.safetensors").unlink()
    predict = ("classifier", "predict", out, folder / "test.jsonl")
    sentence = refuse(capsys, *predict, "--out", tmp_path / "x.jsonl")
    assert "has no model.safetensors" in sentence
    assert ".parquet, .csv, .npz, .jsonl" in refuse(
        capsys, *predict, "--out", tmp_path / "x.xlsx"
    )


@pytest.fixture
def partly(folder, tmp_path):
    """Thirty documents, of which every third has no label."""
    rows = [json.loads(x) for x in (folder / "test.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows):
        if number % 3 == 0:
            row["label"] = " " if number % 2 else None
    return write(tmp_path / "partly.jsonl", rows)


@pytest.mark.parametrize("on_disk", [False, True])
def test_documents_without_a_label_are_left_out_and_counted(
    folder, partly, tmp_path, capsys, on_disk
):
    source = partly
    if on_disk:
        source = tmp_path / "counts"
        words = ("--vocabulary", folder / "model")
        succeed(capsys, "count", partly, "--out", source, *words)
    fit = ("classifier", "fit", folder / "model", source, "--out", tmp_path / "clf")
    code, out, err = run(capsys, *fit, "--kind", "glc", "--json")
    assert code == 0
    assert err == (
        "docsigma: 20 of 30 documents have a label; the others are left out\n"
    )
    report = json.loads(out)
    assert (report["n_documents"], report["n_unlabelled"]) == (20, 10)
    assert report["n_classes"] == 2
    evaluate = ("classifier", "evaluate", tmp_path / "clf", source, "--json")
    code, out, err = run(capsys, *evaluate)
    assert "20 of 30 documents have a label" in err
    report = json.loads(out)
    assert (report["n_documents"], report["n_unlabelled"]) == (20, 10)
    predict = ("classifier", "predict", tmp_path / "clf", source)
    succeed(capsys, *predict, "--out", tmp_path / "labels.jsonl")
    assert len((tmp_path / "labels.jsonl").read_text().splitlines()) == 30


@pytest.mark.parametrize("suffix", [".jsonl", ".npz", ".parquet"])
def test_a_missing_label_is_embedded_as_missing(
    folder, partly, tmp_path, capsys, suffix, monkeypatch
):
    # The first block on disk has no label at all.
    monkeypatch.setattr("docsigma.counts._base.BLOCK", 1)
    counts = tmp_path / "counts"
    words = ("--vocabulary", folder / "model")
    succeed(capsys, "count", partly, "--out", counts, *words)
    out = tmp_path / f"out{suffix}"
    succeed(capsys, "embed", folder / "model", counts, "--out", out)
    if suffix == ".npz":
        with np.load(out) as table:
            labels = [label or None for label in table["label"].tolist()]
    elif suffix == ".parquet":
        from pyarrow import parquet

        labels = parquet.read_table(out)["label"].to_pylist()
    else:
        rows = out.read_text().splitlines()
        labels = [json.loads(row)["label"] for row in rows]
    assert labels[:4] == [None, "money", "food", None]


def test_tune_takes_the_labelled_documents_of_a_file_or_a_folder(
    partly, tmp_path, capsys
):
    counts = tmp_path / "counts"
    succeed(capsys, "count", partly, "--out", counts)
    found = []
    for source in (partly, counts):
        out = tmp_path / f"{source.stem}.json"
        options = ("--objective", "lr", "--components", 2, "--trials", 1)
        code, _, err = run(capsys, "tune", source, "--out", out, *options)
        assert code == 0, err
        assert "20 of 30 documents have a label" in err
        found.append(json.loads(out.read_text())["parameters"])
    assert found[0] == found[1]


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_predictions_begin_with_what_is_read_first(folder, tmp_path, capsys):
    clf, out = tmp_path / "clf", tmp_path / "labels.csv"
    fit = ("classifier", "fit", folder / "model", folder / "train.jsonl")
    succeed(capsys, *fit, "--kind", "glc", "--out", clf)
    table = tmp_path / "new.csv"
    table.write_text('text,topic\n"cats\nand dogs",pets\n=stocks and bonds,money\n')
    predict = ("classifier", "predict", clf, table, "--label-column", "topic")
    succeed(capsys, *predict, "--out", out)
    rows = read_csv(out)
    assert list(rows[0]) == [
        *("row", "id", "predicted", "probability", "second", "second_probability"),
        *("entropy", "text", "label", "total_variance", "n_tokens", "n_unknown"),
    ]
    assert [row["label"] for row in rows] == ["pets", "money"]
    # The line break is no row, and a spreadsheet computes nothing.
    assert [row["row"] for row in rows] == ["2", "3"]
    assert [row["text"] for row in rows] == ["cats\nand dogs", "'=stocks and bonds"]
    succeed(capsys, *predict, "--out", out, "--force", "--no-text")
    assert "text" not in read_csv(out)[0]


def test_the_worst_classes_and_the_most_confused_are_first(folder, tmp_path, capsys):
    clf = tmp_path / "clf"
    fit = ("classifier", "fit", folder / "model", folder / "train.jsonl")
    succeed(capsys, *fit, "--kind", "glc", "--out", clf)
    rows = [json.loads(x) for x in (folder / "test.jsonl").read_text().splitlines()]
    for row in rows[:9]:
        row["label"] = "money"
    test = write(tmp_path / "test.jsonl", rows)
    evaluate = ("classifier", "evaluate", clf, test)
    report = json.loads(succeed(capsys, *evaluate, "--json"))
    pairs = report["confused_pairs"]
    assert {(p["label"], p["predicted"], p["n_documents"]) for p in pairs} == {
        ("money", "pets", 3),
        ("money", "food", 3),
    }
    assert pairs[0]["per_cent"] == pytest.approx(300 / 16)
    said = succeed(capsys, *evaluate)
    by_class = said[said.index("By class") : said.index("Most confused")]
    places = [by_class.index(f"  {name} ") for name in TOPICS]
    shown = sorted(TOPICS, key=dict(zip(TOPICS, places, strict=True)).get)
    scores = [report["per_class"][name]["f1"] for name in shown]
    assert scores == sorted(scores)


def test_explain_shows_what_the_library_finds(folder, tmp_path, capsys):
    clf = tmp_path / "clf"
    fit = ("classifier", "fit", folder / "model", folder / "train.jsonl")
    succeed(capsys, *fit, "--out", clf)
    explain = ("classifier", "explain", clf, folder / "test.jsonl", "--documents", 2)
    found = json.loads(succeed(capsys, *explain, "--json"))
    texts = read_documents(folder / "test.jsonl").texts[:2]
    expected = TopicClassifier.load(clf).explain(texts)
    assert [one["label"] for one in found] == [one.label for one in expected]
    assert found[0]["log_odds"] == pytest.approx(expected[0].log_odds)
    assert found[0]["words"][0][0] == expected[0].words[0][0]
    said = succeed(capsys, *explain, "--words", 1)
    assert f"{expected[1].label} rather than {expected[1].against}" in said
    assert "other words" in said


@pytest.mark.parametrize("asked", [(), ("--missing-labels", "")])
def test_cells_that_say_na_are_no_labels_unless_asked(folder, tmp_path, capsys, asked):
    labels = ["pets", "NA", "food", "null", "NaN", "", "n/a"] * 3
    table = tmp_path / "cells.csv"
    lines = [f"cats and bread,{label}\n" for label in labels]
    table.write_text("text,label\n" + "".join(lines))
    fit = ("classifier", "fit", folder / "model", table, "--kind", "glc", "--json")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, out, err = run(capsys, *fit, "--out", tmp_path / "clf", *asked)
    assert code == 0, err
    report = json.loads(out)
    n_empty = 3 if asked else 15
    assert report["n_documents"] == 21 - n_empty
    assert report["n_classes"] == (6 if asked else 2)
    assert ("cells that count as no label" in err) == (not asked)


def test_triage_writes_what_to_look_at(folder, tmp_path, capsys):
    clf, out = tmp_path / "clf", tmp_path / "look.jsonl"
    test = folder / "test.jsonl"
    fit = ("classifier", "fit", folder / "model", folder / "train.jsonl", "--out", clf)
    succeed(capsys, *fit)
    assert "promises nothing yet" in refuse(capsys, "triage", clf, test, "--out", out)
    assert not out.exists()
    same = refuse(capsys, *fit, "--force", "--calibration", folder / "train.jsonl")
    assert "train.jsonl itself" in same
    predict = ("classifier", "predict", clf, test, "--out", tmp_path / "sets.jsonl")
    assert "has none: use" in refuse(capsys, *predict, "--coverage", "0.8")
    succeed(capsys, *fit, "--force", "--calibration", test)
    shown = succeed(capsys, "triage", clf, test, "--top", "3", "--out", out)
    assert "left to the classifier" in shown
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 3
    topics, documents = TopicClassifier.load(clf), read_documents(test)
    texts = list(documents.texts)
    expected = topics.triage(texts, top=3).rows
    assert [row["text"] for row in rows] == [one.text for one in expected]
    assert [row["row"] for row in rows] == [one.row + 1 for one in expected]
    assert [row["reason"] for row in rows] == [one.reason for one in expected]
    report = json.loads(succeed(capsys, "triage", clf, test, "--risk", "0.5", "--json"))
    assert report["n_to_look_at"] + report["n_rest"] == 30
    both = refuse(capsys, "triage", clf, test, "--top=1", "--risk=0.5")
    assert "give one of --top and --risk, not both" in both
    sentence = refuse(capsys, "triage", clf, test, "--level", "7")
    assert "--level must be between 0 and 1, got 7" in sentence
    labels = tmp_path / "labels.jsonl"
    succeed(capsys, "classifier", "predict", clf, test, "--out", labels)
    rows = [json.loads(line) for line in labels.read_text().splitlines()]
    p_values = topics.unknown_p_value(texts)
    found = [row["unknown_p_value"] for row in rows]
    np.testing.assert_allclose(found, p_values, rtol=1e-5)


def test_an_index_says_which_labels_its_classifier_lacks(folder, tmp_path, capsys):
    clf, index = tmp_path / "clf", tmp_path / "index"
    train, few = folder / "train.jsonl", tmp_path / "few.jsonl"
    rows = [json.loads(line) for line in train.read_text().splitlines()]
    write(few, [row for row in rows if row["label"] != "food"])
    fit = ("classifier", "fit", folder / "model", few, "--out", clf)
    succeed(capsys, *fit, "--kind", "evidence")
    arguments = ("index", folder / "model", few, "--classifier", clf, "--out", index)
    assert "lacks" not in run(capsys, *arguments)[2]
    more = write(
        tmp_path / "more.jsonl", [{"id": "x", "text": "wine", "label": "food"}]
    )
    code, _, said = run(capsys, "add", index, more)
    assert (code, "lacks 1 of the labels, the first is 'food'" in said) == (0, True)
    nothing = succeed(capsys, "search", index, "cats", "--label", "birds")
    assert "no document of the index has the label birds" in nothing
