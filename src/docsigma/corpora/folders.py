"""Documents from plain text: a folder of files, or a file with one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsigma.corpora._streams import numbered_lines, read_bytes
from docsigma.corpora.documents import Documents
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_folder", "read_lines"]


def read_folder(path: Path, *, labelled: bool = True) -> Documents:
    """Read each file under a folder as one document, sorted by relative path.

    The id is the relative path; the label is the subfolder, the first one where
    they are nested. Hidden files are left out.

    Raises
    ------
    InputError
        If there is no file, one is not UTF-8, or only some have a subfolder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "good").mkdir()
    >>> _ = (folder / "good" / "1.txt").write_text("sun")
    >>> documents = read_folder(folder)
    >>> documents.ids, documents.labels
    (['good/1.txt'], ['good'])
    """
    try:
        files = [file.relative_to(path) for file in path.rglob("*") if file.is_file()]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    names = sorted(name for name in files if not _is_hidden(name))
    if not names:
        raise InputError(f"{path} has no documents: it is a folder without files")
    labels = None
    if labelled and any(len(name.parts) > 1 for name in names):
        beside = next((name for name in names if len(name.parts) == 1), None)
        if beside is not None:
            raise InputError(
                f"{path} has files in subfolders, which are their labels, "
                f"and files beside them, such as {beside}"
            )
        labels = [name.parts[0] for name in names]
    return Documents(
        ids=[name.as_posix() for name in names],
        texts=[_text(path / name) for name in names],
        labels=labels,
        source=str(path),
    )


def read_lines(path: Path) -> Documents:
    r"""Read a ``.txt`` file, one document a line; an empty line is an empty document.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "weather.txt"
    >>> _ = file.write_text("sun\nrain\n")
    >>> documents = read_lines(file)
    >>> documents.ids, documents.texts
    (['1', '2'], ['sun', 'rain'])
    """
    texts = [line.rstrip("\r\n") for _, line in numbered_lines(path)]
    if not any(text.strip() for text in texts):
        raise InputError(f"{path} has no documents")
    ids = [str(number) for number in range(1, len(texts) + 1)]
    return Documents(ids=ids, texts=texts, source=str(path))


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
