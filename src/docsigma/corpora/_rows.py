"""Rows of a file or folder one by one, never all in memory."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import sys
import warnings
from typing import TYPE_CHECKING, Any

from docsigma.corpora._streams import (
    COMPRESSIONS,
    check_encoding,
    existing_file,
    marked_encoding,
    not_encoded,
    numbered_lines,
    read_bytes,
)
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    # Columns to read, with the parameter that names them; "" if one may be missing.
    Wanted = Mapping[str, str]


# Its line in the file, its row as a spreadsheet counts them, and its columns.
Row = tuple[int, int, dict[str, object]]
# Delimiters that are recognised for a hint.
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def json_rows(path: Path, encoding: str = "utf-8") -> Iterator[Row]:
    r"""Yield number (twice) and object of each line of a ``.jsonl`` file.

    Blank lines are skipped.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "weather.jsonl"
    >>> _ = file.write_text('{"text": "sun"}\n\n{"text": "rain"}\n')
    >>> list(json_rows(file))
    [(1, 1, {'text': 'sun'}), (3, 3, {'text': 'rain'})]
    """
    for number, line in numbered_lines(path, encoding):
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
        yield number, number, row


def table_rows(
    path: Path, *, delimiter: str, wanted: Wanted, encoding: str = "utf-8"
) -> Iterator[Row]:
    """Yield line, row and columns of each row of a ``.csv`` or ``.tsv`` file.

    A row is more than one line where a line break is inside quotes.
    """
    first = ""

    def lines() -> Iterator[str]:
        nonlocal first
        for number, line in numbered_lines(path, encoding):
            first = line if number == 1 else first
            yield line

    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    for row in itertools.count(1):
        number = reader.line_num + 1
        try:
            # Not around the yield: the limit applies to the whole process.
            with _long_fields():
                values = next(reader, None)
        except csv.Error as error:
            hint = "" if header else _separated_by(first, delimiter)
            what = str(error)
            if what == "unexpected end of data":
                what = 'a quote (") opens in this row and is never closed'
            raise InputError(f"{path}, line {number}: {what}{hint}") from error
        if values is None:
            return
        if not values:
            continue
        if header is None:
            header = values
            hint = _separated_by(first, delimiter)
            where = f"{path}, line {number}"
            repeated = sorted({name for name in header if header.count(name) > 1})
            if repeated:
                raise InputError(
                    f"{where}: the header names {named(repeated)} more than once"
                )
            check_columns(where, header, wanted, hint)
        elif len(values) != len(header):
            raise InputError(
                f"{path}, line {number}: {len(values)} fields, but the header "
                f"names {len(header)} columns"
            )
        else:
            yield number, row, dict(zip(header, values, strict=True))


def parquet_rows(path: Path, *, wanted: Wanted | None) -> Iterator[Row]:
    """Yield number and columns of each row of a ``.parquet`` file, batch by batch.

    With None as `wanted`, all columns are read.
    A compressed file (``.parquet.gz``) is read whole first: its index is at its end.
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
            check_columns(str(path), found, wanted or {})
            columns = [name for name in found if wanted is None or name in wanted]
            # Batches of the default size could fill the memory if texts are long.
            for batch in file.iter_batches(batch_size=4096, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    yield number, number, row
    except (pyarrow.ArrowException, OSError, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"cannot read {path}: damaged Parquet ({reason})") from error


def line_rows(path: Path, encoding: str = "utf-8") -> Iterator[Row]:
    """Yield number and text of each line of a ``.txt`` file, including empty lines."""
    blank = True
    for number, line in numbered_lines(path, encoding):
        blank = blank and not line.strip()
        yield number, number, {"text": line.rstrip("\r\n")}
    if blank:
        raise InputError(f"{path} has no documents")


def folder_rows(path: Path, encoding: str = "utf-8") -> Iterator[Row]:
    """Yield id, text and label of each file of a folder, sorted by relative path.

    Files that are not text are left out, with a warning that names them.
    """
    encoding = check_encoding(encoding)
    try:
        files = [file.relative_to(path) for file in path.rglob("*") if file.is_file()]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    names = sorted(
        name for name in files if not any(part.startswith(".") for part in name.parts)
    )
    if not names:
        raise InputError(f"{path} has no documents: it is a folder without files")
    binary = []
    for number, name in enumerate(names, start=1):
        label = name.parts[0] if len(name.parts) > 1 else None
        raw = read_bytes(path / name)
        own = marked_encoding(raw, encoding)
        if _is_binary(raw, own):
            binary.append(name.as_posix())
            continue
        text = _text(path / name, raw, own)
        yield number, number, {"id": name.as_posix(), "text": text, "label": label}
    if not binary:
        return
    shown = ", ".join(binary[:5]) + (", ..." if len(binary) > 5 else "")
    what = f"{len(binary)} of {len(names)} files are not text"
    if len(binary) == len(names):
        raise InputError(f"{path} has no documents: {what} ({shown})")
    warnings.warn(f"{path}: {what} and are left out ({shown})", stacklevel=2)


def named(columns: Iterable[str]) -> str:
    """Return the names of columns for a sentence."""
    return ", ".join(f"`{name}`" for name in columns) or "no columns"


# Stands for the option that names a column, where callers have different ones.
ANY_OPTION = "any option"


def check_columns(
    where: str, found: Sequence[str], wanted: Wanted, hint: str = ""
) -> None:
    """Refuse a table that lacks a wanted column."""
    for column, parameter in wanted.items():
        if not parameter or column in found:
            continue
        alike = [name for name in found if name.strip().lower() == column.lower()]
        if not hint and parameter != ANY_OPTION:
            right = f"`{alike[0]}`" if alike else "the one you mean"
            hint = f": set `{parameter}` to {right}"
        raise InputError(f"{where}: no column `{column}`, found {named(found)}{hint}")


def _separated_by(line: str, delimiter: str) -> str:
    """Return a hint if a first line has another delimiter and not this one."""
    counts = {mark: line.count(mark) for mark in DELIMITERS}
    most = max(counts, key=counts.__getitem__)
    if counts.get(delimiter) or not counts[most]:
        return ""
    shown = "tab" if most == "\t" else most
    return (
        f": the file seems to be separated by {DELIMITERS[most]}, set `delimiter` to "
        f'"{shown}"'
    )


def _check_surrogates(where: str, row: dict[str, object]) -> None:
    # JSON can hold half of a surrogate pair, which cannot be written as UTF-8 later.
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
    # The limit is a C long, which is smaller than sys.maxsize on Windows.
    previous = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(previous)


def _is_binary(raw: bytes, encoding: str) -> bool:
    # Text has no zero bytes, except in encodings of two or four bytes.
    wide = encoding.startswith(("utf-16", "utf-32"))
    return raw.startswith(b"%PDF-") or (b"\0" in raw[:8192] and not wide)


def _text(path: Path, raw: bytes, encoding: str) -> str:
    try:
        return raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        where = f"{path}, line {line}, byte {error.start + 1} of the file"
        raise not_encoded(where, encoding, raw[error.start]) from error
