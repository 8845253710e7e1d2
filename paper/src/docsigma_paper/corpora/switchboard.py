"""Switchboard: sides of telephone conversations, labelled with their topic."""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from docsigma.corpora import NamedCorpus, read_documents
from docsigma.corpora._data import files_status, require_files
from docsigma.corpora.documents import Corpus
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.corpora.documents import Documents

__all__ = [
    "SWITCHBOARD",
    "SWITCHBOARD_ASR",
    "load_switchboard",
    "load_switchboard_asr",
    "word_window",
]

FOLDER = "switchboard"
FILES = ("train.jsonl.xz", "test.jsonl.xz")
ASR_FILES = ("train-asr.jsonl.xz", "test-asr.jsonl.xz")

DESCRIPTION = "Sides of telephone conversations by topic (40), transcribed by hand"
ASR_DESCRIPTION = (
    "The same sides with simulated recognition errors, about 18 % of the words"
)


def word_window(documents: Documents, words: tuple[int, int] | None) -> Documents:
    """Keep the words `first` to `last` of each text, counted from 1, both included.

    A document that ends before the window becomes an empty text and stays.

    Examples
    --------
    >>> from docsigma.corpora.documents import Documents
    >>> documents = Documents(["a", "b"], texts=["so it rained again", "yes"])
    >>> word_window(documents, (2, 3)).texts
    ['it rained', '']
    """
    if words is None or documents.texts is None:
        return documents
    try:
        first, last = (operator.index(bound) for bound in words)
    except (TypeError, ValueError) as error:
        raise InputError(f"`words` must be two whole numbers, got {words!r}") from error
    if not 1 <= first <= last:
        raise InputError(
            f"`words` must have 1 <= first <= last, got {first} and {last}"
        )
    texts = [" ".join(text.split()[first - 1 : last]) for text in documents.texts]
    return replace(documents, texts=texts)


def load_switchboard(*, words: tuple[int, int] | None = None) -> Corpus:
    """Load the manual transcripts.

    Parameters
    ----------
    words : tuple of two int, optional
        Keep only this window of each side's words, see `word_window`.
    """
    return _load("switchboard", FILES, DESCRIPTION, words)


def load_switchboard_asr(*, words: tuple[int, int] | None = None) -> Corpus:
    """Load the twin with simulated recognition errors; as `load_switchboard`."""
    return _load("switchboard-asr", ASR_FILES, ASR_DESCRIPTION, words)


def _load(
    name: str,
    names: tuple[str, ...],
    description: str,
    words: tuple[int, int] | None,
) -> Corpus:
    train, test = require_files(FOLDER, names, name=name)
    return Corpus(
        name=name,
        train=word_window(read_documents(train), words),
        test=word_window(read_documents(test), words),
        description=description,
    )


SWITCHBOARD = NamedCorpus(
    load_switchboard, DESCRIPTION, partial(files_status, FOLDER, FILES)
)
SWITCHBOARD_ASR = NamedCorpus(
    load_switchboard_asr, ASR_DESCRIPTION, partial(files_status, FOLDER, ASR_FILES)
)
