"""Corpora by name."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docsigma.corpora import docstrings, fisher, newsgroups, switchboard, synthetic
from docsigma.corpora._data import data_files, missing_files
from docsigma.corpora._streams import base_name
from docsigma.corpora.documents import Corpus
from docsigma.corpora.files import SUFFIXES, read_documents
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

__all__ = ["CorpusInfo", "available_corpora", "load_corpus"]


@dataclass(frozen=True)
class CorpusInfo:
    """A corpus that `load_corpus` knows.

    Attributes
    ----------
    name, description : str
    available : bool
        Whether it can be loaded now, without a network.
    how : str
        Where it comes from, or how to have it.
    """

    name: str
    description: str
    available: bool
    how: str


_LOADERS: dict[str, Callable[..., Corpus]] = {
    "20newsgroups": newsgroups.load_newsgroups,
    "20newsgroups-2k": newsgroups.load_newsgroups_2k,
    "switchboard": switchboard.load_switchboard,
    "switchboard-asr": switchboard.load_switchboard_asr,
    "fisher": fisher.load_fisher,
    "fisher-asr": fisher.load_fisher_asr,
    "docstrings": docstrings.load_docstrings,
    "synthetic": synthetic.load_synthetic,
}


def available_corpora() -> list[CorpusInfo]:
    """List every corpus, whether it is at hand, and how to have it.

    Examples
    --------
    >>> [info.name for info in available_corpora() if info.available][-1]
    'synthetic'
    """
    at_hand = newsgroups.newsgroups_at_hand()
    packages = docstrings.installed_packages()
    return [
        CorpusInfo(
            "20newsgroups",
            newsgroups.DESCRIPTION,
            at_hand,
            "at hand" if at_hand else newsgroups.HOW,
        ),
        _packed(
            "20newsgroups-2k",
            newsgroups.DESCRIPTION_2K,
            newsgroups.FOLDER_2K,
            newsgroups.FILES_2K,
        ),
        _packed(
            "switchboard",
            switchboard.DESCRIPTION,
            switchboard.FOLDER,
            switchboard.FILES,
        ),
        _packed(
            "switchboard-asr",
            switchboard.ASR_DESCRIPTION,
            switchboard.FOLDER,
            switchboard.ASR_FILES,
        ),
        *_fisher(),
        CorpusInfo(
            "docstrings",
            docstrings.DESCRIPTION,
            bool(packages),
            f"from the installed {', '.join(packages)}"
            if packages
            else f"install one of {', '.join(docstrings.PACKAGES)}",
        ),
        CorpusInfo("synthetic", synthetic.DESCRIPTION, True, "drawn when asked for"),
    ]


def _fisher() -> list[CorpusInfo]:
    named = {
        "fisher": (fisher.DESCRIPTION, fisher.HOW),
        "fisher-asr": (fisher.ASR_DESCRIPTION, fisher.ASR_HOW),
    }
    return [
        CorpusInfo(name, text, there, "at hand" if there else how)
        for (name, (text, how)), there in zip(
            named.items(), fisher.fisher_at_hand(), strict=True
        )
    ]


def _packed(
    name: str, description: str, folder: str, files: tuple[str, ...]
) -> CorpusInfo:
    there = data_files(folder, files) is not None
    how = "at hand" if there else missing_files(folder, files)
    return CorpusInfo(name, description, there, how)


def load_corpus(name: str | os.PathLike[str], **options: Any) -> Corpus:
    """Load a corpus by its name, or a file or folder by its path.

    Parameters
    ----------
    name : str or path
        A name that `available_corpora` lists, or what `read_documents` can read:
        then all documents are training documents.
    **options
        Options of that corpus, such as ``words=(201, 400)`` for ``switchboard``. For
        a path those of `read_documents`, and ``test``, a path to test documents.

    Returns
    -------
    Corpus

    Raises
    ------
    InputError
        If the name or an option is unknown, or the corpus cannot be had.

    Examples
    --------
    >>> corpus = load_corpus("synthetic", n_train=20)
    >>> corpus.train
    Documents(20 counts, source='synthetic, train')
    """
    loader = _LOADERS.get(str(name))
    if loader is not None:
        _check_options(str(name), loader, options)
        return loader(**options)
    path = Path(name)
    is_path = (
        not isinstance(name, str)
        or len(path.parts) > 1
        or Path(base_name(path)).suffix.lower() in SUFFIXES
    )
    if not is_path and not path.exists():
        raise InputError(
            f"unknown corpus `{name}`, known are {', '.join(_LOADERS)}; "
            "a path to a file also works"
        )
    _check_options(str(name), _load_path, options, skip=("path",))
    return _load_path(path, **options)


def _load_path(
    path: Path,
    *,
    test: str | os.PathLike[str] | None = None,
    text_column: str = "text",
    label_column: str | None = "label",
    id_column: str | None = "id",
    vocabulary: str | os.PathLike[str] | None = None,
) -> Corpus:
    options: dict[str, Any] = {
        "text_column": text_column,
        "label_column": label_column,
        "id_column": id_column,
        "vocabulary": vocabulary,
    }
    train = read_documents(path, **options)
    held_out = train[:0] if test is None else read_documents(test, **options)
    return Corpus(str(path), train, held_out, description=f"documents of {path}")


def _check_options(
    name: str,
    loader: Callable[..., Corpus],
    options: dict[str, Any],
    skip: tuple[str, ...] = (),
) -> None:
    parameters = inspect.signature(loader).parameters
    known = [option for option in parameters if option not in skip]
    for option in options:
        if option not in known:
            listed = ", ".join(f"`{one}`" for one in known) or "none"
            raise InputError(
                f"the corpus `{name}` has no option `{option}`, "
                f"its options are: {listed}"
            )
    for option in known:
        wanted = parameters[option].default is inspect.Parameter.empty
        if wanted and option not in options:
            raise InputError(f"the corpus `{name}` needs the option `{option}`")
