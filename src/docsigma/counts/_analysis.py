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
    stop_words = settings["stop_words"]
    if isinstance(stop_words, tuple):
        stop_words = list(stop_words)
    elif stop_words not in {None, "english"}:
        raise InputError(
            f"`stop_words` must be `english`, or in Python a list of words, got "
            f"{stop_words!r:.80}"
        )
    tokenizer = resolve_tokenizer(settings.get("tokenizer"))
    if tokenizer is not None and settings["analyzer"] != "word":
        raise InputError(
            f"`tokenizer` makes words, but `analyzer` is {settings['analyzer']!r}"
        )
    used = {**settings, "stop_words": stop_words, "tokenizer": tokenizer}
    try:
        vectorizer = CountVectorizer(**used)
        vectorizer._validate_params()
        vectorizer._validate_ngram_range()
        build: Callable[[str], list[str]] = vectorizer.build_analyzer()
    except (ValueError, TypeError, re.error) as error:
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
