"""Texts to word numbers: tokens in lower case with marks, and the vocabulary."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


# The marks have the names that fastai gave them: its published vocabulary has them.
UNKNOWN, PADDING, BEGINNING = "xxunk", "xxpad", "xxbos"
CAPITALISED, UPPER_CASE = "xxmaj", "xxup"
REPEATED_CHARACTER, REPEATED_WORD = "xxrep", "xxwrep"
SPECIAL_WORDS = (
    UNKNOWN,
    PADDING,
    BEGINNING,
    CAPITALISED,
    UPPER_CASE,
    REPEATED_CHARACTER,
    REPEATED_WORD,
)
_REPEATED = re.compile(r"([^\s\d])\1{3,}")
_WORD = re.compile(
    r"""
    \d+(?:[.,]\d+)*               # a number, points and commas in it
    | [^\W\d_]+?(?=n't\b)      # the "do" of "don't"
    | n't\b                    # and its "n't"
    | '(?:s|re|ve|ll|d|m)\b
    | \w+
    | [^\w\s]
    """,
    re.VERBOSE | re.IGNORECASE,
)


def check_texts(texts: Any, name: str) -> list[str]:
    """Return `texts` as a list after checking that they are strings.

    Raises
    ------
    InputError
        If `texts` is one string, no sequence, or an entry is not a string.
    """
    if isinstance(texts, str) or not hasattr(texts, "__iter__"):
        kind = type(texts).__name__
        raise InputError(f"`{name}` must be a list of strings, got one {kind}")
    checked = list(texts)
    for number, text in enumerate(checked, start=1):
        if not isinstance(text, str):
            raise InputError(
                f"document {number} of `{name}` must be a string, "
                f"got {type(text).__name__}"
            )
    return checked


def tokenize(text: str) -> list[str]:
    """Cut a text into words and punctuation, all in lower case.

    What lower case and cutting lose is kept as a mark before the word: a capital
    (``xxmaj``), all capitals (``xxup``), a character (``xxrep``) or word
    (``xxwrep``) four times or more, with the number of times. Every text begins
    with ``xxbos``, so that none is empty.

    Examples
    --------
    >>> tokenize("Don't PANIC!!!!")
    ['xxbos', 'xxmaj', 'do', "n't", 'xxup', 'panic', 'xxrep', '4', '!']
    """
    text = unicodedata.normalize("NFC", text).replace(
        "\N{RIGHT SINGLE QUOTATION MARK}", "'"
    )
    text = _REPEATED.sub(
        lambda run: f" {REPEATED_CHARACTER} {len(run[0])} {run[1]} ", text
    )
    tokens = [BEGINNING]
    for word, run in groupby(_WORD.findall(text)):
        times = sum(1 for _ in run)
        if times > 3:
            tokens += [REPEATED_WORD, str(times)]
            times = 1
        tokens += _marked(word) * times
    return tokens


def _marked(word: str) -> list[str]:
    if len(word) > 1 and word.isupper():
        return [UPPER_CASE, word.lower()]
    if word[0].isupper() and word[1:].islower():
        return [CAPITALISED, word.lower()]
    return [word.lower()]


@dataclass(frozen=True, repr=False)
class WordVocabulary:
    """The words that a language model knows, the marks first.

    Attributes
    ----------
    words : tuple of str
        Word of each number.

    Examples
    --------
    >>> vocabulary = WordVocabulary.from_tokens([["sun", "rain", "sun"]], min_count=2)
    >>> vocabulary
    WordVocabulary(8 words)
    >>> vocabulary.encode(["xxbos", "sun", "rain"])
    array([2, 7, 0])
    """

    words: tuple[str, ...]

    @classmethod
    def from_tokens(
        cls,
        documents: Iterable[Iterable[str]],
        *,
        max_words: int = 60_000,
        min_count: int = 2,
    ) -> WordVocabulary:
        """Build a vocabulary of the commonest words of tokenized documents.

        Parameters
        ----------
        documents : iterable of iterables of str
            Tokens of each document.
        max_words : int
            Most words to keep, besides the marks.
        min_count : int
            Words that occur less often are not taken.
        """
        counts: Counter[str] = Counter()
        for tokens in documents:
            counts.update(tokens)
        for word in SPECIAL_WORDS:
            counts.pop(word, None)
        common = sorted(counts, key=lambda word: (-counts[word], word))[:max_words]
        kept = (word for word in common if counts[word] >= min_count)
        return cls((*SPECIAL_WORDS, *kept))

    def encode(self, tokens: Iterable[str]) -> NDArray[np.int64]:
        """Return the number of each token; a word that is not known has number 0."""
        numbers = self._numbers
        return np.array([numbers.get(token, 0) for token in tokens], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"WordVocabulary({len(self)} words)"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}
