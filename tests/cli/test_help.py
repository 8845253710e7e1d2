from __future__ import annotations

import inspect

import pytest

from docsigma import BayesianSMM
from docsigma.cli._settings import ALIASES
from docsigma.counts import WordFrequencies
from running import run, succeed

typer = pytest.importorskip("typer")


def commands(group=None, words=()):
    from docsigma.cli.app import app

    group = typer.main.get_command(app) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


EVERY = list(commands())


@pytest.mark.parametrize(
    "command", [c for _, c in EVERY], ids=[" ".join(words) for words, _ in EVERY]
)
def test_every_option_says_what_it_is_and_what_is_used_without_it(command):
    for option in command.params:
        assert option.help or option.name == "help", option.name
        if option.param_type_name == "argument" or option.required or option.is_flag:
            continue
        if command.name == "reproduce":
            continue
        said = isinstance(option.show_default, str) or option.default is not None
        assert said, option.name


def test_defaults_in_words_are_those_of_the_estimator():
    (fit,) = (command for words, command in EVERY if words == ("fit",))
    defaults = {}
    for made in (BayesianSMM, WordFrequencies):
        for name, parameter in inspect.signature(made).parameters.items():
            defaults[name] = parameter.default
    seen = 0
    for option in fit.params:
        default = defaults.get(ALIASES.get(option.name, option.name))
        if default is not None and option.name != "seed":
            assert option.show_default == str(default), option.name
            seen += 1
    assert seen >= 10


@pytest.mark.parametrize("words", [words for words, _ in EVERY])
def test_help_fits_eighty_columns(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = succeed(capsys, *words, "--help")
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    "command", [["corpora"], ["doctor"], ["reproduce", "--list"]], ids=" ".join
)
def test_tables_fit_eighty_columns(command, capsys):
    shown = succeed(capsys, *command)
    assert max(map(len, shown.splitlines())) <= 80
    # Nothing is cut off.
    assert "…" not in shown


def test_the_doctor_says_what_it_found(capsys, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    code, out, _ = run(capsys, "doctor", "--json")
    assert code == 0
    assert '"OMP_WAIT_POLICY": "ACTIVE"' in out
    assert '"docstrings": true' in out
