"""Reading bytes and lines, plain or compressed, with errors of one sentence."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator


COMPRESSIONS = (".gz", ".xz")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# What Excel's "Unicode Text" and Notepad's "Unicode" begin with.
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def base_name(path: Path) -> str:
    """Return the file's name without the suffix of its compression.

    Examples
    --------
    >>> base_name(Path("folder/notes.CSV.gz"))
    'notes.CSV'
    """
    return path.stem if path.suffix.lower() in COMPRESSIONS else path.name


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Return `path` if it is a file, else raise an `InputError`."""
    file = Path(path)
    try:
        if file.is_file():
            return file
        there = file.exists()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {str(file)!r:.200}: {error}") from error
    if there:
        raise InputError(f"cannot read {file}: it is not a file")
    raise InputError(f"cannot read {file}: there is no such file")


@contextlib.contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open `path` for reading, decompressed by its suffix.

    If it cannot be opened or proves damaged in the block, it raises an InputError.
    """
    suffix = path.suffix.lower()
    opened: Any = {".gz": gzip.open, ".xz": lzma.open}.get(suffix, open)
    try:
        with opened(path, "rb") as stream:
            yield stream
    except EOFError as error:
        raise InputError(f"cannot read {path}: the file ends too early") from error
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise InputError(
            f"cannot read {path}: it is damaged or not a {suffix} file ({error})"
        ) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"cannot read {path}: {why}") from error


def read_bytes(path: Path) -> bytes:
    """Return the content of `path`, decompressed by its suffix."""
    with open_bytes(existing_file(path)) as stream:
        return stream.read()


def check_encoding(encoding: str) -> str:
    """Return Python's name for a text encoding, or refuse one that it does not know.

    Examples
    --------
    >>> check_encoding("Latin-1")
    'iso8859-1'
    """
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"there is no encoding {encoding!r}; known are for example utf-8, cp1252 "
            "(Windows), latin-1 and utf-16"
        ) from error
    return name


def marked_encoding(start: bytes, encoding: str) -> str:
    r"""Return utf-16 for a file that starts with its mark, else `encoding`.

    Examples
    --------
    >>> marked_encoding("sun".encode("utf-16"), "utf-8"), marked_encoding(b"s", "utf-8")
    ('utf-16', 'utf-8')
    """
    wide = encoding == "utf-8" and start.startswith(_WIDE_MARKS)
    return "utf-16" if wide else encoding


def not_encoded(where: str, encoding: str, byte: int) -> InputError:
    """Return the error for a byte that the file's encoding does not have."""
    if encoding != "utf-8":
        return InputError(f"{where}: not {encoding} (0x{byte:02x})")
    return InputError(
        f"{where}: not UTF-8 (0x{byte:02x}); if the file has another encoding, set "
        "`encoding` to it, for example cp1252"
    )


def numbered_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    r"""Yield each line of a file with its number, from 1, and its line end.

    A byte-order mark is dropped, and that of UTF-16 is obeyed. Only ``\n`` ends a line;
    Unicode's other separators stay part of the text. The error for a line that is not
    in the encoding names it.
    """
    encoding = check_encoding(encoding)
    with open_bytes(existing_file(path)) as stream:
        start: Any = stream
        encoding = marked_encoding(start.peek(2), encoding)
        if encoding != "utf-8":
            yield from _decoded_lines(path, stream, encoding)
            return
        for number, raw in enumerate(stream, start=1):
            if number == 1:
                raw = raw.removeprefix(_BYTE_ORDER_MARK)
                if b"\0" in raw:
                    raise InputError(
                        f"{path}, line 1: it has zero bytes, as UTF-16 has: set "
                        "`encoding` to utf-16-le or utf-16-be"
                    )
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                where = f"{path}, line {number}, byte {error.start + 1}"
                raise not_encoded(where, encoding, raw[error.start]) from error
            yield number, line


def _decoded_lines(
    path: Path, stream: IO[bytes], encoding: str
) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with io.TextIOWrapper(stream, encoding=encoding, newline="\n") as text:
            for number, line in enumerate(text, start=1):
                yield number, line.removeprefix("\ufeff") if number == 1 else line
    except UnicodeError as error:
        # Text is decoded in blocks, so the position in the line is not known.
        raise InputError(
            f"{path}, line {number + 1} or after it: not {encoding} ({error})"
        ) from error
