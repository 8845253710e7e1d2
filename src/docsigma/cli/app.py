"""The commands, put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from docsigma import __version__
from docsigma._extensions import PAPER, find_registered, install_hint, registered_names
from docsigma.cli.calibration import calibration
from docsigma.cli.classifier import app as classifier
from docsigma.cli.cluster import cluster
from docsigma.cli.count import count
from docsigma.cli.demo import demo
from docsigma.cli.doctor import doctor
from docsigma.cli.drift import drift
from docsigma.cli.duplicates import duplicates
from docsigma.cli.effects import effects
from docsigma.cli.embed import embed
from docsigma.cli.explore import explore
from docsigma.cli.fit import fit
from docsigma.cli.index import add, index
from docsigma.cli.info import corpora, info
from docsigma.cli.perplexity import perplexity
from docsigma.cli.search import search
from docsigma.cli.serve import serve
from docsigma.cli.topics import topics
from docsigma.cli.triage import triage
from docsigma.cli.tune import tune
from docsigma.exceptions import InputError

app = typer.Typer(
    name="docsigma",
    help="Document embeddings with their uncertainties.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"docsigma {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    """Document embeddings with their uncertainties."""
    del version


def _missing(name: str) -> Callable[[], None]:
    """Return a command that refuses any arguments with what to install."""

    def refuse() -> None:
        raise InputError(f"the command `{name}` is {install_hint('commands', name)}")

    return refuse


# Functions, or groups of them; other distributions add theirs by entry points.
_WORK = (count, fit, embed, perplexity, calibration, topics, tune)
_LOOKUP = (triage, index, add, search, duplicates, cluster, serve, explore, drift)
_FUNCTIONS = (*_WORK, effects, *_LOOKUP, info, corpora, demo, doctor)
COMMANDS: dict[str, Any] = {command.__name__: command for command in _FUNCTIONS}
COMMANDS["classifier"] = classifier
_ANYTHING: dict[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True}
_ANYTHING["help_option_names"] = []
_known = registered_names("commands", COMMANDS)
for _name in _known:
    try:
        _command: Any = find_registered("commands", _name, COMMANDS)
    except ImportError as _error:
        # A broken distribution must not disable the other commands.
        typer.echo(f"docsigma: no command `{_name}`: {_error}", err=True)
        continue
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name=_name)
    else:
        app.command(_name)(_command)
for _name in set(PAPER["commands"]).difference(_known):
    app.command(_name, hidden=True, context_settings=_ANYTHING)(_missing(_name))
