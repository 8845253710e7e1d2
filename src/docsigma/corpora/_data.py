"""The folder of corpora that DOCSIGMA_DATA points to."""

from __future__ import annotations

import os
from pathlib import Path

from docsigma.exceptions import InputError

__all__ = [
    "DATA_VARIABLE",
    "data_files",
    "files_status",
    "missing_files",
    "require_files",
]

DATA_VARIABLE = "DOCSIGMA_DATA"


def _folder(corpus: str) -> Path | None:
    root = os.environ.get(DATA_VARIABLE, "")
    return Path(root).expanduser() / corpus if root else None


def data_files(corpus: str, names: tuple[str, ...]) -> list[Path] | None:
    """Return the files of a corpus folder, or None unless all of them are there."""
    folder = _folder(corpus)
    if folder is None:
        return None
    files = [folder / name for name in names]
    return files if all(file.is_file() for file in files) else None


def missing_files(corpus: str, names: tuple[str, ...]) -> str:
    """Return a phrase that tells how to have the files of a corpus folder."""
    folder = _folder(corpus)
    if folder is None:
        return f"set {DATA_VARIABLE} to the folder that holds {corpus}/"
    missing = [name for name in names if not (folder / name).is_file()]
    return f"{folder} lacks {', '.join(missing)}; {DATA_VARIABLE} names its parent"


def files_status(corpus: str, names: tuple[str, ...]) -> tuple[bool, str]:
    """Return whether the files of a corpus folder are there, and how to have them."""
    there = data_files(corpus, names) is not None
    return there, "at hand" if there else missing_files(corpus, names)


def require_files(corpus: str, names: tuple[str, ...], *, name: str) -> list[Path]:
    """Return the files of a corpus folder, or raise an `InputError` without them."""
    files = data_files(corpus, names)
    if files is None:
        raise InputError(
            f"the corpus `{name}` is not here: {missing_files(corpus, names)}"
        )
    return files
