"""Functions that cut texts into words where no spaces do, by name or as given."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from docsigma.exceptions import InputError

Cutter = Callable[[str], Iterable[str]]


# Name of the library: its language, the module to import, and the function in it.
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
    # jieba would log to standard error how it loads its dictionary.
    logging.getLogger("jieba").setLevel(logging.WARNING)
    return cutter(library)


@dataclass(frozen=True)
class NamedTokenizer:
    """A tokenizer of a library, which is imported when the first text comes.

    Words are what has a letter or a digit; punctuation is left out.
    """

    name: str

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text."""
        words = _load(self.name)(text)
        return [word for word in words if any(map(str.isalnum, word))]


@dataclass(frozen=True)
class ForgottenTokenizer:
    """Stands for a function of the user's that a folder knows only by its name."""

    name: str

    def __call__(self, text: str) -> list[str]:
        """Refuse: the function is not here."""
        del text
        raise InputError(
            f"the texts were cut into words by the function `{self.name}`, which is "
            "not kept with the model: pass it again, as in "
            f"DocumentEmbedder.load(folder, tokenizer={self.name.split('.')[-1]})"
        )


def resolve_tokenizer(tokenizer: object) -> Cutter | None:
    """Return the function of a tokenizer that is a name, a function or None.

    Raises
    ------
    InputError
        If it is none of these.

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
    """Return what a file keeps of a tokenizer: its name, never code.

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


def restored_tokenizer(stored: object) -> object:
    """Return what :func:`stored_tokenizer` wrote; nothing is imported."""
    if isinstance(stored, dict):
        return ForgottenTokenizer(str(stored.get("function")))
    return stored
