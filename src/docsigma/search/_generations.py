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
    CONFIG,
    SCHEMA_VERSION,
    atomic_file,
    atomic_folder,
    check_replaceable,
    read_config,
    read_json_object,
    sync,
)
from docsigma.exceptions import InputError

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
    if read_json_object(target / CONFIG, "").get("format") != FORMAT:
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
    config = read_config(root, FORMAT)
    name = str(config.get("files"))
    if not _NAME.fullmatch(name) or not (root / name).is_dir():
        raise InputError(f"{root / CONFIG} is damaged: it names no folder of files")
    return root / name, config


def _write(path: Path, name: str, config: dict[str, Any]) -> None:
    about = {"format": FORMAT, "schema_version": SCHEMA_VERSION, "files": name}
    about |= config
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def _sync_files(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        sync(path)
