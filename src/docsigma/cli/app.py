"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from docsigma import __version__
from docsigma.cli.classifier import app as classifier
from docsigma.cli.count import count
from docsigma.cli.demo import demo
from docsigma.cli.embed import embed
from docsigma.cli.fit import fit
from docsigma.cli.info import corpora, info
from docsigma.cli.perplexity import perplexity
from docsigma.cli.reproduce import reproduce
from docsigma.cli.topics import topics
from docsigma.cli.tune import tune

__all__ = ["app"]

app = typer.Typer(
    name="docsigma",
    help="Document embeddings with their uncertainties.",
    no_args_is_help=True,
    add_completion=False,
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


COMMANDS = (
    count,
    fit,
    embed,
    perplexity,
    topics,
    info,
    corpora,
    demo,
    reproduce,
    tune,
)
for command in COMMANDS:
    app.command()(command)
app.add_typer(classifier)
