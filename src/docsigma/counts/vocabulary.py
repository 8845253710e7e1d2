"""Text to counts: which words are counted, and how texts are split into words."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from tqdm import tqdm

from docsigma.counts._analysis import TOKEN_PATTERN, build_analyzer
from docsigma.counts._checks import check_counts, check_words
from docsigma.counts._tokenizers import (
    ForgottenTokenizer,
    resolve_tokenizer,
    stored_tokenizer,
)
from docsigma.counts.texts import as_texts
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from docsigma.corpora.documents import Documents


@dataclass(frozen=True, eq=False)
class CountedDocuments:
    """Word counts of documents, with the numbers of known and unknown tokens.

    Attributes
    ----------
    counts : csr_matrix of float32, shape (n_documents, n_features)
        Counts of the vocabulary's words, indices sorted.
    n_tokens : ndarray of int64, shape (n_documents,)
        Tokens of each document that are in the vocabulary.
    n_unknown : ndarray of int64, shape (n_documents,)
        Tokens of each document that are not.

    Examples
    --------
    >>> counted = Vocabulary.from_words(["sun", "rain"]).count(["rain and rain"])
    >>> counted.n_tokens, counted.n_unknown
    (array([2]), array([1]))
    """

    counts: sparse.csr_matrix
    n_tokens: NDArray[np.int64]
    n_unknown: NDArray[np.int64]

    @classmethod
    def of(cls, counts: sparse.csr_matrix) -> CountedDocuments:
        """Return checked counts without unknown tokens."""
        checked = check_counts(counts)
        return cls(checked, _row_sums(checked), np.zeros(checked.shape[0], np.int64))

    def __len__(self) -> int:
        return int(self.n_tokens.shape[0])


class _Tally:
    """An analyzer that records the number of tokens of each text, known or not."""

    def __init__(self, analyze: Callable[[str], list[str]]) -> None:
        self.analyze = analyze
        self.lengths: list[int] = []

    def __call__(self, text: str) -> list[str]:
        tokens = self.analyze(text)
        self.lengths.append(len(tokens))
        return tokens

    def counted(self, counts: sparse.csr_matrix) -> CountedDocuments:
        counts.sort_indices()
        n_tokens = _row_sums(counts)
        return CountedDocuments(
            counts, n_tokens, np.asarray(self.lengths, dtype=np.int64) - n_tokens
        )


def _texts(texts: Iterable[object], verbose: bool) -> Iterable[str]:
    """Return texts, which show a progress bar while they are counted."""
    known = as_texts(texts)
    return tqdm(known, "counting", unit="text", delay=2) if verbose else known


def _row_sums(counts: sparse.csr_matrix) -> NDArray[np.int64]:
    return np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel().astype(np.int64)


@dataclass(frozen=True, repr=False)
class Vocabulary:
    r"""The words that are counted, and how texts are split into words.

    The settings are those of scikit-learn's ``CountVectorizer``. Instances are
    immutable, and equal if words and settings are.

    Attributes
    ----------
    words : tuple of str
        Word of each column.
    lowercase : bool
    token_pattern : str
    ngram_range : tuple of two int
    strip_accents : {"ascii", "unicode"} or None
    stop_words : "english", tuple of str or None
    analyzer : {"word", "char", "char_wb"}
    tokenizer : {"jieba", "janome", "pythainlp"}, function or None
        Splits texts into words in place of `token_pattern`. Of a function only the
        name is saved.

    Examples
    --------
    >>> texts = ["the sun and the rain", "rain or sun"]
    >>> vocabulary = Vocabulary.from_texts(texts)
    >>> vocabulary.words
    ('rain', 'sun')
    >>> vocabulary.count(["Sun, sun, clouds"]).counts.toarray()
    array([[0., 2.]], dtype=float32)
    """

    words: tuple[str, ...]
    lowercase: bool = True
    token_pattern: str = TOKEN_PATTERN
    ngram_range: tuple[int, int] = (1, 1)
    strip_accents: str | None = None
    stop_words: str | tuple[str, ...] | None = None
    analyzer: str = "word"
    tokenizer: str | Callable[[str], Iterable[str]] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "words", check_words(self.words, name="the vocabulary")
        )
        if isinstance(self.stop_words, list | set | frozenset | np.ndarray):
            object.__setattr__(self, "stop_words", tuple(sorted(self.stop_words)))
        if isinstance(self.ngram_range, list):
            object.__setattr__(self, "ngram_range", tuple(self.ngram_range))
        build_analyzer(self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The analysis settings, by their names in ``CountVectorizer``."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "words"
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the words, in hex: equal for equal columns.

        Examples
        --------
        >>> Vocabulary.from_words(["sun", "rain"]).digest[:12]
        'e212386d65bd'
        """
        joined = "\n".join(self.words).encode("utf-8", "surrogatepass")
        return hashlib.sha256(joined).hexdigest()

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Vocabulary:
        """Make a vocabulary of given words, in their order, with default settings.

        Examples
        --------
        >>> Vocabulary.from_words(["sun", "rain"])
        Vocabulary(2 words)
        """
        return cls(check_words(words, name="the vocabulary"))

    @classmethod
    def from_texts(cls, texts: Iterable[object], **settings: Any) -> Vocabulary:
        """Make a vocabulary of the words of `texts`; settings as in `fit_count`."""
        return cls.fit_count(texts, **settings)[0]

    @classmethod
    def fit_count(
        cls, texts: Iterable[object], *, verbose: bool = False, **settings: Any
    ) -> tuple[Vocabulary, CountedDocuments]:
        """Make a vocabulary of `texts` and count them, in one pass over the texts.

        Parameters
        ----------
        texts : iterable of str
        verbose : bool, default=False
            Whether a progress bar is shown if it takes longer than two seconds.
        **settings
            Those of :class:`WordFrequencies`: ``min_df``, ``max_df`` and
            ``max_features`` choose the words; ``lowercase``, ``stop_words``,
            ``token_pattern``, ``ngram_range``, ``strip_accents`` and ``tokenizer``
            split the texts.

        Examples
        --------
        >>> vocabulary, counted = Vocabulary.fit_count(["a sun", "no sun"], min_df=2)
        >>> vocabulary.words, counted.n_tokens, counted.n_unknown
        (('sun',), array([1, 1]), array([0, 1]))
        """
        from docsigma.counts.word_frequencies import WordFrequencies

        frequencies = WordFrequencies(**settings)
        tally = _Tally(frequencies.analyze)
        every_word = CountVectorizer(analyzer=tally, dtype=np.float32)
        try:
            counts = sparse.csr_matrix(every_word.fit_transform(_texts(texts, verbose)))
        except InputError:  # from a tokenizer
            raise
        except ValueError as error:  # from scikit-learn: no token at all
            raise InputError(
                f"none of the {len(tally.lengths)} texts has a word to count"
            ) from error
        words = every_word.get_feature_names_out().tolist()
        frequencies.add_counts(words, counts)
        vocabulary = frequencies.vocabulary()
        if len(vocabulary) < len(words):
            columns = [every_word.vocabulary_[word] for word in vocabulary.words]
            counts = counts[:, columns]
        return vocabulary, tally.counted(counts)

    @classmethod
    def from_vectorizer(cls, vectorizer: Any) -> Vocabulary:
        """Make a vocabulary from a fitted ``CountVectorizer``.

        Refused are those that cannot be saved, with functions or files as input, and
        those that do not count (``binary=True``).
        """
        if not isinstance(vectorizer, CountVectorizer):
            kind = type(vectorizer).__name__
            raise InputError(f"`vectorizer` must be a CountVectorizer, got {kind}")
        for option in ("analyzer", "tokenizer", "preprocessor", "strip_accents"):
            if callable(getattr(vectorizer, option)):
                raise InputError(
                    f"`vectorizer` has a function as `{option}`, which cannot be saved"
                )
        if type(vectorizer).build_analyzer is not CountVectorizer.build_analyzer:
            raise InputError("`vectorizer` has its own build_analyzer: cannot be saved")
        if vectorizer.binary or vectorizer.input != "content":
            raise InputError(
                "`vectorizer` must count texts: binary=False and input='content', got "
                f"binary={vectorizer.binary} and input={vectorizer.input!r}"
            )
        try:
            words = tuple(map(str, vectorizer.get_feature_names_out()))
        except (NotFittedError, ValueError) as error:
            raise InputError(
                "`vectorizer` is not fitted: call its fit first"
            ) from error
        names = [f.name for f in fields(cls) if f.name not in {"words", "tokenizer"}]
        return cls(words, **{name: getattr(vectorizer, name) for name in names})

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Vocabulary:
        """Make the vocabulary that `to_dict` described."""
        names = [field.name for field in fields(cls)]
        if not hasattr(state, "keys") or set(state) != set(names):
            found = sorted(map(str, state)) if hasattr(state, "keys") else state
            raise InputError(
                f"a saved vocabulary must have the entries {names}, got {found!r:.200}"
            )
        values = dict(state)
        for name in ("words", "ngram_range", "stop_words"):
            if isinstance(values[name], list):
                values[name] = tuple(values[name])
        tokenizer = values["tokenizer"]
        if isinstance(tokenizer, dict):
            values["tokenizer"] = ForgottenTokenizer(str(tokenizer.get("function")))
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return words and settings as a JSON-safe dictionary.

        Examples
        --------
        >>> vocabulary = Vocabulary.from_words(["sun", "rain"])
        >>> vocabulary.to_dict()["words"]
        ['sun', 'rain']
        >>> Vocabulary.from_dict(vocabulary.to_dict()) == vocabulary
        True
        """
        state = {"words": self.words, **self.settings}
        state["tokenizer"] = stored_tokenizer(self.tokenizer)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in state.items()
        }

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words)"

    def vectorizer(self) -> CountVectorizer:
        """Return a ``CountVectorizer`` with these words, ready to transform."""
        settings = self.settings
        if isinstance(self.stop_words, tuple):
            settings["stop_words"] = list(self.stop_words)
        settings["tokenizer"] = resolve_tokenizer(self.tokenizer)
        if self.tokenizer is not None:
            settings["token_pattern"] = None
        return CountVectorizer(vocabulary=list(self.words), **settings)

    def count(
        self, texts: Iterable[object], *, verbose: bool = False
    ) -> CountedDocuments:
        """Count the vocabulary's words in `texts`, and the unknown tokens.

        With `verbose`, a bar is shown if it takes longer than two seconds.
        """
        tally = _Tally(build_analyzer(self.settings))
        counter = CountVectorizer(
            vocabulary=self._columns, analyzer=tally, dtype=np.float32
        )
        # Skips CountVectorizer's check, which takes longer than counting a few texts.
        counter.vocabulary_, counter.fixed_vocabulary_ = self._columns, True
        counts = counter.transform(_texts(texts, verbose))
        return tally.counted(sparse.csr_matrix(counts))

    def in_order(self, texts: Iterable[object]) -> list[NDArray[np.intp]]:
        """Return the columns of the known tokens of each text, in its order.

        Of n-grams, the shorter ones come first.

        Examples
        --------
        >>> Vocabulary.from_words(["sun", "rain"]).in_order(["rain, no sun, rain"])
        [array([1, 0, 1])]
        """
        analyze, columns = build_analyzer(self.settings), self._columns
        return [
            np.array([columns[t] for t in analyze(text) if t in columns], np.intp)
            for text in as_texts(texts)
        ]

    def count_documents(
        self, documents: Documents, *, verbose: bool = False
    ) -> CountedDocuments:
        """Count documents that are texts, or arrange counts by these words.

        Counts with named columns are matched by word, and tokens of other words are
        unknown. Counts without names must have as many columns as there are words.
        """
        if documents.texts is not None:
            return self.count(documents.texts, verbose=verbose)
        assert documents.counts is not None
        counted = CountedDocuments.of(documents.counts)
        counts = counted.counts
        if documents.words is None:
            if counts.shape[1] != len(self):
                of = f" of {documents.source}" if documents.source else ""
                raise InputError(
                    f"the counts{of} have {counts.shape[1]} columns but the vocabulary "
                    f"has {len(self)} words"
                )
        elif tuple(documents.words) != self.words:
            return self._match(counts, documents.words)
        return counted

    def _match(self, counts: sparse.csr_matrix, words: list[str]) -> CountedDocuments:
        target = np.array([self._columns.get(word, -1) for word in words], dtype=int)
        known = np.flatnonzero(target >= 0)
        move = sparse.csr_matrix(
            (np.ones(len(known), dtype=np.float32), (known, target[known])),
            shape=(len(words), len(self)),
        )
        matched = sparse.csr_matrix(counts @ move)
        matched.sort_indices()
        n_tokens = _row_sums(matched)
        return CountedDocuments(matched, n_tokens, _row_sums(counts) - n_tokens)

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {word: column for column, word in enumerate(self.words)}
