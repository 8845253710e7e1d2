"""Documents from a user's own file or folder, block by block."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docsigma.corpora._rows import (
    ANY_OPTION,
    check_columns,
    folder_rows,
    json_rows,
    line_rows,
    parquet_rows,
    table_rows,
)
from docsigma.corpora._streams import COMPRESSIONS, base_name, existing_file
from docsigma.corpora.documents import Documents
from docsigma.corpora.matrices import read_matrix
from docsigma.counts import is_counts_folder
from docsigma.counts._base import BLOCK
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from docsigma.corpora._rows import Row


TABLES = (".csv", ".tsv")
TEXTS = (".jsonl", ".csv", ".tsv", ".parquet", ".txt")
MATRICES = (".mtx", ".npz")
SUFFIXES = TEXTS + MATRICES
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
# Cells of tables that mean no label, in either case, as spreadsheets and pandas write.
MISSING_LABELS = ("nan", "na", "n/a", "null")
# A block of documents ends early at this number of characters.
BLOCK_CHARACTERS = 2**24


def read_documents(path: str | os.PathLike[str], **options: Any) -> Documents:
    r"""Read documents from a file or folder; `options` are those of `iter_documents`.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "weather.tsv"
    >>> _ = file.write_text("text\tlabel\nsun\tgood\nrain\t\n")
    >>> documents = read_documents(file)
    >>> documents.ids, documents.texts, documents.labels
    (['2', '3'], ['sun', 'rain'], ['good', None])
    """
    return Documents.concatenate(list(iter_documents(path, **options)))


def iter_documents(
    path: str | os.PathLike[str],
    *,
    text_column: str = "text",
    label_column: str | None = "label",
    id_column: str | None = "id",
    delimiter: str | None = None,
    encoding: str = "utf-8",
    vocabulary: str | os.PathLike[str] | None = None,
    missing_labels: Sequence[str] = MISSING_LABELS,
) -> Iterator[Documents]:
    r"""Yield the documents of a file or a folder, a block at a time.

    ====================== =====================================================
    ``.jsonl``             one JSON object per line; blank lines are skipped
    ``.csv``, ``.tsv``     a table whose first line names the columns
    ``.parquet``           a table (needs ``pip install docsigma[tables]``)
    ``.txt``               one document per line, even if the line is empty
    ``.mtx``, ``.npz``     sparse counts, documents in rows; labels, one per line,
                           in ``<stem>.labels`` in the same folder
    a folder               one document per file, sorted by relative path, which is
                           its id; the first subfolder is its label; hidden files
                           and those that are not text are left out
    ====================== =====================================================

    Each file may be compressed: ``.gz`` or ``.xz`` after its suffix.

    A block has 8192 documents, fewer if they are long. Texts are never all in memory; a
    matrix of counts is. An InputError is raised when the line it names is reached.

    Parameters
    ----------
    path : path
    text_column, label_column, id_column : str
        Columns of a table. A label that is blank or null is None; a block without any
        label has no `labels`. A missing id is replaced by the number of the row, as a
        spreadsheet counts it: a line break inside quotes starts no row. With
        None as `label_column` or `id_column`, that column is not read. A table may
        lack the columns ``label`` and ``id``, but no column that you name otherwise.
    delimiter : str, optional
        Delimiter of a ``.csv`` or ``.tsv`` file, by default a comma or a tab; "tab"
        means a tab.
    encoding : str, default="utf-8"
        Encoding of the texts, for example ``"cp1252"``; UTF-16 is recognised by its
        mark.
    vocabulary : path, optional
        For counts only: words of the columns, see `read_matrix`.
    missing_labels : sequence of str, optional
        Labels of a table that mean none, in either case, besides blank ones; ``()`` for
        blank ones alone. A warning says how many there are.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "weather.txt"
    >>> _ = file.write_text("sun\nrain\n" * 5000)
    >>> [len(block) for block in iter_documents(file)]
    [8192, 1808]
    """
    file = Path(path)
    labelled = label_column is not None
    is_folder, suffix = _is_folder(file), _suffix(file)
    if suffix in MATRICES and not is_folder:
        counts = read_matrix(file, vocabulary=vocabulary, labelled=labelled)
        for start in range(0, len(counts), BLOCK):
            yield counts[start : start + BLOCK]
        return
    if is_counts_folder(file):
        raise InputError(
            f"{file} is a folder of counts, not of documents: "
            "docsigma.counts.DiskCounts opens it"
        )
    if not is_folder:
        existing_file(file)
        if suffix in SPREADSHEETS:
            raise InputError(
                f"cannot read {file}: it is a spreadsheet, save the sheet as CSV UTF-8 "
                "(in Excel: File, Save As) and read that file"
            )
        if suffix not in SUFFIXES:
            raise InputError(
                f"cannot read {file}: unknown suffix {suffix!r}, known are "
                f"{', '.join(SUFFIXES)}, each also with {' or '.join(COMPRESSIONS)}"
            )
    if vocabulary is not None:
        raise InputError(
            f"`vocabulary` names the columns of counts (.mtx, .npz), "
            f"but {file} has texts"
        )
    columns: Columns = (text_column, label_column, id_column)
    # A column that the user has named must exist.
    wanted = {text_column: "text_column"}
    for column, usual in ((label_column, "label"), (id_column, "id")):
        if column is not None:
            wanted.setdefault(column, f"{usual}_column" if column != usual else "")
    mark = _check_delimiter(delimiter, file, suffix if not is_folder else "")
    if is_folder:
        # Names of columns do not apply to a folder.
        columns = ("text", "label" if labelled else None, "id")
        rows = folder_rows(file, encoding)
    elif suffix == ".txt":
        columns = ("text", None, None)
        rows = line_rows(file, encoding)
    elif suffix == ".jsonl":
        rows = json_rows(file, encoding)
    elif suffix == ".parquet":
        rows = parquet_rows(file, wanted=wanted)
    else:
        rows = table_rows(file, delimiter=mark, wanted=wanted, encoding=encoding)
    unit = "row" if suffix == ".parquet" else "line"
    missing = () if is_folder else missing_labels
    for block in _blocks(file, rows, columns, unit, missing):
        yield replace(block, rows=None) if is_folder else block


def _check_delimiter(delimiter: str | None, file: Path, suffix: str) -> str:
    """Return the delimiter of a file's columns."""
    if delimiter is None:
        return "\t" if suffix == ".tsv" else ","
    if suffix not in TABLES:
        raise InputError(
            f"`delimiter` is for {' and '.join(TABLES)}, but {file} is another kind"
        )
    mark = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if len(mark) != 1 or mark in '"\r\n':
        raise InputError(
            f"`delimiter` must be one character, or tab, got {delimiter!r:.80}"
        )
    return mark


