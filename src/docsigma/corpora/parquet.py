"""Documents from Parquet files, by the optional pyarrow."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from docsigma.corpora._columns import DocumentRows, named
from docsigma.corpora._streams import COMPRESSIONS, existing_file, read_bytes
from docsigma.exceptions import InputError

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
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            f"cannot read {path}: Parquet needs pyarrow, pip install docsigma[tables]"
        ) from error
    existing_file(path)
    compressed = path.suffix.lower() in COMPRESSIONS
    source: Any = io.BytesIO(read_bytes(path)) if compressed else str(path)
    rows = DocumentRows(path, text_column, label_column, id_column, unit="row")
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(source) as file:
            found = list(file.schema_arrow.names)
            if text_column not in found:
                raise InputError(
                    f"{path}: no column `{text_column}`, found {named(found)}"
                )
            wanted = {text_column, label_column, id_column}
            columns = [name for name in found if name in wanted]
            for batch in file.iter_batches(columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    rows.add(number, row)
    except (pyarrow.ArrowException, OSError, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"cannot read {path}: damaged Parquet ({reason})") from error
    return rows.documents()
