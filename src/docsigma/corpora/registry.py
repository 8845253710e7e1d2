"""Corpora by name."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docsigma._extensions import find_registered, install_hint, registered_names
from docsigma.corpora import docstrings, newsgroups, synthetic
from docsigma.corpora._data import files_status
from docsigma.corpora._streams import base_name
from docsigma.corpora.documents import Corpus
from docsigma.corpora.files import (
    SPREADSHEETS,
    SUFFIXES,
    iter_documents,
    read_documents,
)
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable


@dataclass(frozen=True)
class CorpusInfo:
    """A corpus that `load_corpus` knows.

    Attributes
    ----------
    name, description : str
    available : bool
        Whether it can be loaded now, without a network.
    how : str
        Where it comes from, or how to get it.
    """

    name: str
    description: str
    available: bool
    how: str


@dataclass(frozen=True)
class NamedCorpus:
    """A corpus in a registry; an entry point of ``docsigma.corpora`` must be one.

    Attributes
    ----------
    load : callable
        Returns the Corpus; its parameters are the options of the corpus.
    description : str
        One phrase.
    status : callable
        Returns `available` and `how` of :class:`CorpusInfo`.
    """

    load: Callable[..., Corpus]
    description: str
    status: Callable[[], tuple[bool, str]]


# Other distributions add to these by entry points.
CORPORA: dict[str, NamedCorpus] = {
    "20newsgroups": NamedCorpus(
        newsgroups.load_newsgroups,
        newsgroups.DESCRIPTION,
        newsgroups.newsgroups_status,
    ),
    "20newsgroups-2k": NamedCorpus(
        newsgroups.load_newsgroups_2k,
        newsgroups.DESCRIPTION_2K,
        partial(files_status, newsgroups.FOLDER_2K, newsgroups.FILES_2K),
    ),
    "docstrings": NamedCorpus(
        docstrings.load_docstrings,
        docstrings.DESCRIPTION,
        docstrings.docstrings_status,
    ),
    "synthetic": NamedCorpus(
        synthetic.load_synthetic,
        synthetic.DESCRIPTION,
        lambda: (True, "drawn on request"),
    ),
}


def available_corpora() -> list[CorpusInfo]:
    """Return all corpora, whether each is available, and how to get it.

    Examples
    --------
    >>> "synthetic" in [info.name for info in available_corpora() if info.available]
    True
    """
    listed = []
    for name in registered_names("corpora", CORPORA):
        corpus = find_registered("corpora", name, CORPORA)
        assert corpus is not None
        listed.append(CorpusInfo(name, corpus.description, *corpus.status()))
    return listed


def load_corpus(name: str | os.PathLike[str], **options: Any) -> Corpus:
    """Load a corpus by its name, or a file or folder by its path.

    Parameters
    ----------
    name : str or path
        A name that `available_corpora` lists, or a path that `iter_documents` can
        read; its documents are then all training documents.
    **options
        Options of that corpus, such as ``n_train=20`` for ``synthetic``. For a path
        those of `iter_documents`, and ``test``, a path to test documents.

    Examples
    --------
    >>> corpus = load_corpus("synthetic", n_train=20)
    >>> corpus.train
    Documents(20 counts, source='synthetic, train')
    """
    corpus = find_registered("corpora", str(name), CORPORA)
    if corpus is not None:
        _check_options(str(name), options, inspect.signature(corpus.load))
        return corpus.load(**options)
    path = Path(name)
    is_path = (
        not isinstance(name, str)
        or len(path.parts) > 1
        or Path(base_name(path)).suffix.lower() in SUFFIXES + SPREADSHEETS
    )
    if not is_path and not path.exists():
        if where := install_hint("corpora", str(name)):
            raise InputError(f"the corpus `{name}` is {where}")
        raise InputError(
            f"unknown corpus `{name}`, known are "
            f"{', '.join(registered_names('corpora', CORPORA))}; a path to a file or "
            "folder also works"
        )
    test = inspect.signature(_load_path).parameters["test"]
    columns = list(inspect.signature(iter_documents).parameters.values())[1:]
    _check_options(str(name), options, inspect.Signature([test, *columns]))
    return _load_path(path, **options)


def _load_path(
    path: Path, *, test: str | os.PathLike[str] | None = None, **options: Any
) -> Corpus:
    train = read_documents(path, **options)
    held_out = train[:0] if test is None else read_documents(test, **options)
    return Corpus(str(path), train, held_out, description=f"documents of {path}")


def _check_options(
    name: str, options: dict[str, Any], signature: inspect.Signature
) -> None:
    for option in options:
        if option not in signature.parameters:
            listed = ", ".join(f"`{one}`" for one in signature.parameters) or "none"
            raise InputError(
                f"the corpus `{name}` has no option `{option}`, "
                f"its options are: {listed}"
            )
    for option, parameter in signature.parameters.items():
        if parameter.default is parameter.empty and option not in options:
            raise InputError(f"the corpus `{name}` needs the option `{option}`")