def can_stream(path: str | os.PathLike[str]) -> bool:
    """Whether `iter_documents` reads `path` without holding all of it.

    Examples
    --------
    >>> can_stream("calls.jsonl.gz"), can_stream("counts.npz")
    (True, False)
    """
    return _suffix(Path(path)) in TEXTS or _is_folder(Path(path))


Columns = tuple[str, str | None, str | None]


def _blocks(
    path: Path,
    rows: Iterator[Row],
    columns: Columns,
    unit: str,
    missing_labels: Sequence[str],
) -> Iterator[Documents]:
    """Collect rows into blocks of documents, checking each value."""
    text_column, label_column, id_column = columns

    def refuse(what: str) -> InputError:
        return InputError(f"{path}, {unit} {number}: {what}")

    def value(column: str | None) -> str | None:
        if column is None:
            return None
        try:
            return _scalar(row.get(column))
        except TypeError:
            kind = type(row[column]).__name__
            raise refuse(f"column `{column}` must be one value, got {kind}") from None

    def block() -> Documents:
        known = labels if any(label is not None for label in labels) else None
        return Documents(ids, texts, labels=known, source=str(path), rows=places)

    ids: list[str] = []
    texts: list[str] = []
    labels: list[str | None] = []
    places: list[int] = []
    missing = {label.strip().lower() for label in missing_labels}
    n_missing = number = n_characters = 0
    for number, place, row in rows:
        text = row.get(text_column)
        if not isinstance(text, str):
            check_columns(
                f"{path}, {unit} {number}", list(row), {text_column: "text_column"}
            )
            kind = type(text).__name__
            raise refuse(f"column `{text_column}` must be a string, got {kind}")
        label = value(label_column)
        if label is not None and label.strip().lower() in missing:
            label = None
            n_missing += 1
        labels.append(label)
        ids.append(value(id_column) or str(place))
        texts.append(text)
        places.append(place)
        n_characters += len(text)
        if len(texts) == BLOCK or n_characters >= BLOCK_CHARACTERS:
            yield block()
            ids, texts, labels, places, n_characters = [], [], [], [], 0
    if texts:
        yield block()
    elif not number:
        raise InputError(f"{path} has no documents")
    if n_missing:
        warnings.warn(
            f"{path}: cells that count as no label ({', '.join(sorted(missing))}): "
            f"{n_missing}; set `missing_labels` if they are labels",
            stacklevel=2,
        )


