"""What all counts can do, wherever they are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray
    from scipy import sparse


# Documents that are worked on at once where memory must not grow with their number.
BLOCK = 8192


class Counts(ABC):
    """Word counts of documents, documents in rows and words in columns.

    Models take either kind: :class:`MemoryCounts`, which they make of any matrix, or
    :class:`DiskCounts`. Rows come back as a CSR matrix in memory, by a slice or row
    numbers.
    """

    ndim: ClassVar[int] = 2
    # Whether rows are in memory already, so that what is made of them may be kept.
    in_memory: ClassVar[bool]

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Documents and words."""

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
        """A fingerprint, in hex: a checkpoint goes on with the same counts only."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> sparse.csr_matrix:
        """Return some documents."""

    def __len__(self) -> int:
        return self.shape[0]

    def iter_blocks(self, rows: int | None = None) -> Iterator[sparse.csr_matrix]:
        """Yield all documents in order, `rows` at a time.

        None means as many as suit: all of those in memory, 8192 of those on disk.
        """
        if rows is not None and rows < 1:
            raise InputError(f"`rows` must be at least 1, got {rows}")
        if rows is None:
            rows = max(1, len(self)) if self.in_memory else BLOCK
        for start in range(0, max(1, len(self)), rows):
            yield self[start : start + rows]
