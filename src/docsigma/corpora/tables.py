"""Documents from tables in text: comma- and tab-separated values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsigma.corpora._columns import DocumentRows
from docsigma.corpora._rows import table_rows

if TYPE_CHECKING:
    from pathlib import Path

    from docsigma.corpora.documents import Documents

__all__ = ["read_table"]


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
    for number, row in table_rows(path, delimiter=delimiter, text_column=text_column):
        rows.add(number, row)
    return rows.documents()
