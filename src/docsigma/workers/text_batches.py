"""Base of the classes that process batches of texts."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from docsigma._files import atomic_file
from docsigma.counts._base import BLOCK
from docsigma.exceptions import InputError


class TextBatches(ABC):
    """A function from an Arrow batch with a column of texts to an Arrow table.

    It is small, can be pickled, and loads what it needs in the process that calls it,
    once. A row of the result depends on its text only, so that a batch may be divided,
    moved or processed again.

    Parameters
    ----------
    text_column : str, default="text"
        Column of the texts; a missing text counts as empty.
    keep : sequence of str or None, default=None
        Columns to keep; None means all except the texts.
    threads : int or None, default=None
        Threads to compute with. None means OMP_NUM_THREADS, which Ray, Spark and
        torchrun set for their workers, or else the cores that the process may run on.
    """

    def __init__(
        self,
        text_column: str = "text",
        keep: Sequence[str] | None = None,
        threads: int | None = None,
    ) -> None:
        self.text_column = text_column
        self.keep = None if keep is None else tuple(keep)
        self.threads = threads

    @abstractmethod
    def columns(self, texts: list[str]) -> dict[str, Any]:
        """Return the new columns: NumPy arrays, lists of strings or Arrow arrays."""

    def __call__(self, batch: Any) -> Any:
        """Return the columns to keep and the new ones as an Arrow table."""
        import pyarrow as pa

        if self.text_column not in batch.schema.names:
            raise InputError(
                f"there is no column {self.text_column!r} of texts: the batch has "
                f"{', '.join(batch.schema.names)}"
            )
        others = (name for name in batch.schema.names if name != self.text_column)
        keep = others if self.keep is None else self.keep
        found = {name: batch.column(name) for name in keep}
        _use_threads(self.threads)
        texts = [text or "" for text in batch.column(self.text_column).to_pylist()]
        # An empty batch still needs the types of the columns.
        for name, values in self.columns(texts or [""]).items():
            is_arrow = isinstance(values, pa.Array)
            found[name] = values if is_arrow else arrow_column(values)
            found[name] = found[name] if texts else found[name].slice(0, 0)
        return pa.table(found)

    def each(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Process an iterator of batches, as Spark's ``mapInArrow`` expects.

        Lists have no fixed size here, as Spark has no such type.
        """
        for batch in batches:
            table = self(batch)
            yield from table.cast(_plain(table.schema)).to_batches()

    def file(
        self, source: str | os.PathLike[str], folder: str | os.PathLike[str]
    ) -> str:
        """Process a Parquet file; return the file of the same name in `folder`.

        The file appears when it is complete, and one that exists is not written again:
        under retries nothing is lost or duplicated.
        """
        import pyarrow.parquet as pq

        target = Path(folder) / Path(source).name
        if target.is_file():
            return str(target)
        with atomic_file(target) as temporary, pq.ParquetFile(source) as given:
            empty = self(given.schema_arrow.empty_table())
            with pq.ParquetWriter(temporary, empty.schema) as writer:
                for batch in given.iter_batches(batch_size=BLOCK):
                    writer.write_table(self(batch))
        return str(target)

    def schema(self, like: Any) -> Any:
        """Return the schema of :meth:`each` for batches with the schema `like`."""
        return _plain(self(like.empty_table()).schema)


def arrow_column(values: Any) -> Any:
    """Return a column: strings from a list, numbers from a vector or a matrix."""
    import pyarrow as pa

    if isinstance(values, list):
        # A block in which all labels are missing would have no type.
        return pa.array(values, pa.string())
    if values.ndim == 1:
        return pa.array(values)
    flat = pa.array(values.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def _plain(schema: Any) -> Any:
    """Return a schema in which lists have no fixed size."""
    import pyarrow as pa

    for number, field in enumerate(schema):
        if pa.types.is_fixed_size_list(field.type):
            plain = field.with_type(pa.list_(field.type.value_type))
            schema = schema.set(number, plain)
    return schema


def granted_threads() -> int:
    """Return the number of threads that this process was granted."""
    granted = os.environ.get("OMP_NUM_THREADS", "")
    if granted.isdigit() and int(granted):
        return int(granted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _use_threads(threads: int | None) -> None:
    import torch

    wanted = threads or granted_threads()
    if torch.get_num_threads() != wanted:
        torch.set_num_threads(wanted)
