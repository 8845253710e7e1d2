"""Writing files so that a reader never sees an incomplete one."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docsigma.exceptions import InputError


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def sync(path: Path) -> None:
    """Flush `path` to the disk, so that a full disk is noticed before the rename."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _temporary(path: Path) -> Path:
    # The name keeps the suffix: writers choose a format by it.
    return path.with_name(f".{path.stem}.{secrets.token_hex(4)}.tmp{path.suffix}")


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove temporary files that a killed :func:`atomic_file` of `path` left.

    Call it only for a file that no other process is writing.
    """
    target = Path(path)
    # Exactly the names that _temporary makes.
    stem, suffix = re.escape(target.stem), re.escape(target.suffix)
    ours = re.compile(rf"\.{stem}\.[0-9a-f]{{8}}\.tmp{suffix}")
    # One that cannot be removed does no harm.
    with contextlib.suppress(OSError):
        for file in target.parent.iterdir():
            if ours.fullmatch(file.name) and file.is_file() and not file.is_symlink():
                file.unlink()


def read_json_object(path: Path, missing: str) -> dict[str, Any]:
    """Read a JSON object from a file; `missing` is the error if there is no file."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise InputError(missing) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} is damaged: it is not a JSON object")
    return value


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path that becomes `path` when the block succeeds.

    If it fails, the temporary file is removed and an older `path` is left unchanged.
    An OSError (no such folder, no permission, disk full) becomes an InputError.
    """
    target = Path(path)
    temporary = _temporary(target)
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder")
    try:
        yield temporary
        sync(temporary)
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {_why(error)}") from error
    finally:
        temporary.unlink(missing_ok=True)


def check_replaceable(folder: Path, overwrite: bool = True) -> None:
    """Refuse to replace a file, or a folder that docsigma did not write.

    Without `overwrite`, refuse any folder that is not empty.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"cannot write the folder {folder}: a file has that name")
    occupied = folder.is_dir() and any(folder.iterdir())
    if occupied and not (folder / "config.json").is_file():
        raise InputError(
            f"cannot write the folder {folder}: it exists and is not a docsigma "
            "folder (it has no config.json)"
        )
    if occupied and not overwrite:
        raise InputError(
            f"{folder} exists already: pass `overwrite=True` to replace it"
        )


@contextlib.contextmanager
def atomic_folder(
    path: str | os.PathLike[str], overwrite: bool = True
) -> Iterator[Path]:
    """Yield a temporary folder that becomes `path` when the block succeeds.

    An older folder at `path` is moved aside, replaced, and only then removed, so that
    one complete folder exists at any time. See also :func:`check_replaceable`.
    """
    target = Path(path)
    temporary = _temporary(target)
    retired = temporary.with_name(temporary.name + ".old")
    check_replaceable(target, overwrite)
    try:
        temporary.mkdir()
        yield temporary
        for file in temporary.iterdir():
            sync(file)
        if target.is_dir():
            target.rename(retired)
        temporary.rename(target)
    except OSError as error:
        if retired.is_dir() and not target.exists():
            retired.rename(target)
        raise InputError(f"cannot write {target}: {_why(error)}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(retired, ignore_errors=True)
