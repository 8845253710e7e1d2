"""Columns of a table, put together row by row into documents."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from docsigma.corpora.documents import Documents
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["DocumentRows", "named", "scalar"]


def scalar(value: object) -> str | None:
    """Return a scalar as a string, and None for a missing one.

    Raises
    ------
    TypeError
        If `value` has parts: a list, an object.

    Examples
    --------
    >>> scalar(7), scalar(True), scalar("sun"), scalar(None), scalar(float("nan"))
    ('7', 'true', 'sun', None, None)
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict | tuple):
        raise TypeError
    return str(value)


class DocumentRows:
    """Gathers documents from rows, and checks each value as it comes.

    Parameters
    ----------
    path : Path
        File they come from, for messages.
    text_column, label_column, id_column
        Names of the columns; a None is a column not wanted.
    unit : str
        What a row is called in messages: "line" or "row".

    Examples
    --------
    >>> from pathlib import Path
    >>> rows = DocumentRows(Path("weather.jsonl"), "text", "label", "id")
    >>> rows.add(1, {"text": "sun", "label": 3})
    >>> rows.documents().labels
    ['3']
    """

    def __init__(
        self,
        path: Path,
        text_column: str,
        label_column: str | None,
        id_column: str | None,
        *,
        unit: str = "line",
    ) -> None:
        self.path = path
        self.text_column = text_column
        self.label_column = label_column
        self.id_column = id_column
        self.unit = unit
        self._ids: list[str] = []
        self._texts: list[str] = []
        self._labels: list[str] = []
        self._unlabelled: int | None = None

    def add(self, number: int, row: dict[str, object]) -> None:
        """Add the row of that number."""
        where = f"{self.path}, {self.unit} {number}"
        if self.text_column not in row:
            raise InputError(
                f"{where}: no column `{self.text_column}`, found {named(row)}"
            )
        text = row[self.text_column]
        if not isinstance(text, str):
            raise InputError(
                f"{where}: column `{self.text_column}` must be a string, "
                f"got {type(text).__name__}"
            )
        label = self._scalar(where, row, self.label_column)
        identity = self._scalar(where, row, self.id_column)
        if label is None:
            if self._unlabelled is None:
                self._unlabelled = number
        else:
            self._labels.append(label)
        self._texts.append(text)
        self._ids.append(str(number) if identity is None else identity)
        if self._labels and self._unlabelled is not None:
            raise InputError(
                f"{self.path}, {self.unit} {self._unlabelled}: no value in column "
                f"`{self.label_column}`, which other {self.unit}s have"
            )

    def documents(self) -> Documents:
        """Return the documents of all rows."""
        if not self._texts:
            raise InputError(f"{self.path} has no documents")
        return Documents(
            ids=self._ids,
            texts=self._texts,
            labels=self._labels or None,
            source=str(self.path),
        )

    @staticmethod
    def _scalar(where: str, row: dict[str, object], column: str | None) -> str | None:
        if column is None:
            return None
        try:
            return scalar(row.get(column))
        except TypeError:
            kind = type(row[column]).__name__
            raise InputError(
                f"{where}: column `{column}` must be one value, got {kind}"
            ) from None


def named(columns: Iterable[str]) -> str:
    names = [f"`{name}`" for name in columns]
    return ", ".join(names) if names else "no columns"
