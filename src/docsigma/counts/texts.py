"""Texts and labels as lists, from columns of any library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from docsigma.exceptions import InputError


def as_list(column: Any, name: str = "y", kind: str = "labels") -> list[Any]:
    """Return the entries of a list or of a column of any library.

    A table or an array of one column counts as that column. Anything else is refused by
    an InputError that names the argument `name` and the `kind` of its entries.

    Examples
    --------
    >>> import numpy as np
    >>> as_list(np.array([["sun"], ["rain"]]))
    ['sun', 'rain']
    """
    given, is_table = type(column).__name__, hasattr(column, "columns")
    # The entries of a set have no order, and those of a dict are its keys.
    no_column = isinstance(column, (str, bytes, Mapping, AbstractSet))
    if no_column or not (is_table or hasattr(column, "__iter__")):
        raise InputError(f"`{name}` must be a list or a column of {kind}, got {given}")
    shape = tuple(getattr(column, "shape", (0,)))
    if len(shape) != 1:
        if len(shape) != 2 or shape[1] != 1:
            raise InputError(
                f"`{name}` must be one column of {kind}, got a {given} of shape "
                f'{shape}: pick one, as in table["{name.removesuffix("s")}"]'
            )
        if is_table:
            names = getattr(column, "column_names", column.columns)
            column = column[names[0]]
        else:
            column = column[:, 0]
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def as_table(table: Any, name: str = "X") -> dict[str, list[str]]:
    """Return columns of texts by their names, from a dict or a table of any library.

    Missing texts (None, NaN, pandas' NA) are empty.

    Raises
    ------
    InputError
        If there is no column, columns differ in length, or an entry is not a string.

    Examples
    --------
    >>> as_table({"en": ["sun", None], "de": ["Sonne", "Regen"]})
    {'en': ['sun', ''], 'de': ['Sonne', 'Regen']}
    """
    names = getattr(table, "column_names", getattr(table, "columns", None))
    if names is None and isinstance(table, Mapping):
        names = list(table)
    if names is None or not len(names):
        raise InputError(
            f"`{name}` must be a dict or a table with one column of texts per language "
            f"or view, got {type(table).__name__}"
        )
    columns = {str(key): as_list(table[key], name, "texts") for key in names}
    (first, size), *rest = [(key, len(column)) for key, column in columns.items()]
    for key, length in rest:
        if length != size:
            raise InputError(
                f"column {key!r} of `{name}` has {length} texts, {first!r} has {size}"
            )
    for key, column in columns.items():
        for row, text in enumerate(column):
            if isinstance(text, str):
                continue
            if not is_nothing(text):
                raise InputError(
                    f"row {row} of column {key!r} of `{name}` must be a string, got "
                    f"{type(text).__name__}"
                )
            column[row] = ""
    return columns


def is_nothing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither equal to itself nor not.
        return True


def beginning(text: str, length: int) -> str:
    """Return the beginning of a text as one line of at most `length` characters."""
    return " ".join(text[: 4 * length].split())[:length]


def as_texts(texts: Iterable[object]) -> list[str]:
    """Return texts as a list, from an array or a column of pandas, polars or Arrow.

    Raises
    ------
    InputError
        If `texts` is one string or has several columns, or an entry is not a string;
        the message names the row. A missing text (None, NaN, pandas' NA) is refused
        too: whether it stands for an empty text is for the caller to say.

    Examples
    --------
    >>> import numpy as np
    >>> as_texts(np.array(["sun", "rain"]))
    ['sun', 'rain']
    """
    found = as_list(texts, "texts", "strings")
    for row, text in enumerate(found):
        if not isinstance(text, str):
            missing = is_nothing(text)
            given = "nothing" if missing else type(text).__name__
            hint = ': fill it, as with column.fillna("")' if missing else ""
            raise InputError(
                f"row {row} of `texts` must be a string, got {given}{hint}"
            )
    return found
