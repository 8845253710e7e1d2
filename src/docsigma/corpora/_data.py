"""The folder of corpora that DOCSIGMA_DATA points to."""

from __future__ import annotations

import os
from pathlib import Path

from docsigma.exceptions import InputError

DATA_VARIABLE = "DOCSIGMA_DATA"


def _search(corpus: str, names: tuple[str, ...]) -> tuple[list[Path], str]:
    """Return the files of a corpus folder, and how to get them if one is missing."""
    root = os.environ.get(DATA_VARIABLE, "")
    if not root:
        return [], f"set {DATA_VARIABLE} to the folder that holds {corpus}/"
    folder = Path(root).expanduser() / corpus
    missing = [name for name in names if not (folder / name).is_file()]
    lacks = f"{folder} lacks {', '.join(missing)}; {DATA_VARIABLE} names its parent"
    return [folder / name for name in names], lacks if missing else ""


def data_files(corpus: str, names: tuple[str, ...]) -> list[Path] | None:
    """Return the files of a corpus folder, or None if one is missing."""
    files, hint = _search(corpus, names)
    return None if hint else files


def files_status(corpus: str, names: tuple[str, ...]) -> tuple[bool, str]:
    """Return whether the files of a corpus folder are there, and how to get them."""
    _, hint = _search(corpus, names)
    return not hint, hint or "at hand"


def require_files(corpus: str, names: tuple[str, ...], *, name: str) -> list[Path]:
    """Return the files of a corpus folder; raise an InputError if one is missing."""
    files, hint = _search(corpus, names)
    if hint:
        raise InputError(f"the corpus `{name}` is not here: {hint}")
    return files
