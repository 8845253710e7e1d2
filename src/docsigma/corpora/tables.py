"""Documents from tables in text: comma- and tab-separated values."""

from __future__ import annotations

import contextlib
import csv
import sys
from typing import TYPE_CHECKING

from docsigma.corpora._columns import DocumentRows, named
from docsigma.corpora._streams import numbered_lines
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from docsigma.corpora.documents import Documents

__all__ = ["read_table"]


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    # A C long: smaller than sys.maxsize on Windows.
    previous = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(previous)


def read_table(
    path: Path,
    *,
    delimiter: str = ",",
    text_column: str = "text",
    label_column: str | None = "label",
    id_column: str | None = "id",
) -> Documents:
    r"""Read a ``.csv`` or ``.tsv`` file whose first line names the columns.

    Fields may be quoted and then hold line ends. Empty lines are passed over.

    Raises
    ------
    InputError
        If a line has too few or too many fields, or broken quotes; names the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "weather.csv"
    >>> _ = file.write_text('id,text,label\n1,"sun, sun",good\n2,rain,bad\n')
    >>> documents = read_table(file)
    >>> documents.texts, documents.labels
    (['sun, sun', 'rain'], ['good', 'bad'])
    """
    rows = DocumentRows(path, text_column, label_column, id_column)
    reader = csv.reader(
        (line for _, line in numbered_lines(path)), delimiter=delimiter, strict=True
    )
    header: list[str] | None = None
    number = 1
    with _long_fields():
        try:
            for values in reader:
                if not values:
                    pass
                elif header is None:
                    header = values
                    _check_header(path, number, header, text_column)
                elif len(values) != len(header):
                    raise InputError(
                        f"{path}, line {number}: {len(values)} fields, but the header "
                        f"names {len(header)} columns"
                    )
                else:
                    rows.add(number, dict(zip(header, values, strict=True)))
                number = reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"{path}, line {number}: {error}") from error
    return rows.documents()


def _check_header(path: Path, number: int, header: list[str], text_column: str) -> None:
    where = f"{path}, line {number}"
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise InputError(f"{where}: the header names {named(repeated)} more than once")
    if text_column not in header:
        raise InputError(f"{where}: no column `{text_column}`, found {named(header)}")
