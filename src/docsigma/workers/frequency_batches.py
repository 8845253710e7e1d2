"""Texts of Arrow batches to the frequencies of their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from docsigma.counts import WordFrequencies
from docsigma.workers.text_batches import TextBatches


class FrequencyBatches(TextBatches):
    """Counts in how many documents of an Arrow batch each word is.

    A row of the result is a word, with the documents that have it and its tokens; the
    row of the empty word, which no text has, counts the texts. Rows of different
    batches may be added up by word, by the engine or by :meth:`vocabulary`.

    Parameters
    ----------
    text_column : str, default="text"
        Column of the texts.
    settings
        Those of :class:`~docsigma.counts.WordFrequencies`: `min_df`, `stop_words`, ...

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
        WordFrequencies(**settings)  # refuses wrong ones here, not in a worker

    def columns(self, texts: list[str]) -> dict[str, Any]:
        """Return the words of some texts, with their frequencies."""
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
            words, documents, tokens = (
                table.column(name).to_pylist()
                for name in ("word", "documents", "tokens")
            )
            frequencies.add_table(words, documents, tokens)
        return frequencies.vocabulary()
