"""Covariates from the columns of a file."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from docsigma import DocumentEmbedder
from running import run, succeed

OLD, NEW = (
    ["plough", "horse", "barley", "meadow"],
    ["rocket", "laser", "robot", "orbit"],
)


@pytest.fixture(scope="module")
def speeches(tmp_path_factory):
    random = np.random.default_rng(0)
    file = tmp_path_factory.mktemp("speeches") / "speeches.csv"
    with file.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["text", "year", "party", "empty"])
        for _ in range(300):
            year = int(random.integers(1900, 2000))
            new = random.random(12) < (year - 1900) / 100
            words = [random.choice(NEW if one else OLD) for one in new]
            text = " ".join([*words, "with", "then", "over"])
            writer.writerow([text, year, random.choice(["red", "blue"]), ""])
    return file


@pytest.fixture(scope="module")
def model(speeches, tmp_path_factory):
    out = tmp_path_factory.mktemp("model") / "model"
    embedder = DocumentEmbedder(3, random_state=0)
    with speeches.open() as handle:
        rows = list(csv.DictReader(handle))
    table = {name: [row[name] for row in rows] for name in ("party", "year")}
    embedder.fit(
        [row["text"] for row in rows], covariates=table, formula="party + spline(year)"
    ).save(out)
    return out


def test_fit_reads_the_columns_of_a_formula(speeches, model, tmp_path, capsys):
    out = tmp_path / "model"
    formula = ("--covariates", "party + spline(year)")
    report = succeed(
        capsys, "fit", speeches, "--out", out, *formula, "--components", 3, "--json"
    )
    assert json.loads(report)["n_documents"] == 300
    ours, theirs = DocumentEmbedder.load(out), DocumentEmbedder.load(model)
    assert ours.design_.to_dict() == theirs.design_.to_dict()
    weights = [e.model_.parts_.prior.weights_ for e in (ours, theirs)]
    np.testing.assert_array_equal(*weights)


@pytest.mark.parametrize(
    ("formula", "sentence"),
    [
        ("president", "line 1: no column `president`, found `text`, `year`"),
        ("party +", "the formula 'party +' cannot be read"),
        ("empty", "column `empty` of the covariates is empty in all documents"),
        ("spline(party)", "must have numbers or dates, got"),
    ],
)
def test_bad_formulas_end_with_one_sentence(
    speeches, formula, sentence, tmp_path, capsys
):
    out = tmp_path / "model"
    given = ("--covariates", formula)
    code, _, err = run(capsys, "fit", speeches, "--out", out, *given)
    assert code == 2
    assert sentence in " ".join(err.split())
    assert not out.exists()


def test_files_without_columns_are_refused(tmp_path, capsys):
    (tmp_path / "plain.txt").write_text("sun\nrain\n")
    arguments = ("--out", tmp_path / "model", "--covariates", "party")
    code, _, err = run(capsys, "fit", tmp_path / "plain.txt", *arguments)
    assert code == 2
    assert "plain.txt is none" in err
    code, _, err = run(capsys, "fit", "synthetic", *arguments)
    assert code == 2
    assert "synthetic is not a table of texts" in err


def test_effects_prints_what_covariates_change(model, tmp_path, capsys):
    shown = succeed(capsys, "effects", model)
    assert "party, against the average document" in shown
    assert "year, against the average document" in shown
    plot = tmp_path / "year.png"
    arguments = ("--column", "year", "--words", "rocket,plough", "--plot", plot)
    succeed(capsys, "effects", model, *arguments)
    assert plot.stat().st_size > 5000
    code, _, err = run(capsys, "effects", model, *arguments)
    assert code == 2
    assert "--force" in err
    ends = ("--values", "1990", "--reference", "1910", "--words", "rocket,plough")
    report = succeed(capsys, "effects", model, "--column", "year", *ends, "--json")
    rocket, plough = json.loads(report)["effects"]
    assert rocket["low"] > 0
    assert plough["high"] < 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--column", "writer"), "no covariate 'writer': it has party, year"),
        (("--words", "zebra"), "'zebra' is not among"),
        (("--plot", "year.png"), "--plot needs a --column"),
        (("--level", "7"), "--level must be between 0 and 1"),
    ],
)
def test_effects_refuses_bad_input(model, arguments, sentence, capsys):
    code, _, err = run(capsys, "effects", model, *arguments)
    assert code == 2
    assert sentence in " ".join(err.split())


def test_topics_over_time(model, speeches, tmp_path, capsys):
    plot = tmp_path / "topics.png"
    arguments = ("--clusters", "2", "--time-column", "year")
    report = succeed(
        capsys, "topics", model, speeches, *arguments, "--plot", plot, "--json"
    )
    shares = json.loads(report)["shares"]
    new = next(r["topic"] for r in shares if set(r["topic"].split(", ")) & set(NEW))
    first, *_, last = [row["share"] for row in shares if row["topic"] == new]
    assert first < 0.3
    assert last > 0.7
    assert plot.stat().st_size > 5000
    assert "period" in succeed(capsys, "topics", model, speeches, *arguments)
    for given, sentence in (
        (("--time-column", "party"), "`times` must be numbers or dates"),
        (("--time-column", "nothing"), "no column `nothing`"),
        (("--plot", tmp_path / "a.png"), "need a --time-column"),
    ):
        code, _, err = run(capsys, "topics", model, speeches, *given)
        assert code == 2
        assert sentence in " ".join(err.split())
