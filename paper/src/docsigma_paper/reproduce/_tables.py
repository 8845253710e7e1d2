"""Markdown tables of results: means and spreads over seeds, and the paper's values."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def markdown(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; columns whose heading begins with ``>`` are right-aligned.

    Examples
    --------
    >>> print(markdown(["model", ">K"], [["NVDM", "50"]]))
    | model | K |
    | --- | ---: |
    | NVDM | 50 |
    """
    names = [name.lstrip(">") for name in heading]
    rule = ["---:" if name.startswith(">") else "---" for name in heading]
    lines = [names, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spread(values: Sequence[float], digits: int) -> str:
    """Return the mean, and half the range if there are several values.

    Examples
    --------
    >>> spread([1.0, 2.0], 1).split(), spread([3.25], 2), spread([], 1)
    (['1.5', '±', '0.5'], '3.25', '-')
    """
    if not values:
        return "-"
    mean = statistics.fmean(values)
    if len(values) == 1:
        return f"{mean:.{digits}f}"
    half = (max(values) - min(values)) / 2
    # Non-breaking spaces, for narrow columns.
    return f"{mean:.{digits}f}\u00a0±\u00a0{half:.{digits}f}"


def over_seeds(rows: Iterable[dict[str, Any]]) -> dict[tuple[Any, ...], list[Any]]:
    """Collect rows whose keys differ in the seed only, in the order they came."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        key = tuple(
            (name, tuple(value) if isinstance(value, list) else value)
            for name, value in row["key"].items()
            if name != "seed"
        )
        groups.setdefault(key, []).append(row)
    return groups


def unit(row: dict[str, Any]) -> str:
    """Return the unit of a row's curve: NVDM is trained in rounds of many passes."""
    return "round" if row["key"]["model"] == "NVDM" else "pass"
