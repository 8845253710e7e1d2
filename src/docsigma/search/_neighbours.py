"""Approximate neighbours of vectors, by usearch."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docsigma.exceptions import InputError


class Neighbours:
    """A graph that finds neighbours of vectors without comparing all of them.

    Parameters
    ----------
    n_dimensions : int
        Size of a vector.
    metric : {"l2sq", "cos"}
        Squared Euclidean or cosine distance.
    """

    def __init__(self, n_dimensions: int, metric: str) -> None:
        try:
            from usearch.index import Index
        except ImportError as error:
            raise InputError(
                "approximate search needs usearch: pip install docsigma[search]"
            ) from error
        self._index: Any = Index(
            ndim=n_dimensions,
            metric=metric,
            dtype="f16",
            # Edges per vector, and candidates kept while one is added: larger values
            # find more true neighbours and take longer.
            connectivity=32,
            expansion_add=128,
        )
        # The file that the graph is mapped from until it is changed.
        self._file: str | None = None

    def add(self, keys: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors under their keys."""
        self._own()
        if len(keys):
            self._index.add(keys.astype(np.uint64), vectors)

    def remove(self, keys: NDArray[np.int64]) -> None:
        """Remove vectors."""
        self._own()
        if len(keys):
            self._index.remove(keys.astype(np.uint64))

    def search(self, vectors: NDArray[np.float32], n: int) -> list[NDArray[np.int64]]:
        """Return the keys of about `n` near vectors for each of `vectors`."""
        # Candidates kept during a search.
        self._index.expansion_search = max(256, 2 * n)
        # One by one: usearch returns another type for several queries.
        found = [self._index.search(vector, n) for vector in vectors]
        return [match.keys.astype(np.int64) for match in found]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file."""
        self._index.save(os.fspath(path))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], n_dimensions: int, metric: str
    ) -> Neighbours:
        """Map a file into memory that :meth:`save` wrote."""
        found = cls(n_dimensions, metric)
        try:
            found._index.view(os.fspath(path))
        except (RuntimeError, OSError) as error:
            raise InputError(f"{path} is damaged: {error}") from error
        if found._index.ndim != n_dimensions:
            raise InputError(
                f"{path} has vectors of {found._index.ndim} dimensions, "
                f"{n_dimensions} were expected"
            )
        found._file = os.fspath(path)
        return found

    def _own(self) -> None:
        """Read the graph into memory before it is changed."""
        if self._file is not None:
            self._index.load(self._file)
            self._file = None
