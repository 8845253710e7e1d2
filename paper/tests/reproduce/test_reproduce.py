"""`docsigma reproduce`: every experiment in its small version, and what a run keeps."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from docsigma.exceptions import InputError
from docsigma_paper.classifiers.ulmfit import ULMFiTClassifier
from docsigma_paper.reproduce import EXPERIMENTS, _ulmfit, baselines, reproduce
from docsigma_paper.reproduce._job import Job, TaskName
from docsigma_paper.reproduce._record import Record
from docsigma_paper.reproduce._setting import Setting
from docsigma_paper.reproduce._systems import SYSTEMS
from docsigma_paper.reproduce.paper_values import FISHER, NEWSGROUPS
from docsigma_paper.topic_id import Task
from running import refuse, run, succeed

QUICK = Setting(quick=True, device="cpu", seeds=(0,))
VARYING = {"seconds", "fit_seconds", "predict_seconds", "date", "versions", "machine"}


def figures_of(value):
    if isinstance(value, dict):
        return {k: figures_of(v) for k, v in value.items() if k not in VARYING}
    if isinstance(value, list):
        return [figures_of(part) for part in value]
    return value


# Two models and a baseline stand for sixteen systems in the quick tests.
SOME = {"systems": ["tfidf", "smm", "bayesian-smm"]}
LONG = ("topic-id-20newsgroups", "topic-id-speech")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in EXPERIMENTS if name not in LONG),
        *((name, SOME) for name in LONG),
        *(pytest.param(name, {}, marks=pytest.mark.release) for name in LONG),
    ],
)
def test_every_experiment_runs_and_comes_back_when_its_file_is_deleted(
    name, options, tmp_path
):
    setting = replace(QUICK, options=options)
    written = reproduce(name, tmp_path, setting)
    assert all(path.stat().st_size > 0 for path in written)
    file = tmp_path / f"{name}.json"
    before = figures_of(json.loads(file.read_text()))
    page = (tmp_path / f"{name}.md").read_text()
    assert "nan" not in page
    file.unlink()
    reproduce(name, tmp_path, setting)
    assert figures_of(json.loads(file.read_text())) == before
    assert (tmp_path / f"{name}.md").read_text() == page


def test_a_run_that_was_stopped_goes_on(tmp_path):
    file = tmp_path / "results.json"
    record = Record(file, {"experiment": "a"})
    record.row({"seed": 0}, {}, lambda: {"x": 1})

    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record.row({"seed": 1}, {}, fail)
    again = Record(file, {"experiment": "a"})
    assert again.row({"seed": 0}, {}, fail)["x"] == 1
    assert again.row({"seed": 1}, {}, lambda: {"x": 2})["x"] == 2
    assert [row["x"] for row in Record(file, {"experiment": "a"})] == [1, 2]


def test_results_of_another_run_are_not_mixed_in(tmp_path):
    file = tmp_path / "results.json"
    Record(file, {"experiment": "a", "quick": True}).row({"seed": 0}, {}, dict)
    with pytest.raises(InputError, match=r"results.json holds another run: quick is T"):
        Record(file, {"experiment": "a", "quick": False})
    file.write_text("{")
    with pytest.raises(InputError, match=r"results.json holds no results"):
        Record(file, {"experiment": "a"})


def test_every_printed_system_has_a_row():
    models = {system.model for system in SYSTEMS.values()}
    printed = {model for model, _ in NEWSGROUPS} | {model for _, model, _ in FISHER}
    assert printed <= models


def test_a_row_of_other_parameters_is_made_anew(tmp_path):
    file, said = tmp_path / "results.json", []
    Record(file, {"experiment": "a"}).row({"seed": 0}, {"K": (5,)}, lambda: {"x": 1})
    same = Record(file, {"experiment": "a"})
    assert same.row({"seed": 0}, {"K": (5,)}, lambda: {"x": 2})["x"] == 1
    idle = Record(file, {"experiment": "a"}, computes=False)
    assert idle.row({"seed": 0}, {"K": (6,)}, dict) is None
    idle.write()
    assert (idle.rows, [row["x"] for row in Record(file, {})]) == ([], [1])
    elsewhere = tmp_path / "elsewhere.json"
    Record(elsewhere, {}).row({"seed": 0}, {"K": (6,)}, lambda: {"x": 3})
    both = Record(file, {}, others=[elsewhere], computes=False)
    assert both.row({"seed": 0}, {"K": (6,)}, dict)["x"] == 3
    assert [row["x"] for row in both] == [3]
    other = Record(file, {"experiment": "a"}, said.append)
    assert other.row({"seed": 0}, {"K": (6,)}, lambda: {"x": 2})["x"] == 2
    assert said[0] == "seed 0: left out, its parameters are others now"
    assert [row["parameters"] for row in Record(file, {})] == [{"K": [6]}]


def ulmfit_job(task, corpus, setting=QUICK):
    name = TaskName(corpus)
    return Job(setting, task, name, 0, _ulmfit.parameters(setting, name))


def test_a_language_model_once_learned_is_used_again_and_changes_nothing(monkeypatch):
    learned = []

    class Counted(_ulmfit.LearnedLanguage):
        def __init__(self, *arguments):
            learned.append(len(arguments[0]))
            super().__init__(*arguments)

    monkeypatch.setattr(_ulmfit, "LearnedLanguage", Counted)
    monkeypatch.setattr(_ulmfit, "_LEARNED", {})
    task = QUICK.task("switchboard")
    runs = [_ulmfit.run(ulmfit_job(task, "switchboard")) for _ in range(2)]
    assert learned == [200]
    assert figures_of(runs[0]) == figures_of(runs[1])
    _ulmfit.run(ulmfit_job(task, "20newsgroups"))
    assert [key[0] for key in _ulmfit._LEARNED] == ["20newsgroups"]
    windows = Task(**{**vars(task), "train_texts": list(task.train_texts)})
    note = _ulmfit.run(ulmfit_job(windows, "20newsgroups"))["MLP"]["note"]
    assert note == "pre-trained on the 200 texts of the training set, whole"
    without = Task(**{**vars(task), "train_texts": None})
    with pytest.raises(InputError, match="switchboard has no texts"):
        _ulmfit.run(ulmfit_job(without, "switchboard"))


def test_published_weights_make_a_row_of_their_own(tmp_path):
    task = QUICK.task("switchboard")
    sizes = {"embedding_size": 400, "hidden_units": 1152, "n_layers": 3}
    language = ULMFiTClassifier(**sizes, pretrain_epochs=0, lm_epochs=0, device="cpu")
    language.fit_language_model(task.train_texts[:5])
    language.save_language_model(tmp_path / "weights")
    texts = [" ".join(text.split()[:5]) for text in task.train_texts[:8]]
    labels = task.train_labels[:8]
    few = Task(task.train[:8], task.train[:8], labels, labels, texts, texts)
    setting = replace(QUICK, options={"ulmfit_weights": tmp_path / "weights"})
    job = ulmfit_job(few, "switchboard", setting)
    assert job.parameters != _ulmfit.parameters(QUICK, TaskName("switchboard"))
    assert _ulmfit.run(job)["MLP"]["note"] == "pre-trained on nothing"


@pytest.mark.skipif(not baselines.installed("gensim"), reason="gensim is not installed")
def test_paragraph_vectors_depend_on_nothing_but_document_and_seed(tmp_path):
    program = (
        "from docsigma_paper.reproduce._setting import Setting\n"
        "from docsigma_paper.reproduce.baselines import ParagraphVectors\n"
        "x = Setting(quick=True).task('20newsgroups').train\n"
        "model = ParagraphVectors(5, n_epochs=2).fit(x)\n"
        "whole, part = model.transform(x[:4]), model.transform(x[2:4])\n"
        "assert (whole[2:] == part).all()\n"
        "print(whole.tolist())\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]


def test_the_command_lists_runs_and_refuses(tmp_path, capsys):
    listed = succeed(capsys, "reproduce", "--list")
    assert all(name in listed for name in EXPERIMENTS)
    shown = succeed(
        capsys,
        *("reproduce", "uncertainty-length", "--quick", "--seeds", "1"),
        *("--out", str(tmp_path)),
    )
    assert "Rank correlation" in shown
    assert "uncertainty-length.png" in shown
    assert "no experiment 'nothing'" in refuse(capsys, "reproduce", "nothing")
    assert "--list" in refuse(capsys, "reproduce")
    wrong = refuse(capsys, "reproduce", "topic-id-speech", "--system", "magic")
    assert "no system 'magic'; there are tfidf" in wrong


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--device", "banana"), "the device 'banana' cannot be used"),
        (("--also", "nowhere"), "nowhere/convergence.json holds no results"),
        (("--ulmfit-weights", "x"), "convergence has no ULMFiT"),
        (("--seeds", 0), "--seeds must be 1 or more, got 0"),
        (("--out", "file/x"), "cannot make the folder"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_work(
    options, said, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    asked = ("reproduce", "convergence", "--quick", "--out", "a/b", *options)
    assert said in refuse(capsys, *asked)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_weights_that_are_not_there_are_refused(tmp_path, capsys):
    options = ("--quick", "--out", tmp_path / "a", "--ulmfit-weights", tmp_path / "b")
    said = refuse(capsys, "reproduce", "topic-id-speech", *options)
    assert f"there is no weights file {tmp_path / 'b'}" in said
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("[1]", "convergence.json holds no results: row 1 has no key"),
        ('[{"key": {"seed": 9}}]', "convergence.json has a row that lacks its figures"),
    ],
)
def test_rows_that_are_none_are_refused(rows, said, tmp_path, capsys):
    file = tmp_path / "convergence.json"
    heading = '"experiment": "convergence", "quick": true, "seeds": [0]'
    file.write_text(f'{{{heading}, "rows": {rows}}}')
    options = ("--quick", "--seeds", 1, "--no-compute", "--out", tmp_path)
    assert said in refuse(capsys, "reproduce", "convergence", *options)


def test_a_missing_library_is_told_before_hours_of_work(tmp_path, monkeypatch):
    find = importlib.util.find_spec

    def without(name, *arguments):
        return None if name == "tomotopy" else find(name, *arguments)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    options = {"systems": ["tfidf", "lda"]}
    setting = Setting(device="cpu", seeds=(0,), options=options)
    with pytest.raises(InputError, match="some rows need tomotopy: pip install"):
        reproduce("topic-id-20newsgroups", tmp_path / "a", setting)
    assert not (tmp_path / "a").exists()


def test_ctrl_c_says_what_was_kept(tmp_path, capsys, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    found = EXPERIMENTS["convergence"]
    monkeypatch.setitem(EXPERIMENTS, "convergence", replace(found, compute=stop))
    code, _, err = run(capsys, "reproduce", "convergence", "--out", tmp_path)
    assert code == 130
    assert "convergence.json, and the same command continues" in err


def test_some_systems_can_be_run_apart(tmp_path):
    for systems in (["tfidf"], ["lda", "naive-bayes"]):
        setting = Setting(
            quick=True, device="cpu", seeds=(0,), options={"systems": systems}
        )
        reproduce("topic-id-20newsgroups", tmp_path, setting)
    rows = json.loads((tmp_path / "topic-id-20newsgroups.json").read_text())["rows"]
    assert [row["key"]["system"] for row in rows] == ["tfidf", "naive-bayes", "lda"]


def test_runs_of_two_machines_are_put_together(tmp_path, monkeypatch):
    for seed in (0, 1):
        for system in ("smm", "bayesian-smm"):
            options = {"systems": [system]}
            setting = Setting(quick=True, device="cpu", seeds=(seed,), options=options)
            reproduce("early-stopping", tmp_path / f"{system}-{seed}", setting)
    folders = sorted(tmp_path.iterdir())
    setting = Setting(
        quick=True,
        device="cpu",
        seeds=(0, 1),
        options={"systems": ["smm", "bayesian-smm"]},
    )

    def fail(*_: object) -> None:
        raise AssertionError("everything is there: nothing is to be computed")

    monkeypatch.setattr(Record, "_make", fail)
    reproduce("early-stopping", tmp_path / "all", setting, also=folders)
    rows = json.loads((tmp_path / "all" / "early-stopping.json").read_text())["rows"]
    assert [(row["key"]["seed"], row["key"]["model"]) for row in rows] == [
        (0, "l1 SMM"),
        (0, "Bayesian SMM"),
        (1, "l1 SMM"),
        (1, "Bayesian SMM"),
    ]


def test_files_are_made_of_the_rows_that_are_there(tmp_path, capsys):
    options = ("--no-compute", "--seeds", 2)
    nowhere = ("--quick", "--out", tmp_path / "nowhere")
    said = refuse(capsys, "reproduce", "convergence", *nowhere, *options)
    assert "has no rows" in said
    assert not (tmp_path / "nowhere").exists()
    where = ("--quick", "--device", "cpu", "--out", tmp_path)
    succeed(capsys, "reproduce", "convergence", *where, "--seeds", 1)
    rows = json.loads((tmp_path / "convergence.json").read_text())["rows"]
    (tmp_path / "first").mkdir()
    for path in list(tmp_path.glob("convergence.*")):
        path.rename(tmp_path / "first" / path.name)
    also = ("--also", tmp_path / "first")
    succeed(capsys, "reproduce", "convergence", *where, *options, *also)
    report = json.loads((tmp_path / "convergence.json").read_text())
    assert report["rows"] == rows
    assert report["seeds"] == [0, 1]


def test_rows_of_other_seeds_are_not_taken_over(tmp_path):
    both = Setting(quick=True, device="cpu", seeds=(0, 1))
    reproduce("convergence", tmp_path / "two", both)
    reproduce("convergence", tmp_path / "one", QUICK, also=[tmp_path / "two"])
    rows = json.loads((tmp_path / "one" / "convergence.json").read_text())["rows"]
    assert {row["key"]["seed"] for row in rows} == {0}


@pytest.mark.parametrize("name", ["perplexity-table", "perplexity-curves"])
def test_single_systems_of_the_perplexities(name, tmp_path):
    setting = replace(QUICK, options={"systems": ["nvdm"]})
    reproduce(name, tmp_path, setting)
    rows = json.loads((tmp_path / f"{name}.json").read_text())["rows"]
    assert {row["key"]["model"] for row in rows} == {"NVDM"}


def test_a_system_that_the_experiment_has_not_is_refused(tmp_path):
    setting = replace(QUICK, options={"systems": ["tfidf"]})
    with pytest.raises(InputError, match="convergence has no system 'tfidf'"):
        reproduce("convergence", tmp_path, setting)
    with pytest.raises(InputError, match="there are bayesian-smm, .*, nvdm"):
        reproduce("perplexity-table", tmp_path, setting)


def test_rows_of_another_experiment_are_not_taken_over(tmp_path):
    setting = Setting(quick=True, device="cpu", seeds=(0,))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    report = {"experiment": "convergence", "quick": False, "rows": []}
    (elsewhere / "convergence.json").write_text(json.dumps(report))
    with pytest.raises(InputError, match="holds another run"):
        reproduce("convergence", tmp_path / "here", setting, also=[elsewhere])
    assert not (tmp_path / "here" / "convergence.json").exists()
