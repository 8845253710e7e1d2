"""Text to counts, and counts in memory or on disk by one interface."""

from __future__ import annotations

from docsigma.counts._base import Counts
from docsigma.counts._checks import check_counts, check_words
from docsigma.counts.disk import DiskCounts, is_counts_folder
from docsigma.counts.memory import MemoryCounts, as_counts
from docsigma.counts.vocabulary import CountedDocuments, Vocabulary
from docsigma.counts.word_frequencies import WordFrequencies
from docsigma.counts.writer import CountsWriter

__all__ = [
    "CountedDocuments",
    "Counts",
    "CountsWriter",
    "DiskCounts",
    "MemoryCounts",
    "Vocabulary",
    "WordFrequencies",
    "as_counts",
    "check_counts",
    "check_words",
    "is_counts_folder",
]
