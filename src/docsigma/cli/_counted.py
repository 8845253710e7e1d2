"""Documents counted by a model's words, in memory or on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp
    from numpy.typing import NDArray

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
    # Tokens of each document that the model does not know.
    n_unknown: NDArray[np.int64]
    # From rows to the ids and labels of those documents; without any label, None.
    ids: Callable[[Any], list[str]]
    labels: Callable[[Any], Sequence[str | None] | None]
    # From rows to the texts of those documents; None where they are not at hand.
    texts: Callable[[Any], list[str]] | None = None
    # Which of the documents are meant; by default all.
    part: slice | None = None

    @property
    def rows(self) -> slice:
        """The first and the last of the documents that are meant."""
        part = self.part or slice(None)
        return slice(*part.indices(len(self.counts))[:2])

    @property
    def n_tokens(self) -> NDArray[np.int64]:
        """Known tokens of each of the documents that are meant."""
        found: NDArray[np.int64] = self.counts.n_tokens[self.rows].astype("int64")
        return found

    def blocks(self) -> Iterator[slice]:
        """Yield the rows to work on at once: all of those in memory, or a block."""
        from docsigma.counts._base import BLOCK

        first, last = self.rows.start, self.rows.stop
        size = last - first if self.counts.in_memory else BLOCK
        for start in range(first, last, max(1, size)):
            yield slice(start, min(start + size, last))


def counted_on_disk(
    model: CountModel, stored: DiskCounts, part: slice | None = None
) -> CountedSource:
    """Read counts of a folder; those of other words than the model's are refused."""
    _check_same_words(model, stored)
    return CountedSource(stored, stored.n_unknown, stored.ids, stored.labels, part=part)


def counted_in_memory(model: CountModel, documents: Documents) -> CountedSource:
    """Count documents by a model's words."""
    from docsigma.counts import MemoryCounts
    from docsigma.models.components import known_words

    if model.vocabulary_ is None and documents.counts is not None:
        _check_columns(model, documents.source, documents.counts.shape[1])
        counted = count_words(None, documents)
    else:
        counted = known_words(model).count_documents(documents)
    ids, labels = documents.ids, documents.labels
    return CountedSource(
        MemoryCounts(counted.counts),
        counted.n_unknown,
        lambda rows: _choose(ids, rows),
        lambda rows: None if labels is None else _choose(labels, rows),
        None if documents.texts is None else partial(_choose, documents.texts),
    )


def embed_counts(
    model: CountModel, counts: sp.csr_matrix | Counts
) -> tuple[NDArray[Any], GaussianPosterior | None]:
    """Embed documents: their means, and their Gaussians if the model gives any."""
    if model.gives_points:
        return model.transform(counts), None
    q = model.posterior(counts)
    return q.mean, q


def count_words(words: Vocabulary | None, documents: Documents) -> CountedDocuments:
    """Count documents by some words, or take the counts that they come with."""
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


def _check_same_words(model: CountModel, counts: DiskCounts) -> None:
    n_columns, n_words = counts.n_features, model.n_features_in_
    known, found = model.vocabulary_, counts.vocabulary
    if known is not None and found is not None:
        if found.words != known.words:
            raise InputError(
                f"{counts.folder} has {n_columns} words and the model {n_words}, not "
                "the same in the same order: count with --vocabulary and the model's "
                "folder"
            )
    else:
        _check_columns(model, counts.folder, n_columns)
