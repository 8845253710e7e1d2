"""Texts of Arrow batches to the frequencies of their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from docsigma.counts import WordFrequencies
from docsigma.workers.text_batches import TextBatches


class FrequencyBatches(TextBatches):
    """Counts the documents of an Arrow batch that contain each word.

    A row holds a word, the number of documents with it and the number of its tokens;
    the row of the empty word counts the texts. The engine or :meth:`vocabulary` may add
    up the rows of several batches by word.

    Parameters
    ----------
    text_column : str, default="text"
        Column of the texts.
    settings
        Of :class:`~docsigma.counts.WordFrequencies`: `min_df`, `stop_words`, ...

    Examples
    --------
    >>> import pyarrow as pa
    >>> job = FrequencyBatches(min_df=2)
    >>> blocks = ["sun", "rain"], ["sun"]
    >>> tables = [job(pa.table({"text": texts})) for texts in blocks]
    >>> job.vocabulary(tables).words
    ('sun',)
    """

    def __init__(self, text_column: str = "text", **settings: Any) -> None:
        super().__init__(text_column, keep=())
        self.settings = settings
        WordFrequencies(**settings)  # checks them here, not in a worker

    def columns(self, texts: list[str]) -> dict[str, Any]:
        """Return the words of the texts, with their frequencies."""
        frequencies = WordFrequencies(**self.settings)
        frequencies.add(texts)
        words, documents, tokens = frequencies.table()
        return {
            "word": ["", *words],
            "documents": np.array([len(texts), *documents], dtype=np.int64),
            "tokens": np.array([0, *tokens], dtype=np.int64),
        }

    def vocabulary(self, tables: Sequence[Any]) -> Any:
        """Return the words within the limits, from the results of all batches."""
        frequencies = WordFrequencies(**self.settings)
        for table in tables:
            names = ("word", "documents", "tokens")
            frequencies.add_table(*(table.column(name).to_pylist() for name in names))
        return frequencies.vocabulary()
