from __future__ import annotations

import json

import pytest

from counting import TEXTS, counted, write_documents
from running import succeed

LONG = [(f"{text} {text}", label) for text, label in TEXTS * 2 if text]


@pytest.fixture
def documents(tmp_path):
    return write_documents(tmp_path / "docs.jsonl", LONG)


@pytest.fixture
def model(tmp_path, documents, capsys):
    quick = ("--components", 2, "--max-iter", 2)
    succeed(capsys, "fit", documents, "--out", tmp_path / "model", *quick)
    return tmp_path / "model"


def test_table_and_json_agree(model, documents, capsys):
    shown = succeed(capsys, "calibration", model, documents)
    assert max(map(len, shown.splitlines())) <= 80
    report = json.loads(succeed(capsys, "calibration", model, documents, "--json"))
    assert [(part["kind"], part["length"]) for part in report["parts"]] == [
        *(("first", 0.25), ("first", 0.5)),
        *(("random", 0.25), ("random", 0.5)),
    ]
    half = report["parts"][1]
    row = next(line for line in shown.splitlines() if "first half" in line)
    assert row.split()[2:4] == [str(len(LONG)), f"{half['ratio']:.2f}"]


def test_counts_have_random_words_only(tmp_path, model, documents, capsys):
    folder = tmp_path / "counts"
    counted(capsys, documents, "--out", folder, "--vocabulary", model)
    shown = succeed(capsys, "calibration", model, folder)
    assert "random half" in shown
    assert "first" not in shown


def test_folder_of_a_classifier_has_a_model(tmp_path, model, documents, capsys):
    args = ("classifier", "fit", model, documents, "--out", tmp_path / "clf")
    succeed(capsys, *args)
    same = [
        succeed(capsys, "calibration", folder, documents, "--json")
        for folder in (model, tmp_path / "clf")
    ]
    assert same[0] == same[1]


def test_plot_is_drawn(tmp_path, model, documents, capsys):
    pytest.importorskip("matplotlib")
    image = tmp_path / "ratios.png"
    succeed(capsys, "calibration", model, documents, "--plot", image)
    assert image.read_bytes().startswith(b"\x89PNG")
