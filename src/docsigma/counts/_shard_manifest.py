"""What a folder of counts holds: its ``config.json``, read, checked and written.

A shard is a run of documents as compressed sparse rows: ``00000.indptr`` (int64),
``00000.indices`` (int32) and ``00000.data`` (uint8, uint16 or float32), plain
little-endian numbers without a header.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os

__all__ = [
    "CONFIG",
    "DATA_TYPES",
    "N_TOKENS",
    "N_UNKNOWN",
    "VOCABULARY",
    "WORD_TOTALS",
    "Manifest",
    "Shard",
    "StoredFile",
    "is_counts_folder",
    "shard_file",
]

FORMAT, KIND, SCHEMA_VERSION = "docsigma-counts", "ShardedCounts", 1
CONFIG, VOCABULARY = "config.json", "vocabulary.json"
N_TOKENS, N_UNKNOWN, WORD_TOTALS = "n_tokens", "n_unknown", "word_totals"
DATA_TYPES = {"uint8": "<u1", "uint16": "<u2", "float32": "<f4"}
_BYTES = {"uint8": 1, "uint16": 2, "float32": 4}


@dataclass(frozen=True)
class Shard:
    """Documents that share three files.

    Attributes
    ----------
    rows, nnz : int
        Documents, and counts that are not zero.
    dtype : {"uint8", "uint16", "float32"}
        Type of the counts on disk.
    """

    rows: int
    nnz: int
    dtype: str

    def sizes(self) -> dict[str, int]:
        """Bytes of its files, by the ends of their names."""
        return {
            "indptr": 8 * (self.rows + 1),
            "indices": 4 * self.nnz,
            "data": _BYTES[self.dtype] * self.nnz,
        }


@dataclass(frozen=True)
class StoredFile:
    """Size and checksum of a file.

    Attributes
    ----------
    size : int
        In bytes.
    sha256 : str
    """

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The content of ``config.json``.

    Attributes
    ----------
    n_features, n_tokens : int
    shards : tuple of Shard
    files : dict of StoredFile
        All files but ``config.json``, by name.
    """

    n_features: int
    n_tokens: int
    shards: tuple[Shard, ...]
    files: dict[str, StoredFile]

    @property
    def n_documents(self) -> int:
        """Documents of all shards."""
        return sum(shard.rows for shard in self.shards)

    @property
    def nnz(self) -> int:
        """Counts that are not zero."""
        return sum(shard.nnz for shard in self.shards)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that the folder holds, in hex."""
        state = json.dumps(self._state(), sort_keys=True)
        return hashlib.sha256(state.encode()).hexdigest()

    def _state(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "n_documents": self.n_documents,
            "n_features": self.n_features,
            "n_tokens": self.n_tokens,
            "nnz": self.nnz,
            "vocabulary": VOCABULARY if VOCABULARY in self.files else None,
            "shards": [
                {"rows": shard.rows, "nnz": shard.nnz, "dtype": shard.dtype}
                for shard in self.shards
            ],
            "files": {
                name: {"bytes": file.size, "sha256": file.sha256}
                for name, file in sorted(self.files.items())
            },
        }

    def dump(self) -> str:
        """Return the text of ``config.json``."""
        from docsigma import __version__

        return json.dumps({**self._state(), "docsigma_version": __version__}, indent=1)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the ``config.json`` of a folder and check that its files fit it.

        Raises
        ------
        InputError
            If a file is missing, damaged, of a wrong size, or not ours.
        """
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}")
        source = folder / CONFIG
        state = _load(source)
        if state.get("format") != FORMAT:
            found = state.get("format")
            raise InputError(
                f"{source} does not describe counts: its format is {found!r}, "
                f"not {FORMAT!r}"
            )
        if state.get("schema_version") != SCHEMA_VERSION:
            from docsigma import __version__

            raise InputError(
                f"{source} has schema version {state.get('schema_version')}, this "
                f"docsigma ({__version__}) reads version {SCHEMA_VERSION}"
            )
        try:
            manifest = cls._from_state(state)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{source} is damaged: {error!r}") from error
        for name in ("n_documents", "nnz"):
            if state.get(name) != getattr(manifest, name):
                raise InputError(
                    f"{source} is damaged: `{name}` is {state.get(name)}, but its "
                    f"shards have {getattr(manifest, name)}"
                )
        manifest._check_sizes(source)
        manifest.check_files(folder)
        return manifest

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Manifest:
        shards = tuple(
            Shard(_whole(entry["rows"]), _whole(entry["nnz"]), str(entry["dtype"]))
            for entry in state["shards"]
        )
        for shard in shards:
            if shard.dtype not in DATA_TYPES:
                raise ValueError(f"unknown dtype {shard.dtype}")
        files = {
            str(name): StoredFile(_whole(entry["bytes"]), str(entry["sha256"]))
            for name, entry in state["files"].items()
        }
        for name in files:
            if Path(name).name != name:
                raise ValueError(f"{name} is not a name of a file")
        return cls(
            _whole(state["n_features"]), _whole(state["n_tokens"]), shards, files
        )

    def _check_sizes(self, source: Path) -> None:
        expected = {N_TOKENS: 8 * self.n_documents, WORD_TOTALS: 8 * self.n_features}
        if N_UNKNOWN in self.files:
            expected[N_UNKNOWN] = 8 * self.n_documents
        for number, shard in enumerate(self.shards):
            for end, size in shard.sizes().items():
                expected[shard_file(number, end)] = size
        for name, size in expected.items():
            if name not in self.files:
                raise InputError(f"{source} is damaged: it does not list {name}")
            if self.files[name].size != size:
                raise InputError(
                    f"{source} is damaged: {name} is listed with "
                    f"{self.files[name].size} bytes, its shape needs {size}"
                )

    def check_files(self, folder: Path) -> None:
        """Check that each file is there and has its size."""
        for name, file in self.files.items():
            try:
                size = (folder / name).stat().st_size
            except OSError as error:
                raise InputError(
                    f"{folder} is damaged: it has no {name} ({error.strerror or error})"
                ) from error
            if size != file.size:
                raise InputError(
                    f"{folder / name} is damaged: it has {size} bytes, "
                    f"{CONFIG} says {file.size}"
                )


def shard_file(number: int, end: str) -> str:
    """Name a file of a shard.

    Examples
    --------
    >>> shard_file(7, "indices")
    '00007.indices'
    """
    return f"{number:05d}.{end}"


def is_counts_folder(path: str | os.PathLike[str]) -> bool:
    """Tell whether a folder calls itself one of counts, whole or damaged.

    Examples
    --------
    >>> is_counts_folder("no-such-folder")
    False
    """
    try:
        return _load(Path(path) / CONFIG).get("format") == FORMAT
    except InputError:
        return False


def _load(source: Path) -> dict[str, Any]:
    try:
        state = json.loads(source.read_text("utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            f"{source.parent} is no folder of counts: it has no {source.name}"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{source} is damaged: {error}") from error
    if not isinstance(state, dict):
        raise InputError(f"{source} is damaged: it holds no JSON object")
    return state


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a number of things")
    return value
