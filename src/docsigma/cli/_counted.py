"""Documents counted by a model's words, in memory or on disk."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from docsigma.classifiers import CountsClassifier
    from docsigma.classifiers.documents import EmbeddedDocuments
    from docsigma.corpora import Documents
    from docsigma.counts import CountedDocuments, Counts, DiskCounts, Vocabulary
    from docsigma.models._count_model import CountModel
    from docsigma.posterior import GaussianPosterior


def _choose(values: Sequence[Any], rows: Any) -> list[Any]:
    import numpy as np

    return [values[row] for row in np.arange(len(values))[rows].tolist()]


@dataclass(frozen=True)
class CountedSource:
    """Documents counted by a model's words, in memory or on disk."""

    counts: Counts
    # Tokens per document that the model does not know.
    n_unknown: NDArray[np.int64]
    # Map rows to their ids, labels (None if there are none) and texts (if available).
    ids: Callable[[Any], list[str]]
    labels: Callable[[Any], Sequence[str | None] | None]
    texts: Callable[[Any], list[str]] | None = None
    # Rows of the file, as a spreadsheet counts them (if it has any).
    numbers: Callable[[Any], list[int]] | None = None
    # The documents to work on; all by default.
    part: slice | None = None

    @property
    def rows(self) -> slice:
        """The documents to work on, from the first to the last."""
        part = self.part or slice(None)
        return slice(*part.indices(len(self.counts))[:2])

    def embedded_by(self, classifier: CountsClassifier, rows: Any) -> EmbeddedDocuments:
        """Embed some documents, with their pairs of words where texts are."""
        texts = None if self.texts is None else self.texts(rows)
        counts = classifier.with_pairs(self.counts[rows], texts)
        return classifier.embed(counts, self.n_unknown[rows])

    def named(self, rows: Any) -> dict[str, Any]:
        """Return the columns that name documents: their row in the file, and their id.

        Without rows of a file, the id is all.
        """
        import numpy as np

        found: dict[str, Any] = {}
        if self.numbers is not None:
            found["row"] = np.array(self.numbers(rows), dtype=np.int64)
        return found | {"id": self.ids(rows)}

    def shown(self, rows: Any) -> list[str]:
        """Return the beginnings of some documents, or their ids without texts."""
        from docsigma.cli._common import beginning

        if self.texts is None:
            return self.ids(rows)
        names = zip(self.ids(rows), self.texts(rows), strict=True)
        return [f"{beginning(text) or '(no text)'} ({name})" for name, text in names]

    @property
    def n_tokens(self) -> NDArray[np.int64]:
        """Known tokens of each document to work on."""
        found: NDArray[np.int64] = self.counts.n_tokens[self.rows].astype("int64")
        return found

    def blocks(self) -> Iterator[slice]:
        """Yield the rows to work on together: all if in memory, else a block."""
        from tqdm import tqdm

        from docsigma.counts._base import BLOCK

        first, last = self.rows.start, self.rows.stop
        size = last - first if self.counts.in_memory else BLOCK
        starts = range(first, last, max(1, size))
        hidden = self.counts.in_memory or not sys.stderr.isatty()
        for start in tqdm(starts, "blocks", delay=2, disable=hidden):
            yield slice(start, min(start + size, last))


def counted_on_disk(
    model: CountModel, stored: DiskCounts, part: slice
) -> CountedSource:
    """Return stored counts; refuse those of other words than the model's."""
    known, found = model.vocabulary_, stored.vocabulary
    if known is None or found is None:
        _check_columns(model, stored.folder, stored.n_features)
    elif found.words != known.words:
        raise InputError(
            f"{stored.folder} has {stored.n_features} words and the model "
            f"{model.n_features_in_}, not the same in the same order: count with "
            "--vocabulary and the model's folder"
        )
    return CountedSource(stored, stored.n_unknown, stored.ids, stored.labels, part=part)


def counted_in_memory(model: CountModel, documents: Documents) -> CountedSource:
    """Count documents with a model's words."""
    from docsigma.counts import MemoryCounts
    from docsigma.models.components import known_words

    if model.vocabulary_ is None and documents.counts is not None:
        _check_columns(model, documents.source, documents.counts.shape[1])
        counted = count_words(None, documents)
    else:
        words = known_words(model)
        counted = words.count_documents(documents, verbose=bool(model.verbose))
    ids, labels = documents.ids, documents.labels
    return CountedSource(
        MemoryCounts(counted.counts),
        counted.n_unknown,
        lambda rows: _choose(ids, rows),
        lambda rows: None if labels is None else _choose(labels, rows),
        None if documents.texts is None else partial(_choose, documents.texts),
        None if documents.rows is None else partial(_choose, documents.rows),
    )


def embed_counts(
    model: CountModel, counts: sp.csr_matrix | Counts
) -> tuple[NDArray[Any], GaussianPosterior | None]:
    """Return the means of documents, and their Gaussians if the model has any."""
    if model.gives_points:
        return model.transform(counts), None
    q = model.posterior(counts)
    return q.mean, q


def count_words(words: Vocabulary | None, documents: Documents) -> CountedDocuments:
    """Count documents with a vocabulary, or return the counts that they come with."""
    from docsigma.counts import CountedDocuments

    if words is not None:
        return words.count_documents(documents)
    assert documents.counts is not None
    return CountedDocuments.of(documents.counts)


def _check_columns(model: CountModel, source: object, n_columns: int) -> None:
    if n_columns != model.n_features_in_:
        raise InputError(
            f"{source} has {n_columns} columns, the model was fitted on "
            f"{model.n_features_in_}"
        )