def read_columns(
    path: str | os.PathLike[str],
    names: Sequence[str],
    *,
    texts: bool = False,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> dict[str, list[Any]]:
    r"""Return some columns of a table, a cell per document of `read_documents`.

    Parameters
    ----------
    path : path
        A ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet`` file.
    names : sequence of str
        The columns.
    texts : bool
        Whether they are texts, such as translations of each other: blank and missing
        ones are empty, and a column without any is refused.
    delimiter, encoding
        As for `iter_documents`.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "weather.csv"
    >>> _ = file.write_text("text,year\nsun,1790\nrain,\n")
    >>> read_columns(file, ["year"])
    {'year': ['1790', '']}
    """
    file = Path(path)
    suffix = _suffix(file)
    if _is_folder(file) or suffix not in (*TABLES, ".jsonl", ".parquet"):
        raise InputError(
            f"columns are read from {', '.join(TABLES)}, .jsonl and .parquet files, "
            f"and {file} is none"
        )
    existing_file(file)
    wanted = dict.fromkeys(names, ANY_OPTION)
    unit = "row" if suffix == ".parquet" else "line"
    if suffix == ".jsonl":
        rows = json_rows(file, encoding)
    elif suffix == ".parquet":
        rows = parquet_rows(file, wanted=wanted)
    else:
        mark = _check_delimiter(delimiter, file, suffix)
        rows = table_rows(file, delimiter=mark, wanted=wanted, encoding=encoding)
    found: dict[str, list[Any]] = {name: [] for name in names}
    known: set[str] = set()
    for number, _, row in rows:
        known |= row.keys()
        for name, column in found.items():
            cell = row.get(name)
            if texts and (cell is None or cell != cell):
                cell = ""
            if isinstance(cell, list | dict | tuple) or not (
                isinstance(cell, str) or not texts
            ):
                raise InputError(
                    f"{file}, {unit} {number}: column `{name}` must be "
                    f"{'a string' if texts else 'one value'}, got "
                    f"{type(cell).__name__}"
                )
            column.append(cell)
    # A line of JSON may lack a column, but not all of them.
    check_columns(str(file), sorted(known), wanted)
    for name, column in found.items():
        if texts and not any(column):
            raise InputError(f"{file} has no text in the column `{name}`")
    return found


def column_names(path: str | os.PathLike[str], **options: Any) -> list[str]:
    """Return the columns of the first row of a table, none for another kind of file.

    `options` are those of `iter_documents`.
    """
    file = Path(path)
    suffix, encoding = _suffix(file), options.get("encoding", "utf-8")
    rows: Iterator[Row] = iter(())
    if suffix == ".jsonl":
        rows = json_rows(file, encoding)
    elif suffix in TABLES:
        mark = _check_delimiter(options.get("delimiter"), file, suffix)
        rows = table_rows(file, delimiter=mark, wanted={}, encoding=encoding)
    elif suffix == ".parquet":
        rows = parquet_rows(file, wanted=None)
    return list(next(rows, (0, 0, {}))[2])


def _scalar(value: object) -> str | None:
    """Return a scalar as a string, None if it is blank, null or NaN.

    A list or an object raises a TypeError.

    Examples
    --------
    >>> _scalar(7), _scalar(True), _scalar("sun"), _scalar(float("nan")), _scalar(" ")
    ('7', 'true', 'sun', None, None)
    """
    if isinstance(value, str):
        return value if value and not value.isspace() else None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict | tuple):
        raise TypeError
    return str(value)


def _suffix(path: Path) -> str:
    return Path(base_name(path)).suffix.lower()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False  # existing_file raises the reason
