"""Documents from JSON lines: one object a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from docsigma.corpora._columns import DocumentRows
from docsigma.corpora._streams import numbered_lines
from docsigma.exceptions import InputError

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
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line.rstrip("\r\n"))
        except json.JSONDecodeError as error:
            raise InputError(
                f"{where}, column {error.colno}: broken JSON ({error.msg})"
            ) from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: JSON that cannot be read ({error})") from error
        if not isinstance(row, dict):
            raise InputError(
                f"{where}: must be a JSON object, got {type(row).__name__}"
            )
        if "\\ud" in line or "\\uD" in line:
            _check_surrogates(where, row)
        rows.add(number, row)
    return rows.documents()


def _check_surrogates(where: str, row: dict[str, object]) -> None:
    # JSON can spell half of a character, which no file could be written with later.
    for column, value in row.items():
        if isinstance(value, str):
            try:
                value.encode("utf-8")
            except UnicodeEncodeError as error:
                raise InputError(
                    f"{where}: column `{column}` has half of a surrogate pair"
                ) from error
