"""Writing files so that a reader never sees an incomplete one."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docsigma.exceptions import InputError

CONFIG = "config.json"
# Cells that begin so are formulas to spreadsheets.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
SCHEMA_VERSION = 1


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def harmless_cell(value: Any) -> Any:
    """Return a cell of a .csv that no spreadsheet reads as a formula; numbers stay.

    Examples
    --------
    >>> harmless_cell("=1+1"), harmless_cell("-3"), harmless_cell("sun")
    ("'=1+1", '-3', 'sun')
    """
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


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


def read_config(folder: Path, form: str) -> dict[str, Any]:
    """Read config.json of a folder of the format `form`: docsigma-model, ..."""
    kind, path = form.removeprefix("docsigma-"), folder / CONFIG
    if not folder.is_dir():
        raise InputError(f"there is no {kind} folder {folder}")
    config = read_json_object(path, f"the {kind} folder {folder} has no {CONFIG}")
    if config.get("format") != form:
        raise InputError(
            f"{path} does not describe a docsigma {kind} folder: its format is "
            f"{config.get('format')!r}, not {form!r}"
        )
    check_schema(path, config)
    return config


def check_schema(source: Path, config: Mapping[str, Any]) -> None:
    """Refuse what another schema version wrote."""
    version = config.get("schema_version")
    if version != SCHEMA_VERSION:
        raise InputError(
            f"{source} has schema version {version}, this docsigma reads version "
            f"{SCHEMA_VERSION}"
        )


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
    if occupied and not (folder / CONFIG).is_file():
        raise InputError(
            f"cannot write the folder {folder}: it exists and is not a docsigma "
            f"folder (it has no {CONFIG})"
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
