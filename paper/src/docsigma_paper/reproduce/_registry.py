"""The experiments, and the function that runs one."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from tqdm import tqdm

from docsigma._devices import choose_device
from docsigma._files import atomic_file
from docsigma.exceptions import InputError
from docsigma.metrics.plots import save_figures
from docsigma_paper.classifiers.ulmfit.weights import locate_weights
from docsigma_paper.reproduce import (
    convergence,
    early_stopping_curves,
    perplexity_curves,
    perplexity_table,
    topic_id_tables,
    ulmfit_dropout,
    uncertainty_length,
)
from docsigma_paper.reproduce._record import Plan, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from docsigma_paper.reproduce._setting import Experiment, Setting


SMALL = (
    "The small version, on a synthetic corpus whatever a row is called: it shows that "
    "everything runs; do not compare it with the paper."
)

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        convergence.EXPERIMENT,
        perplexity_table.EXPERIMENT,
        perplexity_curves.EXPERIMENT,
        early_stopping_curves.EXPERIMENT,
        topic_id_tables.NEWSGROUPS_EXPERIMENT,
        topic_id_tables.SPEECH_EXPERIMENT,
        ulmfit_dropout.EXPERIMENT,
        uncertainty_length.EXPERIMENT,
    )
}


def _can_draw() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def reproduce(
    name: str,
    folder: Path,
    setting: Setting,
    log: Callable[[str], object] | None = None,
    also: Sequence[Path] = (),
    *,
    progress: bool = False,
    computes: bool = True,
) -> list[Path]:
    """Run what is left of an experiment, and write its files.

    Parameters
    ----------
    name : str
        One of :data:`EXPERIMENTS`.
    folder : Path
        For ``NAME.json``, ``NAME.md`` and, if there is a figure, ``NAME.png``.
    setting : Setting
        Device, seeds and size of the runs.
    log : callable, default=None
        Called with a line on each row.
    also : sequence of Path, default=()
        Folders of other runs, of other seeds or systems, whose rows are included.
    progress : bool, default=False
        Whether to show a progress bar on a terminal.
    computes : bool, default=True
        Whether to compute missing rows, or only to write the existing ones.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    InputError
        If there is no such experiment, or the folder holds another run of it.
    """
    if name not in EXPERIMENTS:
        raise InputError(
            f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}"
        )
    experiment = EXPERIMENTS[name]
    for system in setting.options.get("systems") or ():
        if system not in experiment.systems:
            known = ", ".join(experiment.systems) or "none to choose from"
            raise InputError(f"{name} has no system {system!r}; there are {known}")
    weights = setting.options.get("ulmfit_weights")
    if weights is not None and "ulmfit" not in experiment.systems:
        raise InputError(f"{name} has no ULMFiT, and so needs no weights")
    if weights is not None:
        locate_weights(weights)
    choose_device(setting.device)
    seeds = list(setting.seeds)
    heading = {"experiment": name, "quick": setting.quick, "seeds": seeds}
    others = [elsewhere / f"{name}.json" for elsewhere in also]
    record = Record(folder / f"{name}.json", heading, log, others, computes=computes)
    plan = Plan(record)
    experiment.compute(setting, plan)
    if computes:
        plan.check()
        _make_folder(folder)
    with tqdm(total=plan.n_rows, unit="row", disable=None if progress else True) as bar:
        record.after = bar.update
        experiment.compute(setting, record)
    if not record.rows:
        raise InputError(f"{record.path} has no rows, and none are to be computed")
    try:
        text = experiment.table(record.rows) + "\n"
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(
            f"{record.path} has a row that lacks its figures: {error!r}"
        ) from error
    _make_folder(folder)
    record.write()
    page = folder / f"{name}.md"
    if setting.quick:
        text = f"{SMALL}\n\n{text}"
    with atomic_file(page) as temporary:
        temporary.write_text(text, "utf-8")
    written = [record.path, page]
    if experiment.figure is not None and not _can_draw():
        if log is not None:
            log("no figure was drawn: matplotlib is not installed")
    elif experiment.figure is not None:
        picture = f"{name}.png"
        save_figures({picture: experiment.figure(record.rows)}, folder)
        written.append(folder / picture)
    return written


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {folder}: {error.strerror}"
        ) from error
