"""Splitting texts into words: scikit-learn's analysis, with checked settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sklearn.feature_extraction.text import CountVectorizer

from docsigma.counts._tokenizers import resolve_tokenizer
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


TOKEN_PATTERN = r"(?u)\b\w\w+\b"


def build_analyzer(settings: Mapping[str, Any]) -> Callable[[str], list[str]]:
    """Return the function from text to tokens after checking its settings.

    Examples
    --------
    >>> settings = {"lowercase": True, "token_pattern": TOKEN_PATTERN,
    ...             "ngram_range": (1, 2), "strip_accents": None,
    ...             "stop_words": None, "analyzer": "word"}
    >>> build_analyzer(settings)("Sun, then rain")
    ['sun', 'then', 'rain', 'sun then', 'then rain']
    """
    kinds: dict[str, Any] = {
        "lowercase": bool,
        "token_pattern": str,
        "ngram_range": tuple,
        "strip_accents": str | None,
        "stop_words": str | tuple | None,
        "analyzer": str,
        "tokenizer": object,
    }
    for name, value in settings.items():
        if not isinstance(value, kinds[name]):
            raise InputError(f"`{name}` has a value of the wrong type: {value!r:.80}")
    ngram_range = settings["ngram_range"]
    stop_words = settings["stop_words"]
    if isinstance(stop_words, tuple):
        if not all(isinstance(word, str) for word in stop_words):
            raise InputError(f"`stop_words` must be strings, got {stop_words!r:.80}")
        stop_words = list(stop_words)
    elif stop_words not in {None, "english"}:
        raise InputError(
            f"`stop_words` must be `english`, or in Python a list of words, got "
            f"{stop_words!r:.80}"
        )
    ranged = len(ngram_range) == 2 and all(isinstance(n, int) for n in ngram_range)
    if not ranged or not 1 <= ngram_range[0] <= ngram_range[1]:
        raise InputError(
            "`ngram_range` must be two whole numbers, 1 <= first <= last, "
            f"got {ngram_range!r:.80}"
        )
    tokenizer = resolve_tokenizer(settings.get("tokenizer"))
    if tokenizer is not None and settings["analyzer"] != "word":
        raise InputError(
            f"`tokenizer` makes words, but `analyzer` is {settings['analyzer']!r}"
        )
    used = {**settings, "stop_words": stop_words, "tokenizer": tokenizer}
    try:
        build: Callable[[str], list[str]] = CountVectorizer(**used).build_analyzer()
    except (ValueError, re.error) as error:
        raise InputError(f"the analysis settings are not valid: {error}") from error
    if tokenizer is None:
        return build
    return lambda text: _check_tokens(build(text), tokenizer)


def _check_tokens(tokens: list[str], tokenizer: object) -> list[str]:
    for token in tokens:
        if not isinstance(token, str):
            raise InputError(
                f"the tokenizer {getattr(tokenizer, '__name__', tokenizer)} must "
                f"return strings, got {type(token).__name__}"
            )
    return tokens
