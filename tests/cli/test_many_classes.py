"""Many classes on the command line, and what is held out to calibrate a classifier."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from docsigma import DocumentEmbedder, TopicClassifier, read_documents
from running import succeed

N_CLASSES = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Questions of 24 labels, each with two words of its own; and a model."""
    root = tmp_path_factory.mktemp("questions")
    random = np.random.default_rng(0)
    shared = [f"common{word}" for word in "abcdefgh"]
    for name, n in (("train", 20), ("new", 6)):
        with (root / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            for row in range(n * N_CLASSES):
                code = row % N_CLASSES
                own = [f"first{code}x", f"second{code}x"]
                words = [*own, *random.choice(shared, 4), f"only{row}{name}"]
                writer.writerow([" ".join(words), f"label_{code}"])
    texts = read_documents(root / "train.csv").texts
    DocumentEmbedder(8, random_state=0).fit(texts).save(root / "model")
    return root


@pytest.fixture(scope="module")
def topics(folder):
    documents = read_documents(folder / "train.csv")
    embedder = DocumentEmbedder(8, random_state=0)
    found = TopicClassifier(embedder, calibration=0.2)
    return found.fit(documents.texts, documents.labels)


@pytest.fixture(scope="module")
def calibrated(folder, topics):
    topics.save(folder / "clf")
    return folder / "clf"


def test_a_share_of_the_documents_calibrates(folder, topics, tmp_path, capsys):
    fit = ("classifier", "fit", folder / "model", folder / "train.csv", "--json")
    args = ("--calibration", "0.2", "--out", tmp_path / "clf")
    report = json.loads(succeed(capsys, *fit, *args))
    assert report["n_documents"] == 20 * N_CLASSES
    assert report["n_calibration"] == 4 * N_CLASSES
    # As in Python, with an embedder of the same parameters.
    found = TopicClassifier.load(tmp_path / "clf")
    new = read_documents(folder / "new.csv").texts
    p_values = found.unknown_p_value(new), topics.unknown_p_value(new)
    np.testing.assert_allclose(*p_values, rtol=1e-6)


def test_evaluate_prints_the_worst_classes_and_counts_the_others(
    folder, calibrated, capsys
):
    evaluate = ("classifier", "evaluate", calibrated, folder / "new.csv")
    shown = succeed(capsys, *evaluate)
    assert sum(line.startswith("  label_") for line in shown.splitlines()) >= 20
    assert "and 4 more classes: --json prints all" in shown
    report = json.loads(succeed(capsys, *evaluate, "--json"))
    assert len(report["per_class"]) == N_CLASSES


def test_triage_shows_rows_of_the_file_and_where_the_others_are(
    folder, calibrated, tmp_path, capsys
):
    out = tmp_path / "look.csv"
    triage = ("triage", calibrated, folder / "new.csv", "--top", "25")
    assert "and 5 more: --out writes all of them" in succeed(capsys, *triage)
    shown = succeed(capsys, *triage, "--out", out)
    assert f"and 5 more: all are in {out}" in " ".join(shown.split())
    with out.open(newline="") as file:
        first = next(csv.DictReader(file))
    (line,) = (
        line
        for line in shown.splitlines()
        if line.split()[:1] == [first["row"]] and "label_" in line
    )
    assert first["text"].split()[0] in line


def test_embeddings_get_p_values_without_labels(folder, tmp_path, capsys):
    strange = tmp_path / "strange.csv"
    strange.write_text("text\n" + "quite other words than these\n" * 3)
    embed = ("embed", folder / "model", strange, "--out", tmp_path / "e.jsonl")
    embed += ("--calibration", folder / "new.csv")
    succeed(capsys, *embed)
    rows = [
        json.loads(line) for line in (tmp_path / "e.jsonl").read_text().split("\n")[:3]
    ]
    embedder = DocumentEmbedder.load(folder / "model")
    embedder.calibrate(read_documents(folder / "new.csv").texts)
    expected = embedder.unknown_p_value([row["text"] for row in rows])
    assert [row["unknown_p_value"] for row in rows] == expected.tolist()
    assert max(expected) < 0.05
    # A saved calibration is used without the option.
    embedder.save(tmp_path / "knows")
    args = ("embed", tmp_path / "knows", strange, "--out", tmp_path / "f.jsonl")
    succeed(capsys, *args)
    assert _rows(tmp_path / "f.jsonl")[0]["unknown_p_value"] == expected[0]
    # And without either there is none.
    plain = ("embed", folder / "model", strange, "--out", tmp_path / "g.jsonl")
    succeed(capsys, *plain)
    assert "unknown_p_value" not in (tmp_path / "g.jsonl").read_text()


def _rows(file):
    return [json.loads(line) for line in file.read_text().splitlines()]
