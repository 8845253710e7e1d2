"""Cells of a table: strings, numbers, dates, or missing."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docsigma.exceptions import InputError

Table = Mapping[str, list[Any]]


def read_table(table: Any) -> dict[str, list[Any]]:
    """Return the columns of a table by name, as lists of cells.

    A table is a data frame of pandas, polars or pyarrow, a dictionary of columns, or a
    list of dictionaries, one per row.

    Examples
    --------
    >>> read_table([{"year": 1790}, {"year": 1791}])
    {'year': [1790, 1791]}
    """
    if isinstance(table, Mapping):
        found = {str(name): _cells(column) for name, column in table.items()}
    elif isinstance(table, Sequence) and not isinstance(table, str):
        names: dict[str, None] = {}
        for number, row in enumerate(table):
            if not isinstance(row, Mapping):
                raise InputError(
                    f"row {number} of `covariates` must be a dictionary of its cells, "
                    f"got {row!r:.60}"
                )
            names |= dict.fromkeys(map(str, row))
        found = {name: [row.get(name) for row in table] for name in names}
    elif hasattr(table, "column_names"):
        found = {str(name): _cells(table[name]) for name in table.column_names}
    elif hasattr(table, "columns"):
        found = {str(name): _cells(table[name]) for name in table.columns}
    else:
        raise InputError(
            "`covariates` must be a table: a data frame, a dictionary of columns or a "
            f"list of dictionaries, got {type(table).__name__}"
        )
    sizes = {name: len(column) for name, column in found.items()}
    if len(set(sizes.values())) > 1:
        (first, n), *rest = sizes.items()
        name, m = next((k, v) for k, v in rest if v != n)
        raise InputError(
            f"the columns of `covariates` must be equally long: `{first}` has {n} "
            f"cells, `{name}` has {m}"
        )
    return found


def _cells(column: Any) -> list[Any]:
    if hasattr(column, "to_pylist"):
        return list(column.to_pylist())
    if hasattr(column, "tolist"):
        return list(column.tolist())
    return list(column)


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT or blank."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return True
    # Only NaN and NaT differ from themselves; pandas's NA is neither.
    return type(cell).__name__ == "NAType" or bool(cell != cell)


def as_numbers(cells: Sequence[Any]) -> NDArray[np.float64] | None:
    """Return cells as numbers, NaN where missing; None if some are no numbers.

    Dates become years with a fraction. Booleans are no numbers but categories.

    Examples
    --------
    >>> as_numbers(["1790", "", 1791.5]).tolist()
    [1790.0, nan, 1791.5]
    >>> as_numbers(["2020-07-02"]).round(2).tolist()
    [2020.5]
    """
    found = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if is_missing(cell):
            continue
        value = _number(cell)
        if value is None:
            return None
        if not math.isfinite(value):
            raise InputError(f"a number in `covariates` must be finite, got {cell!r}")
        found[row] = value
    return found


def _number(cell: Any) -> float | None:
    if isinstance(cell, bool | np.bool_):
        return None
    if isinstance(cell, datetime.date):
        return _year(cell)
    try:
        return float(cell)
    except (TypeError, ValueError):
        pass
    try:
        return _year(datetime.datetime.fromisoformat(str(cell).strip()))
    except ValueError:
        return None


def _year(date: datetime.date) -> float:
    first = datetime.date(date.year, 1, 1).toordinal()
    days = datetime.date(date.year, 12, 31).toordinal() + 1 - first
    return date.year + (date.toordinal() - first) / days


def as_category(cell: Any) -> str | None:
    """Return the name of a cell's category, None where missing."""
    if is_missing(cell):
        return None
    if isinstance(cell, float) and cell.is_integer():
        # A column of integers in which a cell is missing is one of floats.
        cell = int(cell)
    return str(cell).strip()
