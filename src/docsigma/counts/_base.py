"""The interface of word counts in memory and on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray
    from scipy import sparse


# Documents per block where memory must not grow with the number of documents.
BLOCK = 8192


class Counts(ABC):
    """Word counts, documents in rows and words in columns.

    There are two kinds: :class:`MemoryCounts`, into which models turn any matrix, and
    :class:`DiskCounts`. Indexing by a slice or row numbers returns a CSR matrix in
    memory.
    """

    ndim: ClassVar[int] = 2
    # Whether results as large as the counts may be kept, since the counts are too.
    in_memory: ClassVar[bool]

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of documents, number of words."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Type of the rows: float32 or float64."""

    @property
    @abstractmethod
    def n_tokens(self) -> NDArray[np.float64]:
        """Tokens of each document."""

    @property
    @abstractmethod
    def word_totals(self) -> NDArray[np.float64]:
        """Tokens of each word."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """Checksum in hex; a checkpoint resumes only with counts of the same one."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> sparse.csr_matrix:
        """Return some documents."""

    def __len__(self) -> int:
        return self.shape[0]

    def iter_blocks(self, rows: int | None = None) -> Iterator[sparse.csr_matrix]:
        """Yield all documents in order, `rows` at a time.

        None means all if they are in memory, else 8192.
        """
        if rows is not None and rows < 1:
            raise InputError(f"`rows` must be at least 1, got {rows}")
        if rows is None:
            rows = max(1, len(self)) if self.in_memory else BLOCK
        for start in range(0, max(1, len(self)), rows):
            yield self[start : start + rows]
