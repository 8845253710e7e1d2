"""Folders that can be replaced while others read them.

The folder has ``config.json`` and one folder of files, which it names. A save writes a
new folder beside the old one, then replaces ``config.json`` in one rename: a save that
is killed leaves the old state or the new one.
"""

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

from docsigma._files import (
    atomic_file,
    atomic_folder,
    check_replaceable,
    read_json_object,
    sync,
)
from docsigma.exceptions import InputError

CONFIG = "config.json"
FORMAT = "docsigma-index"
_NAME = re.compile(r"[0-9a-f]{16}")


@contextlib.contextmanager
def new_generation(
    folder: str | os.PathLike[str], config: dict[str, Any], overwrite: bool = True
) -> Iterator[Path]:
    """Yield a folder to fill; it becomes the content of `folder` if the block succeeds.

    `config` may be filled in the block, and is written after it.
    """
    target = Path(folder)
    check_replaceable(target, overwrite)
    name = secrets.token_hex(8)
    if not (target / CONFIG).exists():
        with atomic_folder(target) as whole:
            (whole / name).mkdir()
            yield whole / name
            _sync_files(whole / name)
            _write(whole / CONFIG, name, config)
        return
    if _read(target).get("format") != FORMAT:
        raise InputError(f"{target} is a docsigma folder, but not an index")
    try:
        (target / name).mkdir()
        yield target / name
        _sync_files(target / name)
        _write(target / CONFIG, name, config)
    except BaseException as error:
        shutil.rmtree(target / name, ignore_errors=True)
        if isinstance(error, OSError):
            raise InputError(f"cannot write {target}: {error.strerror}") from error
        raise
    for other in target.iterdir():
        # From the state before, or from a save that was killed.
        if _NAME.fullmatch(other.name) and other.name != name:
            shutil.rmtree(other, ignore_errors=True)


def current_generation(
    folder: str | os.PathLike[str],
) -> tuple[Path, dict[str, Any]]:
    """Return the current folder of files in `folder`, and its configuration."""
    root = Path(folder)
    config = _read(root)
    if config.get("format") != FORMAT:
        raise InputError(
            f"{root / CONFIG} does not describe a docsigma index: "
            "`docsigma index` makes one"
        )
    if config.get("schema_version") != 1:
        raise InputError(
            f"{root / CONFIG} has schema version {config.get('schema_version')}, this "
            "docsigma reads version 1"
        )
    name = str(config.get("files"))
    if not _NAME.fullmatch(name) or not (root / name).is_dir():
        raise InputError(f"{root / CONFIG} is damaged: it names no folder of files")
    return root / name, config


def _read(root: Path) -> dict[str, Any]:
    if not root.is_dir():
        raise InputError(f"there is no index folder {root}")
    return read_json_object(root / CONFIG, f"the index folder {root} has no {CONFIG}")


def _write(path: Path, name: str, config: dict[str, Any]) -> None:
    about = {"format": FORMAT, "schema_version": 1, "files": name, **config}
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def _sync_files(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        sync(path)
