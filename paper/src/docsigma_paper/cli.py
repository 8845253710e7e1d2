"""`docsigma reproduce`: a table or figure of the paper."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from docsigma.cli import _common
from docsigma.exceptions import InputError


def reproduce(
    name: Annotated[str | None, typer.Argument(help="Experiment; see --list.")] = None,
    show: Annotated[
        bool, typer.Option("--list", help="List the experiments and exit.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for JSON, Markdown and plot.")
    ] = Path("results"),
    quick: Annotated[
        bool, typer.Option(help="A small version, on a synthetic corpus.")
    ] = False,
    device: Annotated[str, typer.Option(help="Where models are trained.")] = "auto",
    seeds: Annotated[int, typer.Option(help="Runs, of seeds 0, 1, ...")] = 3,
    system: Annotated[
        list[str] | None,
        typer.Option(help="Only this system's rows; may be repeated."),
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of another run whose rows to include."),
    ] = None,
    as_it_is: Annotated[
        bool,
        typer.Option("--no-compute", help="Only write the files of existing rows."),
    ] = False,
    ulmfit_weights: Annotated[
        Path | None, typer.Option(help="fastai's wt103 weights, for ULMFiT's rows.")
    ] = None,
) -> None:
    """Reproduce a table or figure of the paper; a stopped run continues."""
    from tqdm import tqdm

    from docsigma_paper.reproduce import EXPERIMENTS
    from docsigma_paper.reproduce import reproduce as run
    from docsigma_paper.reproduce._setting import Setting

    if show:
        lines = _common.table("Experiments", "name", "of the paper", "what it shows")
        for experiment in EXPERIMENTS.values():
            lines.add_row(experiment.name, experiment.shows, experiment.title)
        _common.show(lines)
        return
    if name is None:
        raise InputError("name an experiment, or ask for --list")
    _common.check_positive("--seeds", seeds)
    setting = Setting(
        quick=quick,
        device=device,
        seeds=tuple(range(seeds)),
        options={"ulmfit_weights": ulmfit_weights, "systems": system},
    )
    with _common.resumable(f"the rows so far are in {out / f'{name}.json'}"):
        log = partial(tqdm.write, file=sys.stderr)
        written = run(
            name, out, setting, log, also or (), progress=True, computes=not as_it_is
        )
    page = next(path for path in written if path.suffix == ".md")
    typer.echo(page.read_text("utf-8"))
    typer.echo(f"written: {', '.join(map(str, written))}")
