"""Document frequencies of words, to choose a vocabulary."""

from __future__ import annotations

from collections import Counter
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from docsigma.counts._analysis import TOKEN_PATTERN, build_analyzer
from docsigma.counts._unspaced import UnspacedTexts
from docsigma.counts.vocabulary import Vocabulary
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from scipy import sparse


class WordFrequencies:
    """Document frequencies of words, to choose a vocabulary.

    Texts may be added in blocks: memory grows with the number of different words, not
    with the number of documents.

    Parameters
    ----------
    min_df, max_df : int or float
        Keep words in at least, at most, that many documents (int) or that share of
        the documents (float).
    max_features : int, optional
        Keep only that many words, the most frequent ones.
    lowercase, stop_words, token_pattern, ngram_range, strip_accents
        As in ``CountVectorizer``.
    tokenizer : {"jieba", "janome", "pythainlp"}, function or None
        Splits texts into words: a library for Chinese, Japanese or Thai, or a function
        from a text to its words.
    analyzer : {"word", "char", "char_wb"}
        As in ``CountVectorizer``: whether words are counted, or sequences of
        characters.

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
        tokenizer: str | Callable[[str], Iterable[str]] | None = None,
        analyzer: str = "word",
    ) -> None:
        self.settings: dict[str, Any] = {
            "lowercase": lowercase,
            "token_pattern": token_pattern,
            "ngram_range": ngram_range,
            "strip_accents": strip_accents,
            "stop_words": stop_words
            if stop_words is None or isinstance(stop_words, str)
            else tuple(sorted(stop_words)),
            "tokenizer": tokenizer,
            "analyzer": analyzer,
        }
        self._analyze = build_analyzer(self.settings)
        self._unspaced = UnspacedTexts()
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

    def analyze(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        if self.settings["tokenizer"] is None and self.settings["analyzer"] == "word":
            self._unspaced.add(text)
        return self._analyze(text)

    def add(self, texts: Iterable[str]) -> None:
        """Count the words of more texts."""
        for text in texts:
            tokens = self.analyze(text)
            self._tokens.update(tokens)
            self._documents.update(set(tokens))
            self.n_documents += 1

    def add_counts(self, words: Sequence[str], counts: sparse.csr_matrix) -> None:
        """Add texts that are already counted, with one column for each of `words`."""
        having = np.bincount(counts.indices, minlength=len(words))
        totals = np.asarray(counts.sum(axis=0)).ravel()
        self._documents.update(dict(zip(words, having.tolist(), strict=True)))
        self._tokens.update(dict(zip(words, totals.tolist(), strict=True)))
        self.n_documents += counts.shape[0]

    def table(self) -> tuple[list[str], list[int], list[int]]:
        """Return the words, and for each its documents and its tokens."""
        words = list(self._documents)
        tokens = [self._tokens[word] for word in words]
        return words, list(self._documents.values()), tokens

    def add_table(
        self, words: Sequence[str], documents: Sequence[int], tokens: Sequence[int]
    ) -> None:
        """Add another table; the empty word in it has the number of texts."""
        for word, having, total in zip(words, documents, tokens, strict=True):
            if word:
                self._documents[word] += having
                self._tokens[word] += total
            else:
                self.n_documents += having

    def vocabulary(self) -> Vocabulary:
        """Return the words within the limits, sorted.

        Warns if many texts have no spaces between their words and there is no
        tokenizer.
        """
        self._unspaced.warn()
        if not self._documents:
            raise InputError(
                f"none of the {self.n_documents} texts has a word to count"
            )
        limit = self.limits["max_features"]
        low, high = self._share("min_df"), self._share("max_df")
        words = sorted(w for w, n in self._documents.items() if low <= n <= high)
        if not words and low > self.n_documents:
            raise InputError(
                f"no word can be in `min_df`={low:g} documents: there "
                f"{'is only 1' if self.n_documents == 1 else f'are {self.n_documents}'}"
            )
        if not words:
            raise InputError(
                f"no vocabulary from {self.n_documents} texts with "
                f"`min_df`={self.limits['min_df']}, `max_df`={self.limits['max_df']}, "
                f"`max_features`={limit}: no word is in {low:g} to {high:g} of them"
            )
        if limit is not None and len(words) > limit:
            # float32 and this sort choose among words of equal frequency as
            # scikit-learn does.
            tokens = np.array([self._tokens[word] for word in words], dtype=np.float32)
            words = [words[i] for i in np.sort(np.argsort(-tokens)[:limit])]
        return Vocabulary(tuple(words), **self.settings)

    def _share(self, name: str) -> float:
        value = self.limits[name]
        return float(value if isinstance(value, Integral) else value * self.n_documents)
