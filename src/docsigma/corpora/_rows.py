"""Rows of a file or folder one after the other, never all in memory."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from typing import TYPE_CHECKING, Any

from docsigma.corpora._streams import (
    COMPRESSIONS,
    existing_file,
    numbered_lines,
    read_bytes,
)
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


Row = tuple[int, dict[str, object]]


def json_rows(path: Path) -> Iterator[Row]:
    r"""Yield number and object of each line of a ``.jsonl`` file, blank ones left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "weather.jsonl"
    >>> _ = file.write_text('{"text": "sun"}\n\n{"text": "rain"}\n')
    >>> list(json_rows(file))
    [(1, {'text': 'sun'}), (3, {'text': 'rain'})]
    """
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
        yield number, row


def table_rows(path: Path, *, delimiter: str, text_column: str) -> Iterator[Row]:
    """Yield line number and columns of each row of a ``.csv`` or ``.tsv`` file."""
    lines = (line for _, line in numbered_lines(path))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        number = reader.line_num + 1
        try:
            # Not around the yield: the limit is the whole process's.
            with _long_fields():
                values = next(reader, None)
        except csv.Error as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        if values is None:
            return
        if not values:
            continue
        if header is None:
            header = values
            _check_header(path, number, header, text_column)
        elif len(values) != len(header):
            raise InputError(
                f"{path}, line {number}: {len(values)} fields, but the header "
                f"names {len(header)} columns"
            )
        else:
            yield number, dict(zip(header, values, strict=True))


def parquet_rows(path: Path, *, text_column: str, wanted: set[str]) -> Iterator[Row]:
    """Yield number and columns of each row of a ``.parquet`` file, batch by batch.

    A compressed one (``.parquet.gz``) is read whole first: its index is at its end.
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
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(source) as file:
            found = list(file.schema_arrow.names)
            if text_column not in found:
                raise InputError(
                    f"{path}: no column `{text_column}`, found {named(found)}"
                )
            columns = [name for name in found if name in wanted]
            # Long texts in a batch of the default size could fill the memory.
            for batch in file.iter_batches(batch_size=4096, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (pyarrow.ArrowException, OSError, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"cannot read {path}: damaged Parquet ({reason})") from error


def line_rows(path: Path) -> Iterator[Row]:
    """Yield number and text of each line of a ``.txt`` file, empty ones too."""
    blank = True
    for number, line in numbered_lines(path):
        blank = blank and not line.strip()
        yield number, {"text": line.rstrip("\r\n")}
    if blank:
        raise InputError(f"{path} has no documents")


def folder_rows(path: Path) -> Iterator[Row]:
    """Yield id, text and label of each file of a folder, sorted by relative path."""
    try:
        files = [file.relative_to(path) for file in path.rglob("*") if file.is_file()]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    names = sorted(name for name in files if not _is_hidden(name))
    if not names:
        raise InputError(f"{path} has no documents: it is a folder without files")
    for number, name in enumerate(names, start=1):
        label = name.parts[0] if len(name.parts) > 1 else None
        text = _text(path / name)
        yield number, {"id": name.as_posix(), "text": text, "label": label}


def named(columns: Iterable[str]) -> str:
    """Return the names of columns as a sentence has them."""
    names = [f"`{name}`" for name in columns]
    return ", ".join(names) if names else "no columns"


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


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    # A C long: smaller than sys.maxsize on Windows.
    previous = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(previous)


def _check_header(path: Path, number: int, header: list[str], text_column: str) -> None:
    where = f"{path}, line {number}"
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise InputError(f"{where}: the header names {named(repeated)} more than once")
    if text_column not in header:
        raise InputError(f"{where}: no column `{text_column}`, found {named(header)}")


def _is_hidden(name: Path) -> bool:
    return any(part.startswith(".") for part in name.parts)


def _text(path: Path) -> str:
    raw = read_bytes(path)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}, line {line}, byte {error.start + 1} of the file: not UTF-8 "
            f"(0x{raw[error.start]:02x})"
        ) from error
