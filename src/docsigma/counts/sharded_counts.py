"""Word counts that stay on disk and are read a few documents at a time."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from docsigma.counts import _shard_manifest as layout
from docsigma.counts._base import Counts
from docsigma.counts.vocabulary import Vocabulary
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Rows = slice | NDArray[np.int64]

__all__ = ["ShardedCounts"]


class ShardedCounts(Counts):
    """Counts in a folder that :class:`ShardWriter` wrote, documents in rows.

    Nothing but the description of the folder is kept in memory, and `n_tokens` and
    such once they are asked for. Files are mapped while documents are read and
    let go at once, so the memory does not grow with the corpus.

    Examples
    --------
    >>> import tempfile
    >>> from docsigma.counts.shard_writer import ShardWriter
    >>> folder = Path(tempfile.mkdtemp()) / "weather"
    >>> with ShardWriter(folder, n_features=2) as writer:
    ...     writer.add(sparse.csr_matrix([[2, 0], [0, 1], [4, 4]]))
    >>> counts = ShardedCounts.open(folder)
    >>> counts.shape, counts.nnz
    ((3, 2), 4)
    >>> counts[1:].toarray()
    array([[0., 1.],
           [4., 4.]], dtype=float32)
    >>> counts[[2, 0]].toarray()
    array([[4., 4.],
           [2., 0.]], dtype=float32)
    >>> counts.n_tokens, counts.word_totals
    (array([2., 1., 8.]), array([6., 5.]))
    """

    in_memory = False
    dtype = np.dtype(np.float32)

    def __init__(self, folder: Path, manifest: layout.Manifest) -> None:
        self.folder = folder
        self._manifest = manifest
        rows = [shard.rows for shard in manifest.shards]
        # The first row of each shard, and the end.
        self._starts = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> ShardedCounts:
        """Open a folder; reads its description and checks its files' sizes.

        Raises
        ------
        InputError
            If a file is missing, damaged, of a wrong size, of a newer version, or
            not ours.
        """
        path = Path(folder)
        return cls(path, layout.Manifest.read(path))

    @property
    def n_documents(self) -> int:
        """Documents, the rows."""
        return int(self._starts[-1])

    @property
    def n_features(self) -> int:
        """Words, the columns."""
        return self._manifest.n_features

    @property
    def shape(self) -> tuple[int, int]:
        """Documents and words."""
        return self.n_documents, self.n_features

    @property
    def nnz(self) -> int:
        """Counts that are not zero."""
        return self._manifest.nnz

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self._manifest.files.values())

    @property
    def n_shards(self) -> int:
        """Shards."""
        return len(self._manifest.shards)

    @property
    def digest(self) -> str:
        """SHA-256 of all that the folder holds, in hex; reads no counts."""
        return self._manifest.digest

    @cached_property
    def n_tokens(self) -> NDArray[np.float64]:
        """Tokens of each document."""
        return self._vector(layout.N_TOKENS)

    @cached_property
    def n_unknown(self) -> NDArray[np.float64] | None:
        """Tokens of each document that are none of the words, if known."""
        if layout.N_UNKNOWN not in self._manifest.files:
            return None
        return self._vector(layout.N_UNKNOWN)

    @cached_property
    def word_totals(self) -> NDArray[np.float64]:
        """Tokens of each word."""
        return self._vector(layout.WORD_TOTALS)

    @cached_property
    def labels(self) -> list[str] | None:
        """Class of each document, if known."""
        if layout.shard_file(0, "labels.json") not in self._manifest.files:
            return None
        # Each class is one string, however many documents have it.
        classes: dict[str, str] = {}
        return [
            classes.setdefault(label, label)
            for number in range(self.n_shards)
            for label in self._strings(number, "labels")
        ]

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The words of the columns, if known."""
        if layout.VOCABULARY not in self._manifest.files:
            return None
        vocabulary = Vocabulary.from_dict(self._json(layout.VOCABULARY))
        if len(vocabulary) != self.n_features:
            raise InputError(
                f"{self.folder / layout.VOCABULARY} has {len(vocabulary)} words, but "
                f"the counts have {self.n_features} columns"
            )
        return vocabulary

    def __len__(self) -> int:
        return self.n_documents

    def __repr__(self) -> str:
        plural = "" if self.n_shards == 1 else "s"
        return (
            f"ShardedCounts({self.n_documents} documents x {self.n_features} words, "
            f"{self.n_shards} shard{plural})"
        )

    def __getitem__(
        self, rows: slice | Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]
    ) -> sparse.csr_matrix:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_documents)
            if step == 1:
                return self._read(self._split_range(start, max(start, stop)))
            wanted = np.arange(start, stop, step)
        else:
            wanted = self._row_numbers(rows)
        if np.all(wanted[:-1] <= wanted[1:]):
            return self._read(self._split_rows(wanted))
        order = np.argsort(wanted, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        found = self._read(self._split_rows(wanted[order]))[place]
        found.has_canonical_format = True
        return found

    def ids(self, rows: slice = slice(None)) -> list[str]:
        """Names of documents; without names their numbers, from 1."""
        start, stop, step = rows.indices(self.n_documents)
        if step != 1:
            raise InputError(f"`rows` must be a slice of step 1, got step {step}")
        if layout.shard_file(0, "ids.json") not in self._manifest.files:
            return [str(number) for number in range(start + 1, stop + 1)]
        found: list[str] = []
        for number, part in self._split_range(start, max(start, stop)):
            found += self._strings(number, "ids")[part]
        return found

    def verify(self) -> None:
        """Read every file and compare its checksum.

        Raises
        ------
        InputError
            If a file is not the one that was written.
        """
        self._manifest.check_files(self.folder)
        for name, file in self._manifest.files.items():
            with (self.folder / name).open("rb") as handle:
                found = hashlib.file_digest(handle, "sha256").hexdigest()
            if found != file.sha256:
                raise InputError(
                    f"{self.folder / name} is damaged: its checksum is {found:.8}..., "
                    f"{layout.CONFIG} says {file.sha256:.8}..."
                )

    def _row_numbers(self, rows: Any) -> NDArray[np.int64]:
        wanted = np.asarray(rows)
        n = self.n_documents
        if wanted.size == 0:
            return np.empty(0, dtype=np.int64)
        if wanted.ndim != 1 or wanted.dtype.kind not in "iub":
            raise TypeError(
                "counts are taken by a slice, whole numbers or a mask, "
                f"got {rows!r:.80}; for one document use [i:i + 1]"
            )
        if wanted.dtype.kind == "b":
            if len(wanted) != n:
                raise IndexError(f"the mask has {len(wanted)} entries for {n} rows")
            return np.flatnonzero(wanted)
        wanted = wanted.astype(np.int64)
        low, high = int(wanted.min()), int(wanted.max())
        if low < -n or high >= n:
            wrong = low if low < -n else high
            raise IndexError(f"there is no row {wrong} in {n} rows")
        return np.where(wanted < 0, wanted + n, wanted)

    def _split_range(self, start: int, stop: int) -> list[tuple[int, slice]]:
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        parts = []
        for number in range(first, self.n_shards):
            begin, end = int(self._starts[number]), int(self._starts[number + 1])
            if begin >= stop:
                break
            parts.append(
                (number, slice(max(start, begin) - begin, min(stop, end) - begin))
            )
        return parts

    def _split_rows(
        self, rows: NDArray[np.int64]
    ) -> list[tuple[int, NDArray[np.int64]]]:
        bounds = np.searchsorted(rows, self._starts)
        return [
            (number, rows[begin:end] - self._starts[number])
            for number, (begin, end) in enumerate(pairwise(bounds))
            if begin < end
        ]

    def _read(self, parts: Sequence[tuple[int, Rows]]) -> sparse.csr_matrix:
        """Read rows of shards, in the order of the disk."""
        extents = [self._extents(number, rows) for number, rows in parts]
        lengths = [length for _, length in extents]
        indptr = np.concatenate([np.zeros(1, np.int64), *lengths]).cumsum()
        nnz = int(indptr[-1])
        indices = np.empty(nnz, dtype=np.int32)
        data = np.empty(nnz, dtype=np.float32)
        filled = 0
        for (number, rows), (starts, length) in zip(parts, extents, strict=True):
            size = int(length.sum())
            if isinstance(rows, slice):
                first = int(starts[0]) if len(starts) else 0
                where: Rows = slice(first, first + size)
            else:
                shift = starts - (np.cumsum(length) - length)
                where = np.repeat(shift, length) + np.arange(size)
            into = slice(filled, filled + size)
            shard = self._manifest.shards[number]
            indices[into] = self._map(number, "indices", "<i4", shard.nnz)[where]
            dtype = layout.DATA_TYPES[shard.dtype]
            data[into] = self._map(number, "data", dtype, shard.nnz)[where]
            self._check_indices(number, indices[into])
            filled += size
        if nnz < 2**31:
            indptr = indptr.astype(np.int32)
        shape = (len(indptr) - 1, self.n_features)
        counts = sparse.csr_matrix((data, indices, indptr), shape=shape, copy=False)
        counts.has_canonical_format = True
        return counts

    def _extents(
        self, number: int, rows: Rows
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give where rows of a shard start and how many entries they have."""
        shard = self._manifest.shards[number]
        pointers = self._map(number, "indptr", "<i8", shard.rows + 1)
        starts = np.array(pointers[:-1][rows], dtype=np.int64)
        lengths = np.array(pointers[1:][rows], dtype=np.int64) - starts
        bad = (lengths < 0) | (starts < 0) | (starts + lengths > shard.nnz)
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(
                f"{self.folder / layout.shard_file(number, 'indptr')} is damaged: a "
                f"document has the entries {starts[at]} to {starts[at] + lengths[at]} "
                f"of {shard.nnz}"
            )
        return starts, lengths

    def _check_indices(self, number: int, indices: NDArray[np.int32]) -> None:
        # A column out of range would be memory out of range in compiled code.
        if len(indices) == 0:
            return
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= self.n_features:
            raise InputError(
                f"{self.folder / layout.shard_file(number, 'indices')} is damaged: it "
                f"has column {low if low < 0 else high} of {self.n_features}"
            )

    def _map(self, number: int, end: str, dtype: str, size: int) -> NDArray[Any]:
        """Map a file for as long as the caller holds the array."""
        if size == 0:
            return np.empty(0, dtype=dtype)
        path = self.folder / layout.shard_file(number, end)
        try:
            with path.open("rb") as handle:
                n_bytes = size * np.dtype(dtype).itemsize
                mapped = mmap(handle.fileno(), n_bytes, access=ACCESS_READ)
        except (OSError, ValueError) as error:
            self._manifest.check_files(self.folder)
            raise InputError(f"cannot read {path}: {error}") from error
        return np.frombuffer(mapped, dtype=dtype)

    def _vector(self, name: str) -> NDArray[np.float64]:
        self._manifest.check_files(self.folder)
        # Not read-only: torch warns of arrays that it could not write to.
        return np.fromfile(self.folder / name, dtype="<f8").astype(np.float64)

    def _strings(self, number: int, what: str) -> list[str]:
        name = layout.shard_file(number, f"{what}.json")
        strings = self._json(name)
        n_rows = self._manifest.shards[number].rows
        if not isinstance(strings, list) or len(strings) != n_rows:
            found = len(strings) if isinstance(strings, list) else "no"
            raise InputError(
                f"{self.folder / name} is damaged: it has {found} {what} for "
                f"{n_rows} documents"
            )
        return strings

    def _json(self, name: str) -> Any:
        try:
            return json.loads((self.folder / name).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{self.folder / name} is damaged: {error}") from error
