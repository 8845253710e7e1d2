"""No command overwrites what it was not told to."""

from __future__ import annotations

import warnings

import pytest

from running import refuse, run, succeed

FIT = ("--components", 2, "--max-iter", 2, "--min-df", 1, "--quiet")


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def model(capsys, documents, tmp_path):
    succeed(capsys, "fit", documents, "--out", tmp_path / "model", *FIT)
    return tmp_path / "model"


def commands(documents, model, folder):
    """Each command that writes, up to its --out, and a name for that."""
    clf = folder / "clf"
    return {
        "fit": (("fit", documents, *FIT), folder / "other"),
        "count": (("count", documents, "--quiet"), folder / "counts"),
        "embed": (("embed", model, documents), folder / "out.jsonl"),
        "classifier fit": (("classifier", "fit", model, documents), clf),
        "classifier predict": (
            ("classifier", "predict", clf, documents),
            folder / "predicted.jsonl",
        ),
    }


@pytest.mark.parametrize(
    "name", ["fit", "count", "embed", "classifier fit", "classifier predict"]
)
def test_what_exists_is_overwritten_by_force_only(
    capsys, documents, model, tmp_path, name
):
    all_commands = commands(documents, model, tmp_path)
    if name == "classifier predict":
        command, clf = all_commands["classifier fit"]
        succeed(capsys, *command, "--out", clf)
    command, out = all_commands[name]
    succeed(capsys, *command, "--out", out)
    before = contents(tmp_path)
    sentence = refuse(capsys, *command, "--out", out)
    assert f"{out} exists already" in sentence
    assert "--force" in sentence
    assert contents(tmp_path) == before
    succeed(capsys, *command, "--out", out, "--force")


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_input_is_never_overwritten(capsys, documents, model, tmp_path, force):
    before = contents(tmp_path)
    for command, out in (
        (("embed", model, documents), documents),
        (("classifier", "fit", model, documents), model),
        (("fit", documents, *FIT), documents),
        (("count", documents, "--quiet"), documents),
    ):
        sentence = refuse(capsys, *command, "--out", out, *force)
        assert f"{out} is an input" in sentence
        assert contents(tmp_path) == before


def test_a_folder_of_another_kind_is_not_overwritten(capsys, documents, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("dear")
    sentence = refuse(capsys, "fit", documents, *FIT, "--out", mine, "--force")
    assert "not a docsigma folder" in sentence
    assert (mine / "letter.txt").read_text() == "dear"


def test_an_empty_folder_may_be_filled(capsys, documents, tmp_path):
    (tmp_path / "empty").mkdir()
    succeed(capsys, "fit", documents, *FIT, "--out", tmp_path / "empty")


def test_a_warning_is_one_plain_line(capsys, documents, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, _, err = run(
            capsys,
            "fit",
            documents,
            *FIT[2:],
            "--components",
            40,
            "--out",
            tmp_path / "m",
        )
    assert code == 0
    assert err == (
        "docsigma: --components=40 is more than the 25 documents: fewer "
        "components hold as much information\n"
    )
