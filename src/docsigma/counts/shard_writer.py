"""Word counts written to disk as they come."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from docsigma._files import atomic_folder
from docsigma.counts import _shard_manifest as layout
from docsigma.counts._checks import check_counts
from docsigma.counts.vocabulary import Vocabulary
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import ArrayLike

__all__ = ["ShardWriter"]

# Entries that end a shard before its rows do: 128 MiB of counts in memory.
SHARD_NNZ = 2**24


class ShardWriter:
    """Writes counts to a folder of shards, with one shard in memory at the most.

    Used in a ``with`` block. The folder appears, whole, when the block ends well; if
    it fails nothing is left, and an older folder of that name stays.

    Parameters
    ----------
    folder : path
    n_features : int
        Words, the columns of all counts.
    words : Vocabulary or sequence of str, optional
        The word of each column, kept with the counts.
    shard_rows : int
        Documents a shard; long documents make shards of fewer.

    Raises
    ------
    InputError
        If an argument is not valid or the folder cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from docsigma.counts.sharded_counts import ShardedCounts
    >>> folder = Path(tempfile.mkdtemp()) / "weather"
    >>> with ShardWriter(folder, n_features=2, words=["sun", "rain"]) as writer:
    ...     writer.add(sparse.csr_matrix([[2, 0], [0, 1]]), labels=["good", "bad"])
    ...     writer.add(sparse.csr_matrix([[0, 3]]), labels=["bad"])
    >>> ShardedCounts.open(folder)
    ShardedCounts(3 documents x 2 words, 1 shard)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        n_features: int,
        words: Vocabulary | Sequence[str] | None = None,
        shard_rows: int = 65536,
    ) -> None:
        self.folder = Path(folder)
        self.n_features = _at_least_one(n_features, "n_features")
        self.shard_rows = _at_least_one(shard_rows, "shard_rows")
        self.vocabulary = _vocabulary(words)
        if self.vocabulary is not None and len(self.vocabulary) != self.n_features:
            raise InputError(
                f"`words` has {len(self.vocabulary)} words but `n_features` is "
                f"{self.n_features}"
            )
        self.n_documents = 0
        self.n_tokens = 0
        self._word_totals = np.zeros(self.n_features)
        self._shards: list[layout.Shard] = []
        self._sizes: dict[str, int] = {}
        self._checksums: dict[str, Any] = {}
        self._pieces: list[sparse.csr_matrix] = []
        self._rows = 0
        self._nnz = 0
        self._columns: dict[str, list[Any]] = {}
        self._given: set[str] | None = None
        self._whole: AbstractContextManager[Path] | None = None
        self._temporary: Path | None = None

    def __enter__(self) -> Self:
        self._whole = atomic_folder(self.folder)
        self._temporary = self._whole.__enter__()
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if kind is not None:
            self._abandon()
            return
        try:
            self._finish()
        except BaseException:
            self._abandon()
            raise
        if self._whole is not None:
            self._whole.__exit__(None, None, None)
        self._whole = self._temporary = None

    def _abandon(self) -> None:
        if self._whole is not None:
            # Not the caller's error: one of the operating system that has nothing to
            # do with this folder would be told as if it had.
            error = RuntimeError(f"{self.folder} is abandoned")
            self._whole.__exit__(RuntimeError, error, None)
        self._whole = self._temporary = None

    def add(
        self,
        counts: sparse.csr_matrix,
        labels: Sequence[str] | None = None,
        *,
        ids: Sequence[str] | None = None,
        n_unknown: ArrayLike | None = None,
    ) -> None:
        """Append documents.

        Parameters
        ----------
        counts : sparse matrix, shape (n, n_features)
        labels, ids : sequence of str, optional
            Class and name of each document; given always or never.
        n_unknown : array of n numbers, optional
            Tokens of each document that are none of the words; given always or never.

        Raises
        ------
        InputError
            If the counts are no counts or do not fit, or the disk is full.
        """
        block = check_counts(counts)
        n_rows, n_columns = block.shape
        if n_columns != self.n_features:
            raise InputError(
                f"`counts` has {n_columns} columns but `n_features` is "
                f"{self.n_features}"
            )
        unknown = None if n_unknown is None else np.asarray(n_unknown, "<f8")
        columns: dict[str, Any] = {"labels": labels, "ids": ids, "n_unknown": unknown}
        columns = {name: value for name, value in columns.items() if value is not None}
        self._check_columns(columns, n_rows)
        start = 0
        while start < n_rows:
            stop = self._room(block, start)
            if stop > start:
                piece = sparse.csr_matrix(block[start:stop])
                self._pieces.append(piece)
                self._rows += stop - start
                self._nnz += piece.nnz
                for name, value in columns.items():
                    self._columns.setdefault(name, []).extend(value[start:stop])
                start = stop
            if stop < n_rows or self._rows == self.shard_rows:
                self._flush()

    def _check_columns(self, columns: dict[str, Any], n_rows: int) -> None:
        if self._given is None:
            self._given = set(columns)
        for name in sorted(self._given ^ set(columns)):
            had, has = (
                ("with", "without") if name in self._given else ("without", "with")
            )
            raise InputError(
                f"documents 1 to {self.n_documents + self._rows} were added {had} "
                f"`{name}`, those after them {has}"
            )
        for name, value in columns.items():
            if len(value) != n_rows:
                raise InputError(
                    f"`counts` has {n_rows} rows but `{name}` has {len(value)}"
                )

    def _room(self, block: sparse.csr_matrix, start: int) -> int:
        """Give the row of `block` up to which it fits the shard under way."""
        most = int(block.indptr[start]) + SHARD_NNZ - self._nnz
        by_nnz = int(np.searchsorted(block.indptr, most, side="right")) - 1
        stop = min(start + self.shard_rows - self._rows, by_nnz)
        # One document always fits an empty shard.
        return max(stop, start if self._rows else start + 1)

    def _flush(self) -> None:
        counts = sparse.csr_matrix(sparse.vstack(self._pieces, format="csr"))
        self._pieces = []
        tokens = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
        largest = float(counts.data.max(initial=0))
        dtype = (
            "uint8" if largest < 2**8 else "uint16" if largest < 2**16 else "float32"
        )
        number = len(self._shards)
        arrays = {
            "indptr": counts.indptr.astype("<i8"),
            "indices": counts.indices.astype("<i4"),
            "data": counts.data.astype(layout.DATA_TYPES[dtype]),
        }
        for end, array in arrays.items():
            self._append(layout.shard_file(number, end), array.tobytes())
        for name in ("labels", "ids"):
            if name in self._columns:
                strings = json.dumps([str(value) for value in self._columns[name]])
                file = layout.shard_file(number, f"{name}.json")
                self._append(file, strings.encode())
        self._append(layout.N_TOKENS, tokens.astype("<f8").tobytes())
        if "n_unknown" in self._columns:
            unknown = np.asarray(self._columns["n_unknown"], dtype="<f8")
            self._append(layout.N_UNKNOWN, unknown.tobytes())
        self._shards.append(layout.Shard(self._rows, self._nnz, dtype))
        self._word_totals += np.bincount(
            counts.indices, weights=counts.data, minlength=self.n_features
        )
        self.n_documents += self._rows
        self.n_tokens += int(tokens.sum())
        self._columns = {}
        self._rows = self._nnz = 0

    def _finish(self) -> None:
        if self._rows:
            self._flush()
        if not self._shards:
            raise InputError(f"cannot write {self.folder}: it has no documents")
        self._append(layout.WORD_TOTALS, self._word_totals.astype("<f8").tobytes())
        if self.vocabulary is not None:
            text = json.dumps(self.vocabulary.to_dict(), indent=1) + "\n"
            self._append(layout.VOCABULARY, text.encode())
        files = {
            name: layout.StoredFile(size, self._checksums[name].hexdigest())
            for name, size in self._sizes.items()
        }
        manifest = layout.Manifest(
            self.n_features, self.n_tokens, tuple(self._shards), files
        )
        self._append(layout.CONFIG, manifest.dump().encode())

    def _append(self, name: str, content: bytes) -> None:
        if self._temporary is None:
            raise RuntimeError(
                f"{self.folder} is not open: use ShardWriter in a with block, and no "
                "more after an error"
            )
        try:
            with (self._temporary / name).open("ab") as handle:
                handle.write(content)
        except OSError as error:
            self._abandon()
            why = error.strerror or str(error)
            raise InputError(f"cannot write {self.folder}: {why}") from error
        self._sizes[name] = self._sizes.get(name, 0) + len(content)
        self._checksums.setdefault(name, hashlib.sha256()).update(content)


def _vocabulary(words: Vocabulary | Sequence[str] | None) -> Vocabulary | None:
    if words is None or isinstance(words, Vocabulary):
        return words
    return Vocabulary.from_words(words)


def _at_least_one(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"`{name}` must be a whole number, got {value!r}")
    if not 1 <= value < 2**31:
        raise InputError(f"`{name}` must be from 1 to {2**31 - 1}, got {value}")
    return int(value)
