"""Documents of a file or folder in blocks, so that a corpus may exceed the memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from docsigma.corpora._columns import DocumentRows
from docsigma.corpora._rows import (
    Row,
    folder_rows,
    json_rows,
    line_rows,
    parquet_rows,
    table_rows,
)
from docsigma.corpora._streams import base_name
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from docsigma.corpora.documents import Documents

__all__ = ["can_stream", "iter_documents"]

# A block ends at either.
BLOCK_DOCUMENTS = 4096
BLOCK_CHARACTERS = 2**24


def can_stream(path: str | os.PathLike[str]) -> bool:
    """Tell whether `iter_documents` reads `path`: texts, not a matrix of counts.

    Examples
    --------
    >>> can_stream("calls.jsonl.gz"), can_stream("counts.npz")
    (True, False)
    """
    suffix = Path(base_name(Path(path))).suffix.lower()
    if suffix in (".jsonl", ".csv", ".tsv", ".txt", ".parquet"):
        return True
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def iter_documents(
    path: str | os.PathLike[str],
    *,
    text_column: str = "text",
    label_column: str | None = "label",
    id_column: str | None = "id",
) -> Iterator[Documents]:
    r"""Yield what `read_documents` reads from a path of texts, a block at a time.

    A block has 4096 documents, fewer if they are long. What cannot be used is told
    when its line is met.

    Parameters
    ----------
    path : path
        One that `can_stream`.
    text_column, label_column, id_column : str
        As in `read_documents`.

    Raises
    ------
    InputError
        As `read_documents` does.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "weather.txt"
    >>> _ = file.write_text("sun\nrain\n" * 4000)
    >>> [len(block) for block in iter_documents(file)]
    [4096, 3904]
    """
    file = Path(path)
    suffix = Path(base_name(file)).suffix.lower()
    columns = (text_column, label_column, id_column)
    unit = "line"
    rows: Iterator[Row]
    if file.is_dir():
        # The columns of a table do not matter to a folder.
        columns = ("text", "label", "id")
        rows = folder_rows(file, labelled=label_column is not None)
    elif suffix == ".txt":
        columns = ("text", None, None)
        rows = line_rows(file)
    elif suffix == ".jsonl":
        rows = json_rows(file)
    elif suffix == ".parquet":
        unit = "row"
        wanted = {column for column in columns if column is not None}
        rows = parquet_rows(file, text_column=text_column, wanted=wanted)
    elif suffix in (".csv", ".tsv"):
        delimiter = "\t" if suffix == ".tsv" else ","
        rows = table_rows(file, delimiter=delimiter, text_column=text_column)
    else:
        raise InputError(f"cannot read {file} in blocks: unknown suffix {suffix!r}")
    yield from _blocks(file, rows, columns, unit)


def _blocks(
    path: Path,
    rows: Iterator[Row],
    columns: tuple[str, str | None, str | None],
    unit: str,
) -> Iterator[Documents]:
    labels = _LabelWatch(path, columns[1], unit)
    gathered = DocumentRows(path, *columns, unit=unit)
    n_documents = n_characters = first = 0
    for number, row in rows:
        gathered.add(number, row)
        first = first or number
        n_documents += 1
        n_characters += len(str(row[columns[0]]))
        if n_documents == BLOCK_DOCUMENTS or n_characters >= BLOCK_CHARACTERS:
            yield labels.checked(gathered.documents(), first)
            gathered = DocumentRows(path, *columns, unit=unit)
            n_documents = n_characters = first = 0
    if n_documents or not labels.started:
        yield labels.checked(gathered.documents(), first)


class _LabelWatch:
    """Sees to it that either all blocks have labels or none has."""

    def __init__(self, path: Path, column: str | None, unit: str) -> None:
        self.path = path
        self.column = column
        self.unit = unit
        self.started = False
        self._labelled = False
        self._first = 0

    def checked(self, block: Documents, first: int) -> Documents:
        """Return `block`, whose first row has the number `first`."""
        labelled = block.labels is not None
        if not self.started:
            self.started, self._labelled, self._first = True, labelled, first
        elif labelled != self._labelled:
            without = self._first if labelled else first
            raise InputError(
                f"{self.path}, {self.unit} {without}: no value in column "
                f"`{self.column}`, which other {self.unit}s have"
            )
        return block
