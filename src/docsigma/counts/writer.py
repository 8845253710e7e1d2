"""Writing word counts to disk, block by block."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.lib import format as npy

from docsigma._files import CONFIG, SCHEMA_VERSION, atomic_folder
from docsigma.counts._checks import check_counts
from docsigma.counts.disk import FORMAT
from docsigma.counts.vocabulary import Vocabulary
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import ArrayLike
    from scipy import sparse


# Entries copied at once when counts turn out to need a wider type.
CHUNK = 2**22


class _ArrayFile:
    """A ``.npy`` file of one dimension that grows; its header is written last."""

    def __init__(self, path: Path, dtype: str) -> None:
        self.path = path
        self.dtype = np.dtype(dtype)
        self.length = 0
        self._handle = path.open("w+b")
        self._checksum = hashlib.sha256()
        self._write_header()

    def _write_header(self) -> None:
        # NumPy leaves room for a larger length, so the header's size does not change.
        header = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False}
        npy.write_array_header_1_0(self._handle, {**header, "shape": (self.length,)})

    def append(self, values: ArrayLike) -> None:
        content = np.ascontiguousarray(values, dtype=self.dtype).data
        self._handle.write(content)
        self._checksum.update(content)
        self.length += len(content)

    def widened(self, dtype: str) -> _ArrayFile:
        """Replace this file by one of a wider type with the same numbers."""
        start = self._handle.tell() - self.length * self.dtype.itemsize
        self._handle.close()
        narrow = self.path.rename(self.path.with_suffix(".narrow"))
        wide = _ArrayFile(self.path, dtype)
        with narrow.open("rb") as handle:
            handle.seek(start)
            while len(some := np.fromfile(handle, self.dtype, CHUNK)):
                wide.append(some)
        narrow.unlink()
        return wide

    def finish(self) -> dict[str, Any]:
        """Write the header and close the file; return size and checksum."""
        size = self._handle.tell()
        self._handle.seek(0)
        self._write_header()
        self._handle.close()
        return {"bytes": size, "sha256": self._checksum.hexdigest()}

    def abandon(self) -> None:
        with contextlib.suppress(OSError):
            self._handle.close()


class CountsWriter:
    """Writes counts to a folder, block by block, for :class:`DiskCounts` to read.

    Use it in a ``with`` block. The folder appears when the block succeeds; if it
    fails, nothing is left, and an older folder of that name is kept. Blocks are
    written at once: memory does not grow with the number of documents.

    Parameters
    ----------
    folder : path
    n_features : int
        Number of words, which is the number of columns.
    words : Vocabulary or sequence of str, optional
        Word of each column, saved with the counts.

    Examples
    --------
    >>> import tempfile
    >>> from scipy import sparse
    >>> from docsigma.counts import DiskCounts
    >>> folder = Path(tempfile.mkdtemp()) / "weather"
    >>> with CountsWriter(folder, n_features=2, words=["sun", "rain"]) as writer:
    ...     writer.add(sparse.csr_matrix([[2, 0], [0, 1]]), labels=["good", None])
    ...     writer.add(sparse.csr_matrix([[0, 3]]), labels=["bad"])
    >>> DiskCounts(folder).labels()
    ['good', None, 'bad']
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        n_features: int,
        words: Vocabulary | Sequence[str] | None = None,
    ) -> None:
        self.folder = Path(folder)
        if isinstance(n_features, bool) or not isinstance(n_features, int | np.integer):
            raise InputError(f"`n_features` must be a whole number, got {n_features!r}")
        if not 1 <= n_features < 2**31:
            raise InputError(
                f"`n_features` must be from 1 to {2**31 - 1}, got {n_features}"
            )
        self.n_features = int(n_features)
        if words is not None and not isinstance(words, Vocabulary):
            words = Vocabulary.from_words(words)
        if words is not None and len(words) != self.n_features:
            raise InputError(
                f"`words` has {len(words)} words but `n_features` is {self.n_features}"
            )
        self.vocabulary = words
        self.n_documents = 0
        self._word_totals = np.zeros(self.n_features)
        self._classes: dict[str, int] = {}
        self._given: set[str] | None = None
        self._arrays: dict[str, _ArrayFile] = {}
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
            with self._writing() as folder:
                self._finish(folder)
        except BaseException:
            self._abandon()
            raise
        if self._whole is not None:
            self._whole.__exit__(None, None, None)
        self._whole = self._temporary = None

    def _abandon(self) -> None:
        for array in self._arrays.values():
            array.abandon()
        if self._whole is not None:
            # Not the caller's error: an OSError from elsewhere would be reported as a
            # failure to write this folder.
            error = RuntimeError(f"{self.folder} is abandoned")
            self._whole.__exit__(RuntimeError, error, None)
        self._whole = self._temporary = None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Path]:
        """Yield the folder to write to; an OSError becomes an InputError."""
        if self._temporary is None:
            raise RuntimeError(
                f"{self.folder} is not open: use CountsWriter in a with block, and not "
                "after an error"
            )
        try:
            yield self._temporary
        except OSError as error:
            self._abandon()
            why = error.strerror or str(error)
            raise InputError(f"cannot write {self.folder}: {why}") from error

    def add(
        self,
        counts: sparse.csr_matrix,
        labels: Sequence[str | None] | None = None,
        *,
        ids: Sequence[str] | None = None,
        n_unknown: ArrayLike | None = None,
    ) -> None:
        """Append documents.

        Parameters
        ----------
        counts : sparse matrix, shape (n, n_features)
        labels : sequence of str or None, optional
            Class of each document; None where it has none.
        ids : sequence of str, optional
            Name of each document; given always or never.
        n_unknown : array of n numbers, optional
            Unknown tokens of each document; given always or never.
        """
        block = check_counts(counts)
        n_rows, n_columns = block.shape
        if n_columns != self.n_features:
            raise InputError(
                f"`counts` has {n_columns} columns but `n_features` is "
                f"{self.n_features}"
            )
        unknown = None if n_unknown is None else np.asarray(n_unknown)
        given = {"labels": labels, "ids": ids, "n_unknown": unknown}
        for name, value in given.items():
            if value is not None and len(value) != n_rows:
                raise InputError(
                    f"`counts` has {n_rows} rows but `{name}` has {len(value)}"
                )
        self._check_given({"ids": ids, "n_unknown": unknown})
        with self._writing() as folder:
            self._append_counts(folder, block)
            if unknown is not None:
                self._array(folder, "n_unknown.npy", "<i8").append(unknown)
            codes = [
                -1
                if label is None
                else self._classes.setdefault(str(label), len(self._classes))
                for label in labels or [None] * n_rows
            ]
            self._array(folder, "labels.npy", "<i4").append(codes)
            if ids is not None:
                self._append_ids(folder, ids)
        self.n_documents += n_rows

    def _append_counts(self, folder: Path, block: sparse.csr_matrix) -> None:
        largest = float(block.data.max(initial=0))
        dtype = "|u1" if largest < 2**8 else "<u2" if largest < 2**16 else "<f4"
        data = self._array(folder, "data.npy", dtype)
        if np.dtype(dtype).itemsize > data.dtype.itemsize:
            data = self._arrays["data.npy"] = data.widened(dtype)
        data.append(block.data)
        indices = self._array(folder, "indices.npy", "<i4")
        indptr = self._array(folder, "indptr.npy", "<i8")
        if not self.n_documents:
            indptr.append([0])
        indptr.append(block.indptr[1:].astype(np.int64) + indices.length)
        indices.append(block.indices)
        tokens = np.asarray(block.sum(axis=1, dtype=np.float64)).ravel()
        self._array(folder, "n_tokens.npy", "<f8").append(tokens)
        self._word_totals += np.bincount(
            block.indices, weights=block.data, minlength=self.n_features
        )

    def _append_ids(self, folder: Path, ids: Sequence[str]) -> None:
        names = [str(name).encode("utf-8", "surrogatepass") for name in ids]
        content = self._array(folder, "ids.npy", "|u1")
        indptr = self._array(folder, "ids_indptr.npy", "<i8")
        if not self.n_documents:
            indptr.append([0])
        lengths = np.fromiter(map(len, names), dtype=np.int64, count=len(names))
        indptr.append(np.cumsum(lengths) + content.length)
        content.append(np.frombuffer(b"".join(names), dtype=np.uint8))

    def _array(self, folder: Path, name: str, dtype: str) -> _ArrayFile:
        if name not in self._arrays:
            self._arrays[name] = _ArrayFile(folder / name, dtype)
        return self._arrays[name]

    def _check_given(self, columns: dict[str, Any]) -> None:
        given = {name for name, value in columns.items() if value is not None}
        if self._given is None:
            self._given = given
        for name in sorted(self._given ^ given):
            had, has = "with", "without"
            if name in given:
                had, has = has, had
            raise InputError(
                f"documents 1 to {self.n_documents} were added {had} `{name}`, those "
                f"after them {has}"
            )

    def _finish(self, folder: Path) -> None:
        from docsigma import __version__

        if not self.n_documents:
            raise InputError(f"cannot write {self.folder}: it has no documents")
        if not self._classes:
            self._arrays["labels.npy"].abandon()
            del self._arrays["labels.npy"]
            (folder / "labels.npy").unlink()
        self._array(folder, "word_totals.npy", "<f8").append(self._word_totals)
        nnz = self._arrays["indices.npy"].length
        files = {name: array.finish() for name, array in self._arrays.items()}
        texts: dict[str, Any] = {}
        if self._classes:
            texts["classes.json"] = list(self._classes)
        if self.vocabulary is not None:
            texts["vocabulary.json"] = self.vocabulary.to_dict()
        for name, value in texts.items():
            content = (json.dumps(value, indent=1) + "\n").encode()
            (folder / name).write_bytes(content)
            checksum = hashlib.sha256(content).hexdigest()
            files[name] = {"bytes": len(content), "sha256": checksum}
        state = {
            "format": FORMAT,
            "schema_version": SCHEMA_VERSION,
            "n_documents": self.n_documents,
            "n_features": self.n_features,
            "nnz": nnz,
            "files": files,
            "docsigma_version": __version__,
        }
        (folder / CONFIG).write_text(json.dumps(state, indent=1) + "\n", "utf-8")
