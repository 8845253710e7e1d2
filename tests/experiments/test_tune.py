from __future__ import annotations

import json

import pytest

from docsigma.exceptions import InputError
from docsigma.experiments.reproduce._setting import Setting
from docsigma.experiments.tune import Space, tune

SPACE = Space(n_components=(2, 4))


@pytest.fixture(scope="module")
def task():
    return Setting(quick=True).task("any")


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
    second = tune(task.train, None, n_trials=3, say=said.append, **settings)
    assert len(said) == 1
    assert second.trials[:2] == first.trials


def test_what_cannot_be_done_is_said(task):
    with pytest.raises(InputError, match="needs labels"):
        tune(task.train, None)
    with pytest.raises(InputError, match="must be one of glcu, lr, perplexity"):
        tune(task.train, None, objective="beauty")


def test_json_can_hold_what_was_found(task, tmp_path):
    from docsigma.experiments.tune import write_tuned

    found = tune(
        task.train, None, objective="perplexity", space=SPACE, n_trials=1, device="cpu"
    )
    write_tuned(tmp_path / "found.json", found, {"corpus": "any"})
    read = json.loads((tmp_path / "found.json").read_text())
    assert read["parameters"] == found.parameters
    assert read["corpus"] == "any"
