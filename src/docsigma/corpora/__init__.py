"""Where documents come from: corpora by name, and a user's own files."""

from __future__ import annotations

from docsigma.corpora.documents import Corpus, Documents
from docsigma.corpora.files import read_documents
from docsigma.corpora.registry import (
    CorpusInfo,
    NamedCorpus,
    available_corpora,
    load_corpus,
)
from docsigma.corpora.synthetic import SyntheticTruth

__all__ = [
    "Corpus",
    "CorpusInfo",
    "Documents",
    "NamedCorpus",
    "SyntheticTruth",
    "available_corpora",
    "load_corpus",
    "read_documents",
]
