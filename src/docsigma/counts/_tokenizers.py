"""Tokenizers for texts without spaces between words: named libraries or functions."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from docsigma.exceptions import InputError

Cutter = Callable[[str], Iterable[str]]

# By name of the library: the language, the module to import, its function.
TOKENIZERS: dict[str, tuple[str, str, Callable[[Any], Cutter]]] = {
    "jieba": ("Chinese", "jieba", lambda jieba: jieba.lcut),
    "janome": (
        "Japanese",
        "janome.tokenizer",
        lambda janome: janome.Tokenizer(wakati=True).tokenize,
    ),
    "pythainlp": ("Thai", "pythainlp.tokenize", lambda thai: thai.word_tokenize),
}


@cache
def _load(name: str) -> Cutter:
    language, module, cutter = TOKENIZERS[name]
    try:
        library = importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"the tokenizer {name} ({language}) is not installed: pip install {name}"
        ) from error
    # jieba logs the loading of its dictionary to standard error.
    logging.getLogger("jieba").setLevel(logging.WARNING)
    return cutter(library)


@dataclass(frozen=True)
class NamedTokenizer:
    """A library's tokenizer, imported at the first text; leaves out punctuation."""

    name: str

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of a text that have a letter or a digit."""
        words = _load(self.name)(text)
        return [word for word in words if any(map(str.isalnum, word))]


@dataclass(frozen=True)
class ForgottenTokenizer:
    """Placeholder for a user's function, of which a folder holds only the name."""

    name: str

    def __call__(self, text: str) -> list[str]:
        """Raise an InputError that asks for the function."""
        del text
        raise InputError(
            f"the texts were split into words by the function `{self.name}`, which is "
            "not saved with the model: pass it again, as in "
            f"DocumentEmbedder.load(folder, tokenizer={self.name.split('.')[-1]})"
        )


def resolve_tokenizer(tokenizer: object) -> Cutter | None:
    """Return the function of a tokenizer that is a name, a function or None.

    Examples
    --------
    >>> resolve_tokenizer("jieba")
    NamedTokenizer(name='jieba')
    """
    if tokenizer is None:
        return None
    if isinstance(tokenizer, str) and tokenizer in TOKENIZERS:
        return NamedTokenizer(tokenizer)
    if callable(tokenizer):
        return tokenizer
    raise InputError(
        f"`tokenizer` must be one of {', '.join(TOKENIZERS)}, or in Python a function "
        f"from a text to its words, got {tokenizer!r:.80}"
    )


def stored_tokenizer(tokenizer: object) -> str | dict[str, str] | None:
    """Return what is saved of a tokenizer: its name, never code.

    Examples
    --------
    >>> stored_tokenizer("jieba"), stored_tokenizer(str.split)
    ('jieba', {'function': 'str.split'})
    """
    if tokenizer is None or isinstance(tokenizer, str):
        return tokenizer
    if isinstance(tokenizer, ForgottenTokenizer):
        return {"function": tokenizer.name}
    name = getattr(tokenizer, "__qualname__", type(tokenizer).__qualname__)
    return {"function": name}
