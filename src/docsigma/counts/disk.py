"""Word counts on disk, read a few documents at a time."""

from __future__ import annotations

import hashlib
import json
import mmap
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from docsigma._files import CONFIG, read_config, read_json_object
from docsigma.counts._base import BLOCK, Counts
from docsigma.counts._checks import row_numbers
from docsigma.counts.vocabulary import Vocabulary
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray


FORMAT = "docsigma-counts"
# Types that each array may have; counts have the smallest that fits.
DTYPES = {
    "indptr.npy": ("int64",),
    "indices.npy": ("int32",),
    "data.npy": ("uint8", "uint16", "float32"),
    "n_tokens.npy": ("float64",),
    "word_totals.npy": ("float64",),
    "n_unknown.npy": ("int64",),
    "labels.npy": ("int32",),
    "ids.npy": ("uint8",),
    "ids_indptr.npy": ("int64",),
}
REQUIRED = ("indptr.npy", "indices.npy", "data.npy", "n_tokens.npy", "word_totals.npy")
# Documents read at once that are not adjacent: each of them maps pages of its own.
SCATTERED = 256


class DiskCounts(Counts):
    """Counts in a folder that :class:`CountsWriter` wrote, documents in rows.

    The folder has the three arrays of a CSR matrix as ``.npy`` files. They are mapped
    while documents are read and released right after, so memory does not grow with
    the corpus, except by properties such as `n_tokens` once they have been used.

    Parameters
    ----------
    folder : path
        Sizes and types of its files are checked, which reads no counts.

    Examples
    --------
    >>> import tempfile
    >>> from docsigma.counts import CountsWriter
    >>> folder = Path(tempfile.mkdtemp()) / "weather"
    >>> with CountsWriter(folder, n_features=2) as writer:
    ...     writer.add(sparse.csr_matrix([[2, 0], [0, 1], [4, 4]]))
    >>> counts = DiskCounts(folder)
    >>> counts
    DiskCounts(3 documents x 2 words)
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

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        source, state = self.folder / CONFIG, read_config(self.folder, FORMAT)
        try:
            self._files = {
                str(name): (_whole(entry["bytes"]), str(entry["sha256"]))
                for name, entry in state["files"].items()
            }
            self.n_documents = _whole(state["n_documents"])
            self.n_features = _whole(state["n_features"])
            self.nnz = _whole(state["nnz"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{source} is damaged: {error!r}") from error
        for name in (*REQUIRED, *self._files):
            if name not in self._files or Path(name).name != name:
                raise InputError(
                    f"{source} is damaged: it lists {', '.join(self._files) or 'none'}"
                    f" as its files, {name} must be one of them and without folder"
                )
        self._check_sizes()
        self._check_headers()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of documents, number of words."""
        return self.n_documents, self.n_features

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return sum(size for size, _ in self._files.values())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the files' checksums, in hex; reads no counts."""
        return hashlib.sha256(repr(sorted(self._files.items())).encode()).hexdigest()

    @cached_property
    def n_tokens(self) -> NDArray[np.float64]:
        """Tokens of each document."""
        return np.array(self._open("n_tokens.npy"))

    @cached_property
    def word_totals(self) -> NDArray[np.float64]:
        """Tokens of each word."""
        return np.array(self._open("word_totals.npy"))

    @cached_property
    def n_unknown(self) -> NDArray[np.int64]:
        """Unknown tokens of each document; 0 if they were not saved."""
        if "n_unknown.npy" not in self._files:
            return np.zeros(self.n_documents, dtype=np.int64)
        return np.array(self._open("n_unknown.npy"))

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The words of the columns, if known."""
        if "vocabulary.json" not in self._files:
            return None
        vocabulary = Vocabulary.from_dict(self._json("vocabulary.json"))
        if len(vocabulary) != self.n_features:
            raise InputError(
                f"{self.folder / 'vocabulary.json'} has {len(vocabulary)} words, but "
                f"the counts have {self.n_features} columns"
            )
        return vocabulary

    @cached_property
    def classes(self) -> list[str]:
        """The labels that occur, in order of their first document."""
        if "classes.json" not in self._files:
            return []
        classes = self._json("classes.json")
        if not isinstance(classes, list):
            raise InputError(f"{self.folder / 'classes.json'} is damaged: no list")
        return [str(name) for name in classes]

    @cached_property
    def label_codes(self) -> NDArray[np.int32]:
        """The index in `classes` of each document's label, -1 if it has none."""
        if "labels.npy" not in self._files:
            return np.full(self.n_documents, -1, dtype=np.int32)
        codes = np.array(self._open("labels.npy"))
        low, high = int(codes.min(initial=-1)), int(codes.max(initial=-1))
        if low < -1 or high >= len(self.classes):
            raise InputError(
                f"{self.folder / 'labels.npy'} is damaged: it has label "
                f"{low if low < -1 else high} of {len(self.classes)}"
            )
        return codes

    def labels(self, rows: Any = slice(None)) -> list[str | None] | None:
        """Return labels, None where there is none; None if no document has one."""
        if not self.classes:
            return None
        names = [*self.classes, None]  # -1 is the last
        return [names[code] for code in self.label_codes[rows].tolist()]

    def ids(self, rows: Any = slice(None)) -> list[str]:
        """Return the ids of documents; by default their numbers, from 1."""
        numbers = row_numbers(rows, len(self), "counts")
        if "ids.npy" not in self._files:
            return [str(number + 1) for number in numbers.tolist()]
        names = self._open("ids.npy")
        starts, lengths = self._extents("ids_indptr.npy", len(names), numbers)
        found = []
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            name = names[start : start + length].tobytes()
            found.append(name.decode("utf-8", "surrogatepass"))
        return found

    def __repr__(self) -> str:
        return f"DiskCounts({self.n_documents} documents x {self.n_features} words)"

    def __getitem__(
        self, rows: slice | Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]
    ) -> sparse.csr_matrix:
        wanted = row_numbers(rows, len(self), "counts")
        if np.all(wanted[:-1] <= wanted[1:]):
            return self._read(wanted)
        order = np.argsort(wanted, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        found = self._read(wanted[order])[place]
        found.has_canonical_format = True
        return found

    def verify(self) -> None:
        """Read every file and check its checksum."""
        self._check_sizes()
        for name, (_, expected) in self._files.items():
            found = hashlib.sha256()
            with (self.folder / name).open("rb") as handle:
                if name.endswith(".npy"):
                    # The header is written last and not part of the checksum.
                    handle.seek(self._open(name).offset)
                while chunk := handle.read(2**24):
                    found.update(chunk)
            if found.hexdigest() != expected:
                raise InputError(
                    f"{self.folder / name} is damaged: its checksum is "
                    f"{found.hexdigest():.8}..., {CONFIG} says {expected:.8}..."
                )

    def _read(self, rows: NDArray[np.int64]) -> sparse.csr_matrix:
        """Read rows that are sorted."""
        starts, lengths = self._extents("indptr.npy", self.nnz, rows)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        nnz = int(indptr[-1])
        indices = np.empty(nnz, dtype=np.int32)
        data = np.empty(nnz, dtype=np.float32)
        columns, values = self._open("indices.npy"), self._open("data.npy")
        for some in _pieces(rows):
            into = slice(indptr[some.start], indptr[some.stop])
            if _is_contiguous(rows[some]):
                first = int(starts[some.start])
                where: Any = slice(first, first + into.stop - into.start)
            else:
                shift = starts[some] - indptr[some]
                where = np.repeat(shift, lengths[some])
                where += np.arange(into.start, into.stop)
            indices[into], data[into] = columns[where], values[where]
            self._check_indices(indices[into])
            _release(columns, values)
        if nnz < 2**31:
            indptr = indptr.astype(np.int32)
        shape = (len(rows), self.n_features)
        counts = sparse.csr_matrix((data, indices, indptr), shape=shape, copy=False)
        counts.has_canonical_format = True
        return counts

    def _extents(
        self, pointers: str, size: int, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where rows start among `size` entries, and their lengths."""
        bounds = self._open(pointers)
        starts, ends = np.empty_like(rows), np.empty_like(rows)
        for some in _pieces(rows):
            if _is_contiguous(rows[some]):
                first = int(rows[some.start])
                both = bounds[first : first + some.stop - some.start + 1]
                starts[some], ends[some] = both[:-1], both[1:]
            else:
                starts[some], ends[some] = bounds[rows[some]], bounds[rows[some] + 1]
            _release(bounds)
        bad = (starts < 0) | (ends < starts) | (ends > size)
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(
                f"{self.folder / pointers} is damaged: a document has the entries "
                f"{starts[at]} to {ends[at]} of {size}"
            )
        return starts, ends - starts

    def _check_indices(self, indices: NDArray[np.int32]) -> None:
        # Compiled code would read out of bounds for such a column.
        low, high = int(indices.min(initial=0)), int(indices.max(initial=0))
        if low < 0 or high >= self.n_features:
            raise InputError(
                f"{self.folder / 'indices.npy'} is damaged: it has column "
                f"{low if low < 0 else high} of {self.n_features}"
            )

    def _open(self, name: str) -> np.memmap[Any, Any]:
        """Map an array for as long as the caller holds it."""
        try:
            array: np.memmap[Any, Any] = np.load(self.folder / name, mmap_mode="r")
        except (OSError, ValueError, EOFError) as error:
            self._check_sizes()
            raise InputError(f"{self.folder / name} is damaged: {error}") from error
        return array

    def _check_sizes(self) -> None:
        """Check that each file exists and has its size."""
        for name, (expected, _) in self._files.items():
            try:
                size = (self.folder / name).stat().st_size
            except OSError as error:
                raise InputError(
                    f"{self.folder} is damaged: it has no {name} "
                    f"({error.strerror or error})"
                ) from error
            if size != expected:
                raise InputError(
                    f"{self.folder / name} is damaged: it has {size} bytes, "
                    f"{CONFIG} says {expected}"
                )

    def _check_headers(self) -> None:
        """Check the type and the length of each array."""
        n = self.n_documents
        lengths = {"indptr.npy": n + 1, "indices.npy": self.nnz, "data.npy": self.nnz}
        lengths |= {"word_totals.npy": self.n_features, "ids_indptr.npy": n + 1}
        for name, dtypes in DTYPES.items():
            if name not in self._files:
                continue
            array = self._open(name)
            length = lengths.get(name, len(array) if name == "ids.npy" else n)
            if array.dtype.name not in dtypes or array.shape != (length,):
                raise InputError(
                    f"{self.folder / name} is damaged: it has {array.dtype.name} of "
                    f"the shape {array.shape}, not {' or '.join(dtypes)} of "
                    f"the shape {(length,)}"
                )

    def _json(self, name: str) -> Any:
        try:
            return json.loads((self.folder / name).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{self.folder / name} is damaged: {error}") from error


def is_counts_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a folder of counts, even if damaged.

    Examples
    --------
    >>> is_counts_folder("no-such-folder")
    False
    """
    try:
        return read_json_object(Path(path) / CONFIG, "").get("format") == FORMAT
    except InputError:
        return False


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a whole number of at least 0")
    return value


def _is_contiguous(rows: NDArray[np.int64]) -> bool:
    """Return whether sorted rows have no gap and no repetition."""
    if len(rows) == 0 or rows[-1] - rows[0] != len(rows) - 1:
        return False
    return bool(np.all(np.diff(rows) == 1))


def _pieces(rows: NDArray[np.int64]) -> list[slice]:
    """Divide rows into pieces, after each of which mapped pages are released."""
    step = BLOCK if _is_contiguous(rows) else SCATTERED
    stops = range(step, len(rows) + step, step)
    return [slice(stop - step, min(stop, len(rows))) for stop in stops]


def _release(*arrays: np.memmap[Any, Any]) -> None:
    """Release mapped pages, so that they do not count as memory of this process."""
    for array in arrays:
        if isinstance(array.base, mmap.mmap) and hasattr(array.base, "madvise"):
            array.base.madvise(mmap.MADV_DONTNEED)
