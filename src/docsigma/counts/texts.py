"""Texts and labels as lists, from columns of any library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from docsigma.exceptions import InputError


def as_list(column: Any) -> list[Any]:
    """Return the entries of a list or of a column of any library."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def beginning(text: str, length: int) -> str:
    """Return the beginning of a text as one line of at most `length` characters."""
    return " ".join(text[: 4 * length].split())[:length]


def as_texts(texts: Iterable[object]) -> list[str]:
    """Return texts as a list, from an array or a column of pandas, polars or Arrow.

    Raises
    ------
    InputError
        If `texts` is one string or a table, or an entry is not a string; the message
        names the row.

    Examples
    --------
    >>> import numpy as np
    >>> as_texts(np.array(["sun", "rain"]))
    ['sun', 'rain']
    """
    kind = type(texts).__name__
    if getattr(texts, "ndim", 1) != 1 or hasattr(texts, "columns"):
        raise InputError(
            f"`texts` must be one column of strings, got a {kind} of several: pick "
            'one, as in table["text"]'
        )
    if isinstance(texts, (str, bytes)) or not hasattr(texts, "__iter__"):
        raise InputError(f"`texts` must be a list or a column of strings, got {kind}")
    found = as_list(texts)
    for row, text in enumerate(found):
        if not isinstance(text, str):
            given = "nothing" if text is None or text != text else type(text).__name__
            hint = ': fill it, as with column.fillna("")' if given == "nothing" else ""
            raise InputError(
                f"row {row} of `texts` must be a string, got {given}{hint}"
            )
    return found
