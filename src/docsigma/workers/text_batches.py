"""What all work on batches of texts has in common."""

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

    It is small, can be pickled, and loads what it needs where it is called, once per
    process. A row of the result depends on its text only, so that a batch may be cut,
    moved or done again.

    Parameters
    ----------
    text_column : str, default="text"
        Column of the texts; a text that is missing counts as empty.
    keep : sequence of str or None, default=None
        Columns to hand on; None means all but the texts.
    threads : int or None, default=None
        Threads to compute with. None means what the worker was granted: Ray, Spark and
        torchrun say so by OMP_NUM_THREADS; else the cores that it may run on.
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
        """Return the new columns, as arrays, lists of strings or Arrow's own."""

    def __call__(self, batch: Any) -> Any:
        """Return the kept columns of a batch and the new ones, as an Arrow table."""
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
        # Of an empty batch only the types of the columns are wanted.
        for name, values in self.columns(texts or [""]).items():
            plain = not isinstance(values, pa.Array)
            found[name] = arrow_column(values) if plain else values
            found[name] = found[name] if texts else found[name].slice(0, 0)
        return pa.table(found)

    def each(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Do all batches of an iterator: what Spark's ``mapInArrow`` takes.

        Lists are plain here: Spark has none of a fixed size.
        """
        for batch in batches:
            table = self(batch)
            yield from table.cast(_plain(table.schema)).to_batches()

    def file(
        self, source: str | os.PathLike[str], folder: str | os.PathLike[str]
    ) -> str:
        """Do a Parquet file; write the result to `folder` under the same name.

        The file appears when it is whole, and one that is there is not done again:
        under retries nothing is missing and nothing comes twice. Returns its path.
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
        """Return that of what :meth:`each` makes of batches with the schema `like`."""
        return _plain(self(like.empty_table()).schema)


def arrow_column(values: Any) -> Any:
    """Return a column: strings from a list, numbers from a vector or a matrix."""
    import pyarrow as pa

    if isinstance(values, list):
        # Said, for a block without one label has no type of its own.
        return pa.array(values, pa.string())
    if values.ndim == 1:
        return pa.array(values)
    flat = pa.array(values.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def _plain(schema: Any) -> Any:
    """Return a schema with plain lists in place of those of a fixed size."""
    import pyarrow as pa

    for number, field in enumerate(schema):
        if pa.types.is_fixed_size_list(field.type):
            plain = field.with_type(pa.list_(field.type.value_type))
            schema = schema.set(number, plain)
    return schema


def granted_threads() -> int:
    """Return the number of threads that this process was granted."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isdigit() and int(said):
        return int(said)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _use_threads(threads: int | None) -> None:
    import torch

    wanted = threads or granted_threads()
    if torch.get_num_threads() != wanted:
        torch.set_num_threads(wanted)
