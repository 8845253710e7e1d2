"""What the tables of benchmarks are made of."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

Reports = list[tuple[Path, Any]]
# Heading, where a row has the number, and how it is written.
Columns = dict[str, tuple[str, str]]


def table(head: str, rows: list[str]) -> str:
    """Lay out a table; columns whose name begins with > are of numbers."""
    columns = head.split("|")
    rule = "|".join("---:" if c.startswith(">") else "---" for c in columns)
    names = "|".join(column.lstrip(">") for column in columns)
    return "\n".join(f"|{line}|" for line in [names, rule, *rows])


def cells(columns: Columns, rows: list[dict[str, Any]]) -> str:
    """Lay out a table of what rows have under dotted names."""

    def cell(value: Any, where: str, form: str) -> str:
        for key in where.split("."):
            value = (value or {}).get(key)
        return "" if value is None else format(value, form)

    lines = ["|".join(cell(row, *how) for how in columns.values()) for row in rows]
    return table("|".join(columns), lines)


def wrapped(command: str) -> str:
    """Write a long command on several lines."""
    lines = textwrap.wrap(command, 72, break_on_hyphens=False, break_long_words=False)
    return " \\\n    ".join(lines)
