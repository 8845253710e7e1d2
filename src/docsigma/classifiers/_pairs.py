"""Pairs of neighbouring words, which classifiers see beside the words."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING

from scipy import sparse

from docsigma.classifiers.settings import MOST_PAIRS
from docsigma.counts import Vocabulary
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from docsigma._array_checks import Floats


def learn_pairs(
    texts: Iterable[object],
    words: Vocabulary,
    weights: Floats | None = None,
    *,
    verbose: bool = False,
) -> tuple[Vocabulary | None, sparse.csr_matrix]:
    """Choose the pairs of words that two texts have in common, and count them.

    Copies of a text count as one, and texts of weight 0 are not looked at. None where
    there are no pairs, or where `words` has sequences of words already.
    """
    known = list(texts)
    empty = sparse.csr_matrix((len(known), 0))
    if words.ngram_range[1] > 1 or words.analyzer != "word":
        return None, empty
    used = known if weights is None else compress(known, weights)
    distinct = list(dict.fromkeys(used))
    settings = words.settings | {"ngram_range": (2, 2)}
    del settings["analyzer"]
    try:
        vocabulary, counted = Vocabulary.fit_count(
            distinct, min_df=2, max_features=MOST_PAIRS, verbose=verbose, **settings
        )
    except InputError:  # no pair at all, or none that comes twice
        return None, empty
    number = {text: row for row, text in enumerate(distinct)}
    blank = sparse.csr_matrix((1, len(vocabulary)), dtype=counted.counts.dtype)
    counts = sparse.vstack([counted.counts, blank], format="csr")
    return vocabulary, counts[[number.get(text, len(distinct)) for text in known]]


def pairs_of(words: Vocabulary, pairs: list[str] | None) -> Vocabulary | None:
    """Return the vocabulary of pairs of words that are split as `words` are."""
    if pairs is None:
        return None
    return replace(words, words=tuple(pairs), ngram_range=(2, 2))
