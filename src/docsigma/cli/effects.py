"""`docsigma effects`: what covariates change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.exceptions import InputError


def effects(
    model: _common.ModelFolder,
    *,
    column: Annotated[str | None, option("Covariate to show.", "each in turn")] = None,
    words: Annotated[
        str | None,
        option("Words to follow, with commas.", "those that change most"),
    ] = None,
    values: Annotated[
        str | None, option("Levels or numbers, with commas.", "all levels, or a curve")
    ] = None,
    reference: Annotated[
        str | None,
        option("Level or number to compare with.", "the average document"),
    ] = None,
    level: Annotated[float, option("Probability of each interval.")] = 0.9,
    number: Annotated[int, option("Words per level.")] = 8,
    plot: Annotated[
        Path | None, option("Figure to write (.png, .svg, ...).", "none")
    ] = None,
    force: _common.Force = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Print how words change with the covariates of a model, with intervals.

    Numbers are log odds: 0.7 is twice, -0.7 half as frequent relative to all words.
    An interval is for one change taken alone.

    Example: docsigma effects model --column year --words gold,jobs --plot words.png
    """
    from docsigma.metrics.plots import check_image
    from docsigma.models.effects import design_of, effect

    _common.check_positive("--number", number)
    if plot is not None:
        if column is None:
            raise InputError("--plot needs a --column")
        check_image(plot)
        _common.check_writable(plot, model, force=force)
    smm = _common.load_model(model)
    columns = design_of(smm).columns if column is None else [column]
    found = [
        effect(
            smm,
            name,
            words=None if words is None else _split(words),
            values=None if values is None else _typed(_split(values)),
            reference=None if reference is None else _typed([reference])[0],
            level=level,
            n_words=number,
        )
        for name in columns
    ]
    if plot is not None:
        found[0].plot(plot)
    if as_json:
        rows = [row for one in found for row in one.to_dicts()]
        _common.print_json({"level": level, "effects": rows})
        return
    for one in found:
        title = f"{one.column}, against {one.reference}"
        names = (one.column, "word", ">log odds", f">{100 * level:g} % interval")
        table = _common.table(title, *names)
        for row in one.rows:
            value = f"{row.value:g}" if isinstance(row.value, float) else str(row.value)
            ends = f"{row.low:+.2f} to {row.high:+.2f}"
            table.add_row(value, row.of, f"{row.estimate:+.2f}", ends)
        _common.show(table)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _typed(values: list[str]) -> list[str | float]:
    """Return values as numbers if all are."""
    try:
        return [float(value) for value in values]
    except ValueError:
        return list(values)
