"""Texts of Arrow batches to counts of words."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from docsigma.counts import CountsWriter, DiskCounts, Vocabulary
from docsigma.workers.text_batches import TextBatches


class CountBatches(TextBatches):
    """Counts the words of the texts of Arrow batches.

    The columns are words (lists of column numbers), counts (how often each occurs) and
    n_unknown. :func:`write_counts` writes them to a folder of counts.

    Parameters
    ----------
    vocabulary : Vocabulary
        The words to count.
    text_column, keep, threads
        As in :class:`~docsigma.workers.text_batches.TextBatches`.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        text_column: str = "text",
        keep: Sequence[str] | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(text_column, keep, threads)
        self.vocabulary = vocabulary

    def columns(self, texts: list[str]) -> dict[str, Any]:
        """Return the columns of the counts."""
        import pyarrow as pa

        counted = self.vocabulary.count(texts)
        starts = pa.array(counted.counts.indptr.astype(np.int32))
        words = pa.array(counted.counts.indices.astype(np.int32))
        values = pa.array(counted.counts.data.astype(np.float32))
        return {
            "words": pa.ListArray.from_arrays(starts, words),
            "counts": pa.ListArray.from_arrays(starts, values),
            "n_unknown": counted.n_unknown.astype(np.int64),
        }


def write_counts(
    tables: Iterable[Any],
    folder: str | os.PathLike[str],
    vocabulary: Vocabulary,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
) -> DiskCounts:
    """Write tables of :class:`CountBatches` to a folder of counts, one at a time.

    The folder appears when all are written. `id_column` and `label_column` name the
    columns with the ids and the labels of the documents.
    """
    n_features = len(vocabulary)
    with CountsWriter(folder, n_features, vocabulary) as writer:
        for table in tables:
            if not table.num_rows:
                continue
            words, counts = (_whole(table.column(name)) for name in ("words", "counts"))
            starts = words.offsets.to_numpy()
            indices, values = words.values.to_numpy(), counts.values.to_numpy()
            block = sparse.csr_matrix(
                (
                    values[starts[0] : starts[-1]],
                    indices[starts[0] : starts[-1]],
                    starts - starts[0],
                ),
                shape=(table.num_rows, n_features),
            )
            ids, labels = (_strings(table, name) for name in (id_column, label_column))
            unknown = table.column("n_unknown").to_numpy()
            writer.add(block, labels, ids=ids, n_unknown=unknown)
    return DiskCounts(folder)


def _strings(table: Any, column: str | None) -> Any:
    if column is None:
        return None
    return [None if v is None else str(v) for v in table.column(column).to_pylist()]


def _whole(column: Any) -> Any:
    """Return a column of a table or a batch as one array."""
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column
