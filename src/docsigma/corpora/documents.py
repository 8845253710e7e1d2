"""Documents as texts or counts, with their ids and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy import sparse

from docsigma.counts._checks import check_words, row_numbers
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from docsigma.corpora.synthetic import SyntheticTruth


@dataclass(frozen=True, eq=False, repr=False)
class Documents:
    """Documents in a fixed order, either as texts or as word counts.

    Attributes
    ----------
    ids : list of str
        Name of each document.
    texts : list of str, optional
        Their texts; exactly one of `texts` and `counts` is given.
    counts : csr_matrix, shape (n_documents, n_features), optional
        Their word counts.
    labels : list of str or None, optional
        Class of each document, None where unknown; no list if all are unknown.
    words : list of str, optional
        Word of each column of `counts`, if known.
    source : str
        Origin, for messages.
    rows : list of int, optional
        Row of each document in the file, as a spreadsheet counts them: the first line
        is 1, and a line break inside quotes starts no new row.

    Examples
    --------
    >>> documents = Documents(["a", "b", "c"], texts=["sun", "rain", "hail"])
    >>> len(documents)
    3
    >>> documents[1:].texts
    ['rain', 'hail']
    >>> documents[[2, 0]].ids
    ['c', 'a']
    """

    ids: list[str]
    texts: list[str] | None = None
    counts: sparse.csr_matrix | None = None
    labels: Sequence[str | None] | None = None
    words: list[str] | None = None
    source: str = ""
    rows: list[int] | None = None

    def __post_init__(self) -> None:
        of = _of(self.source)
        if (self.texts is None) == (self.counts is None):
            found = "neither" if self.texts is None else "both"
            raise InputError(
                f"documents{of} need exactly one of `texts` and `counts`, got {found}"
            )
        if self.counts is not None and getattr(self.counts, "format", "") != "csr":
            kind = type(self.counts).__name__
            raise InputError(f"`counts`{of} must be a csr_matrix, got {kind}")
        counted = None if self.counts is None else range(self.counts.shape[0])
        sized = {
            "texts": self.texts,
            "labels": self.labels,
            "rows of counts": counted,
            "numbers of rows": self.rows,
        }
        for name, value in sized.items():
            if value is not None and len(value) != len(self.ids):
                raise InputError(
                    f"documents{of} have {len(self.ids)} ids but {len(value)} {name}"
                )
        if self.words is not None:
            if self.counts is None:
                raise InputError(f"`words`{of} name columns of counts, got texts")
            if len(self.words) != self.counts.shape[1]:
                raise InputError(
                    f"documents{of} have {len(self.words)} words but "
                    f"{self.counts.shape[1]} columns of counts"
                )
            check_words(self.words, name=f"the vocabulary{of}")

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        kind = "texts" if self.counts is None else "counts"
        labelled = "" if self.labels is None else ", labelled"
        source = f", source={self.source!r}" if self.source else ""
        return f"Documents({len(self)} {kind}{labelled}{source})"

    def __getitem__(
        self,
        index: slice | Sequence[int] | NDArray[np.integer] | NDArray[np.bool_],
    ) -> Documents:
        rows = row_numbers(index, len(self), "documents")
        chosen = rows.tolist()
        return Documents(
            ids=[self.ids[row] for row in chosen],
            texts=None if self.texts is None else [self.texts[row] for row in chosen],
            counts=None if self.counts is None else self.counts[rows],
            labels=None if self.labels is None else [self.labels[r] for r in chosen],
            words=self.words,
            source=self.source,
            rows=None if self.rows is None else [self.rows[row] for row in chosen],
        )

    def labelled(self) -> tuple[Documents, list[str]]:
        """Return the documents that have a label, and their labels.

        Raises an InputError if there is none.

        Examples
        --------
        >>> texts = ["sun", "rain", "hail"]
        >>> documents = Documents(["a", "b", "c"], texts, labels=["good", None, "bad"])
        >>> some, labels = documents.labelled()
        >>> some.ids, labels
        (['a', 'c'], ['good', 'bad'])
        """
        labels = {row: y for row, y in enumerate(self.labels or []) if y is not None}
        if not labels:
            raise InputError(
                f"none of the {len(self)} documents{_of(self.source)} has a label"
            )
        some = self if len(labels) == len(self) else self[list(labels)]
        return some, list(labels.values())

    @classmethod
    def concatenate(cls, blocks: Sequence[Documents]) -> Documents:
        """Return all documents of some blocks, as `iter_documents` yields them."""
        if len(blocks) == 1:
            return blocks[0]
        labels: list[str | None] | None = None
        if any(block.labels is not None for block in blocks):
            missing = (block.labels or [None] * len(block) for block in blocks)
            labels = [label for some in missing for label in some]
        counts = [block.counts for block in blocks if block.counts is not None]
        texts = [text for block in blocks for text in block.texts or []]
        rows = None
        if all(block.rows is not None for block in blocks):
            rows = [row for block in blocks for row in block.rows or []]
        return cls(
            ids=[one for block in blocks for one in block.ids],
            texts=None if counts else texts,
            counts=sparse.vstack(counts, format="csr") if counts else None,
            labels=labels,
            words=blocks[0].words,
            source=blocks[0].source,
            rows=rows,
        )


def distinct(names: Sequence[str], mark: str) -> list[str]:
    """Return unique names: repeated ones are numbered by `mark`.

    Examples
    --------
    >>> distinct(["a", "b", "a"], "#{}")
    ['a', 'b', 'a#2']
    """
    found: dict[str, None] = {}
    for name in names:
        own, number = name, 1
        while own in found:
            number += 1
            own = name + mark.format(number)
        found[own] = None
    return list(found)


def _of(source: str) -> str:
    return f" of {source}" if source else ""


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Documents to learn from and documents to test on.

    Attributes
    ----------
    name : str
    train, test : Documents
    description : str
        One sentence.
    truth : SyntheticTruth, optional
        The parameters that a synthetic corpus was drawn from.

    Examples
    --------
    >>> documents = Documents(["a", "b"], texts=["sun", "rain"])
    >>> Corpus("weather", train=documents[:1], test=documents[1:])
    Corpus('weather', train=Documents(1 texts), test=Documents(1 texts))
    """

    name: str
    train: Documents
    test: Documents
    description: str = ""
    truth: SyntheticTruth | None = None

    def __repr__(self) -> str:
        return f"Corpus({self.name!r}, train={self.train}, test={self.test})"
