"""A vocabulary from texts that come in blocks."""

from __future__ import annotations

from collections import Counter
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from docsigma._analysis import TOKEN_PATTERN, build_analyzer
from docsigma.counts import Vocabulary
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["WordFrequencies"]


class WordFrequencies:
    """Counts in how many documents each word is, to choose a vocabulary by.

    The vocabulary is the one that :meth:`docsigma.counts.Vocabulary.fit_count` makes
    of all texts at once. Memory grows with the number of different words, not with
    the number of documents.

    Parameters
    ----------
    min_df, max_df, max_features
        Which words to keep, as in `fit_count`.
    lowercase, stop_words, token_pattern, ngram_range, strip_accents
        How a text is cut into words, as in `fit_count`.

    Raises
    ------
    InputError
        If a setting is not valid.

    Examples
    --------
    >>> frequencies = WordFrequencies(min_df=2)
    >>> frequencies.add(["sun and rain", "sun"])
    >>> frequencies.add(["hail and snow"])
    >>> frequencies.vocabulary().words
    ('and', 'sun')
    """

    def __init__(
        self,
        *,
        min_df: float = 2,
        max_df: float = 1.0,
        max_features: int | None = None,
        lowercase: bool = True,
        stop_words: str | Iterable[str] | None = None,
        token_pattern: str = TOKEN_PATTERN,
        ngram_range: tuple[int, int] = (1, 1),
        strip_accents: str | None = None,
    ) -> None:
        self.settings: dict[str, Any] = {
            "lowercase": lowercase,
            "token_pattern": token_pattern,
            "ngram_range": ngram_range,
            "strip_accents": strip_accents,
            "stop_words": stop_words
            if stop_words is None or isinstance(stop_words, str)
            else tuple(sorted(stop_words)),
        }
        self._analyze = build_analyzer({**self.settings, "analyzer": "word"})
        self.limits: dict[str, Any] = {
            "min_df": min_df,
            "max_df": max_df,
            "max_features": max_features,
        }
        try:
            CountVectorizer(**self.limits)._validate_params()
        except ValueError as error:
            raise InputError(f"the limits are not valid: {error}") from error
        self.n_documents = 0
        self._documents: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()

    def add(self, texts: Iterable[str]) -> None:
        """Count the words of more texts."""
        for text in texts:
            tokens = self._analyze(text)
            self._tokens.update(tokens)
            self._documents.update(set(tokens))
            self.n_documents += 1

    def vocabulary(self) -> Vocabulary:
        """Return the words within the limits, sorted.

        Raises
        ------
        InputError
            If no word is left.
        """
        if not self._documents:
            raise InputError(
                f"none of the {self.n_documents} texts has a word to count"
            )
        limit = self.limits["max_features"]
        low, high = self._share("min_df"), self._share("max_df")
        words = sorted(w for w, n in self._documents.items() if low <= n <= high)
        if not words:
            raise InputError(
                f"no vocabulary from {self.n_documents} texts with "
                f"`min_df`={self.limits['min_df']}, `max_df`={self.limits['max_df']}, "
                f"`max_features`={limit}: no word is in {low:g} to {high:g} of them"
            )
        if limit is not None and len(words) > limit:
            # float32 and this sort: words of one frequency are then chosen as
            # scikit-learn chooses them.
            tokens = np.array([self._tokens[word] for word in words], dtype=np.float32)
            words = [words[i] for i in np.sort(np.argsort(-tokens)[:limit])]
        return Vocabulary(tuple(words), **self.settings)

    def _share(self, name: str) -> float:
        value = self.limits[name]
        return float(value if isinstance(value, Integral) else value * self.n_documents)
