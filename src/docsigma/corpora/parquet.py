"""Documents from Parquet files, by the optional pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsigma.corpora._columns import DocumentRows
from docsigma.corpora._rows import parquet_rows

if TYPE_CHECKING:
    from pathlib import Path

    from docsigma.corpora.documents import Documents

__all__ = ["read_parquet"]


def read_parquet(
    path: Path,
    *,
    text_column: str = "text",
    label_column: str | None = "label",
    id_column: str | None = "id",
) -> Documents:
    """Read a ``.parquet`` file, only the columns asked for.

    Raises
    ------
    InputError
        If pyarrow is not installed, the file is damaged, or a text is missing.
    """
    columns = (text_column, label_column, id_column)
    rows = DocumentRows(path, *columns, unit="row")
    wanted = {column for column in columns if column is not None}
    for number, row in parquet_rows(path, text_column=text_column, wanted=wanted):
        rows.add(number, row)
    return rows.documents()
