"""The kept results: complete, of today's parameters, and as the pages say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from docsigma.corpora import load_corpus
from docsigma_paper.classifiers.ulmfit.tokens import tokenize
from docsigma_paper.reproduce import EXPERIMENTS, _systems, _ulmfit
from docsigma_paper.reproduce._job import TaskName
from docsigma_paper.reproduce._setting import Setting

RESULTS = Path(__file__).parents[3] / "results"
# Said on the page: nobody has searched ULMFiT's rates for 20 Newsgroups.
NOT_RUN = {"ulmfit-dropout": {"20newsgroups"}}
STOPPED = _systems.NAMES["glcu-stopped"]


class Asked:
    """Takes down what an experiment asks for."""

    def __init__(self):
        self.rows = []

    def row(self, key, parameters, compute, needs=None):
        del compute, needs
        self.rows.append(json.dumps([key, parameters], sort_keys=True))


def kept(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_kept_rows_are_those_that_the_command_would_make(name):
    report, asked = kept(name), Asked()
    EXPERIMENTS[name].compute(Setting(seeds=tuple(report["seeds"])), asked)
    there = [
        json.dumps([row["key"], row["parameters"]], sort_keys=True)
        for row in report["rows"]
    ]
    assert len(there) == len(set(there))
    assert set(there) <= set(asked.rows)
    left = {json.loads(row)[0].get("corpus") for row in set(asked.rows) - set(there)}
    assert left == NOT_RUN.get(name, set())


def means(name):
    """Return accuracy and cross-entropy over seeds, by task, system and classifier."""
    found = {}
    for row in kept(name)["rows"]:
        for kind, scores in row["scores"].items():
            key = TaskName.of(row["key"]), row["key"]["system"], kind
            pair = scores["accuracy"], scores["cross_entropy"]
            found.setdefault(key, []).append(pair)
    return {key: np.mean(pairs, axis=0) for key, pairs in found.items()}


def test_stopped_em_has_the_lower_cross_entropy_in_every_table():
    tables = 0
    for name in ("topic-id-20newsgroups", "topic-id-speech"):
        found = means(name)
        for task in {key[0] for key in found}:
            stopped = found[task, "bayesian-smm", STOPPED]
            converged = found[task, "bayesian-smm", "GLCU"]
            assert stopped[1] < converged[1]
            assert stopped[0] == pytest.approx(converged[0], abs=0.6)
            tables += 1
    assert tables == 7


def test_tuned_rows_have_what_the_kept_searches_chose():
    searches = [json.loads(path.read_text()) for path in RESULTS.glob("tune-*.json")]
    assert {found["corpus"] for found in searches} == {"20newsgroups"}
    best = {found["objective"]: found["parameters"] for found in searches}
    assert _systems.TUNED.keys() == best.keys()
    for objective, parameters in _systems.TUNED.items():
        assert parameters == pytest.approx(best[objective], rel=1e-3)


@pytest.mark.release
@pytest.mark.usefixtures("data_folder")
def test_what_ulmfit_does_not_read_of_20_newsgroups():
    # As docs/reproduced.md says.
    texts = load_corpus("20newsgroups").train.texts
    lengths = np.array([len(tokenize(text)) for text in texts])
    behind = np.maximum(lengths - 1400, 0)
    assert (behind > 0).sum() == 418
    assert behind.sum() / lengths.sum() == pytest.approx(0.27, abs=0.005)


@pytest.mark.usefixtures("data_folder")
def test_the_sides_of_switchboard_are_as_the_page_says():
    corpus = load_corpus("switchboard")
    lengths = [
        [len(text.split()) for text in part.texts]
        for part in (corpus.train, corpus.test)
    ]
    assert [len(part) for part in lengths] == [1154, 772]
    assert [round(np.mean(part), -1) for part in lengths] == [640, 640]
    assert round(sum(lengths[0]), -3) == 736_000
    assert len(set(corpus.train.labels)) == 40


def test_ulmfit_has_on_speech_what_the_kept_search_chose():
    best = {}
    for row in kept("ulmfit-dropout")["rows"]:
        for one in row["tried"]:
            rates = row["key"]["lm_dropout"], one["classifier_dropout"]
            found = one["cross_entropy"], (*rates, one["classifier_epochs"])
            task = TaskName.of(row["key"])
            best[task] = min(best.get(task, found), found)
    chosen = {
        TaskName("switchboard"): _ulmfit.CHOSEN["sides"],
        TaskName("switchboard", (201, 400)): _ulmfit.CHOSEN["windows"],
    }
    assert {task: found[1] for task, found in best.items()} == chosen
