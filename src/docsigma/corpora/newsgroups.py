"""20 Newsgroups: Usenet postings, as raw text and as counts of 2000 words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import datasets

from docsigma.corpora._data import DATA_VARIABLE, data_files, require_files
from docsigma.corpora._streams import numbered_lines
from docsigma.corpora.documents import Corpus, Documents, distinct
from docsigma.corpora.files import read_documents
from docsigma.counts._checks import check_counts, check_words
from docsigma.exceptions import InputError

FOLDER = "20newsgroups"
FILES = ("train.jsonl.xz", "test.jsonl.xz")
FOLDER_2K = "20newsgroups-nvdm2000"
FILES_2K = ("train.feat.xz", "train.ids.xz", "test.feat.xz", "test.ids.xz", "vocab.new")

DESCRIPTION = "Usenet postings of 20 newsgroups, split by date, headers kept"
DESCRIPTION_2K = "20 Newsgroups as counts of the 2000 words that NVDM uses"
HOW = f"set {DATA_VARIABLE}, or connect to the internet once for scikit-learn to fetch"

GROUPS = (
    "alt.atheism",
    "comp.graphics",
    "comp.os.ms-windows.misc",
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
    "comp.windows.x",
    "misc.forsale",
    "rec.autos",
    "rec.motorcycles",
    "rec.sport.baseball",
    "rec.sport.hockey",
    "sci.crypt",
    "sci.electronics",
    "sci.med",
    "sci.space",
    "soc.religion.christian",
    "talk.politics.guns",
    "talk.politics.mideast",
    "talk.politics.misc",
    "talk.religion.misc",
)


def newsgroups_status() -> tuple[bool, str]:
    """Return whether `load_newsgroups` needs no network, and how to get the files."""
    home = os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")
    cache = Path(home).expanduser() / "20news-bydate_py3.pkz"
    there = data_files(FOLDER, FILES) is not None or cache.is_file()
    return there, "at hand" if there else HOW


def load_newsgroups() -> Corpus:
    """Load the raw postings, from DOCSIGMA_DATA or by scikit-learn's fetcher.

    Both return the same documents in the same order: by newsgroup, then by the number
    of the article.
    """
    files = data_files(FOLDER, FILES)
    if files is not None:
        train, test = (read_documents(file) for file in files)
    else:
        train, test = (_fetch(subset) for subset in ("train", "test"))
    return Corpus("20newsgroups", train, test, description=DESCRIPTION)


def _fetch(subset: str) -> Documents:
    try:
        bunch: Any = datasets.fetch_20newsgroups(subset=subset, shuffle=False)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(
            f"the corpus `20newsgroups` could not be fetched ({error}): set "
            f"{DATA_VARIABLE} to the folder that holds {FOLDER}/, or connect to the "
            "internet once"
        ) from error
    names = [Path(name) for name in bunch.filenames]
    labels = [str(bunch.target_names[target]) for target in bunch.target]
    articles = [name.name for name in names]
    order = sorted(
        range(len(names)),
        key=lambda row: (labels[row], len(articles[row]), articles[row]),
    )
    return Documents(
        ids=[f"{labels[row]}/{articles[row]}" for row in order],
        texts=[bunch.data[row] for row in order],
        labels=[labels[row] for row in order],
        source=f"scikit-learn's 20newsgroups, {subset}",
    )


def load_newsgroups_2k() -> Corpus:
    """Load the 2000-word counts; 11268 documents to train on, 7505 to test on."""
    files = require_files(FOLDER_2K, FILES_2K, name="20newsgroups-2k")
    train, train_ids, test, test_ids, vocabulary = files
    words = [line.split()[0] for _, line in numbered_lines(vocabulary) if line.strip()]
    check_words(words, name=str(vocabulary))
    return Corpus(
        "20newsgroups-2k",
        _read_features(train, train_ids, words),
        _read_features(test, test_ids, words),
        description=DESCRIPTION_2K,
    )


def _read_features(path: Path, ids_path: Path, words: list[str]) -> Documents:
    """Read lines of ``label index:count index:count ...``, indices from 1."""
    labels: list[str] = []
    columns: list[int] = []
    values: list[int] = []
    starts = [0]
    for number, line in numbered_lines(path):
        try:
            label, *pairs = line.split()
            for pair in pairs:
                column, _, count = pair.partition(":")
                columns.append(int(column) - 1)
                values.append(int(count))
            group = int(label)
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: not `label index:count ...` ({error})"
            ) from error
        if not 1 <= group <= len(GROUPS):
            raise InputError(
                f"{path}, line {number}: the label must be 1 to {len(GROUPS)}, "
                f"got {group}"
            )
        line_columns = columns[starts[-1] :]
        if line_columns and not 0 <= min(line_columns) <= max(line_columns) < len(
            words
        ):
            raise InputError(
                f"{path}, line {number}: indices must be 1 to {len(words)}, got "
                f"{min(line_columns) + 1} to {max(line_columns) + 1}"
            )
        labels.append(GROUPS[group - 1])
        starts.append(len(columns))
    if not labels:
        raise InputError(f"{path} has no documents")
    counts = sparse.csr_matrix(
        (np.array(values), np.array(columns, dtype=np.int32), np.array(starts)),
        shape=(len(labels), len(words)),
    )
    ids = [line.strip() for _, line in numbered_lines(ids_path)]
    if len(ids) != len(labels):
        raise InputError(
            f"{ids_path} has {len(ids)} ids but {path} has {len(labels)} documents"
        )
    # A document without an id is named by its label and line.
    named = [
        f"{label}/line-{number}" if name in ("", "?") else name
        for number, (name, label) in enumerate(zip(ids, labels, strict=True), start=1)
    ]
    return Documents(
        ids=distinct(named, "#{}"),
        counts=check_counts(counts, name=str(path)),
        labels=labels,
        words=words,
        source=str(path),
    )
