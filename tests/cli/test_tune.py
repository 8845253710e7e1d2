from __future__ import annotations

import errno
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest

from docsigma.cli._tune import Space, divide, tune
from docsigma.corpora import load_corpus
from docsigma.exceptions import InputError
from docsigma.models import BayesianSMM
from running import refuse, succeed

SPACE = Space(n_components=(2, 4))


@pytest.fixture(scope="module")
def task():
    corpus = load_corpus("synthetic", n_train=200, n_test=80)
    topics = np.asarray(corpus.truth.train_embeddings).argmax(axis=1)
    labels = [f"topic {topic}" for topic in topics]
    return SimpleNamespace(train=corpus.train.counts, train_labels=labels)


@pytest.mark.parametrize("objective", ["glcu", "lr", "perplexity"])
def test_the_best_trial_is_given_and_a_seed_repeats_it(task, objective):
    runs = [
        tune(
            task.train,
            task.train_labels,
            objective=objective,
            space=SPACE,
            n_trials=2,
            device="cpu",
        )
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    values = [trial["value"] for trial in runs[0].trials]
    assert runs[0].value == min(values)
    assert set(runs[0].parameters) == {"n_components", "l1", "prior_precision"}


def test_a_search_goes_on_from_its_journal(task, tmp_path):
    journal = tmp_path / "search.journal"
    settings = {"space": SPACE, "journal": journal, "device": "cpu"}
    settings["objective"] = "perplexity"
    first = tune(task.train, None, n_trials=2, **settings)
    said = []
    second = tune(task.train, None, n_trials=3, log=said.append, **settings)
    assert len(said) == 1
    assert second.trials[:2] == first.trials
    assert second.trials[2]["l1"] not in {trial["l1"] for trial in first.trials}


def test_what_cannot_be_done_is_said(task):
    with pytest.raises(InputError, match="needs labels"):
        tune(task.train, None)
    with pytest.raises(InputError, match="must be one of glcu, lr, perplexity"):
        tune(task.train, None, objective="beauty")
    with pytest.raises(InputError, match="one of random, latest, got 'first'"):
        tune(task.train, task.train_labels, hold_out="first")


def test_the_latest_of_each_class_can_be_held_out():
    labels = ["b", "a", "b", "b", "a", "b", "b", "a"]
    train, test = divide(8, labels, 0.4, "latest", 0)
    assert test.tolist() == [5, 6, 7]
    assert train.tolist() == [0, 1, 2, 3, 4]
    assert divide(8, None, 0.25, "latest", 0)[1].tolist() == [6, 7]


def test_json_can_hold_what_was_found(task, tmp_path):
    from docsigma.cli._tune import write_tuned

    found = tune(
        task.train, None, objective="perplexity", space=SPACE, n_trials=1, device="cpu"
    )
    write_tuned(tmp_path / "found.json", found, {"corpus": "any"})
    read = json.loads((tmp_path / "found.json").read_text())
    assert read["parameters"] == found.parameters
    assert read["corpus"] == "any"


def test_a_search_that_was_stopped_finds_the_same(task, tmp_path, monkeypatch):
    def search(journal, n_trials):
        return tune(
            task.train,
            None,
            objective="perplexity",
            space=Space(n_components=(2, 3)),
            n_trials=n_trials,
            device="cpu",
            journal=tmp_path / journal,
        )

    at_once = search("whole", 3)
    search("parts", 1)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(BayesianSMM, "fit", stop)
        with pytest.raises(KeyboardInterrupt):
            search("parts", 3)
    assert search("parts", 3).trials == at_once.trials


def test_another_search_is_not_mixed_in(task, tmp_path):
    journal = tmp_path / "search.journal"
    settings = {"objective": "perplexity", "n_trials": 1, "journal": journal}
    tune(task.train, None, space=SPACE, device="cpu", **settings)
    with pytest.raises(InputError, match=r"search.journal holds another search"):
        tune(task.train[:100], None, space=SPACE, device="cpu", **settings)
    whole = journal.read_bytes()
    for damaged in (whole[:-1], whole + b"{", b"[]\n" + whole):
        journal.write_bytes(damaged)
        with pytest.raises(InputError, match=r"search.journal, line \d+ is damaged"):
            tune(task.train, None, space=SPACE, device="cpu", **settings)
        assert journal.read_bytes() == damaged


def test_a_full_disk_is_told_in_one_sentence(task, tmp_path, monkeypatch):
    from optuna.storages.journal import JournalFileBackend

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(JournalFileBackend, "append_logs", full)
    with pytest.raises(InputError, match=r"cannot write .*journal: No space left on"):
        tune(
            task.train,
            None,
            objective="perplexity",
            space=SPACE,
            n_trials=1,
            device="cpu",
            journal=tmp_path / "search.journal",
        )


def test_classes_that_cannot_be_divided_are_named(task):
    labels = ["alone", *task.train_labels[1:]]
    with pytest.raises(InputError, match=r"40 of 200 documents.*the smallest of 1"):
        tune(task.train, labels, space=SPACE)


def test_the_command_refuses_in_one_sentence(tmp_path, capsys):
    file, out = tmp_path / "documents.csv", tmp_path / "found.json"
    file.write_text("id,text,topic\na,cats purr cats,x\nb,cats purr dogs,x\n")
    assert "needs labels" in refuse(capsys, "tune", file, "--out", out)
    file.write_text("id,text,label\na,cats purr cats,x\nb,cats purr dogs,y\n")
    assert "the smallest of 1" in refuse(capsys, "tune", file, "--out", out)
    assert [path.name for path in tmp_path.iterdir()] == ["documents.csv"]


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--components", "0", "sizes must be 1 or more, got '0'"),
        ("--solver", "magic", "one of fast, paper, got 'magic'"),
        ("--device", "banana", "banana"),
        ("--out", "found.journal", "found.journal is the name of a journal"),
        ("--words", "a,b", "--words must be whole numbers with commas, got 'a,b'"),
        ("--words", "1,5", "`synthetic` has no option `words`"),
        ("--l1", "1", "--l1 must be two numbers with a comma, got '1'"),
        ("--l1", "3,1", "--l1 must be the least and the greatest"),
        ("--l1", "0,1", "finite, got '0,1'"),
        ("--prior-precision", "1,inf", "--prior-precision must be the least"),
    ],
)
def test_what_cannot_be_searched_leaves_nothing(
    option, text, said, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    options = ("--objective", "perplexity", "--trials", 1)
    asked = ("tune", "synthetic", "--out", "found.json", *options, option, text)
    assert said in refuse(capsys, *asked)
    assert list(tmp_path.iterdir()) == []


def test_the_command_searches_without_labels_for_perplexity(tmp_path, capsys):
    out = tmp_path / "found.json"
    shown = succeed(
        capsys,
        *("tune", "synthetic", "--out", out, "--objective", "perplexity"),
        *("--components", "2", "--trials", "1"),
    )
    assert "best of 1: n_components 2" in shown
    found = json.loads(out.read_text())
    assert found["corpus"] == "synthetic"
    assert {"seconds", "date", "machine", "versions"} <= set(found)


def test_the_command_keeps_its_ranges(tmp_path, capsys):
    out = tmp_path / "found.json"
    options = ("--objective", "perplexity", "--components", "2", "--trials", 1)
    ranges = ("--l1", "0.5,0.6", "--prior-precision", "2,3", "--device", "cpu")
    succeed(capsys, "tune", "synthetic", "--out", out, *options, *ranges)
    found = json.loads(out.read_text())
    assert found["space"]["l1"] == [0.5, 0.6]
    assert 0.5 <= found["parameters"]["l1"] <= 0.6
    assert 2 <= found["parameters"]["prior_precision"] <= 3
