"""Documents from JSON lines: one object a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsigma.corpora._columns import DocumentRows
from docsigma.corpora._rows import json_rows

if TYPE_CHECKING:
    from pathlib import Path

    from docsigma.corpora.documents import Documents

__all__ = ["read_json_lines"]


def read_json_lines(
    path: Path,
    *,
    text_column: str = "text",
    label_column: str | None = "label",
    id_column: str | None = "id",
) -> Documents:
    r"""Read a ``.jsonl`` file; blank lines are passed over.

    Raises
    ------
    InputError
        If a line is not a JSON object with a text; names the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "weather.jsonl"
    >>> _ = file.write_text('{"text": "sun"}\n{"text": "rain"}\n')
    >>> read_json_lines(file).texts
    ['sun', 'rain']
    """
    rows = DocumentRows(path, text_column, label_column, id_column)
    for number, row in json_rows(path):
        rows.add(number, row)
    return rows.documents()
