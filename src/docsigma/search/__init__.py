"""Search for similar documents, with probabilities."""

from __future__ import annotations

from docsigma.search._queries import SearchResult
from docsigma.search.calibration import SameTopicCalibration
from docsigma.search.documents import DocumentIndex, Match
from docsigma.search.index import GaussianIndex

__all__ = [
    "DocumentIndex",
    "GaussianIndex",
    "Match",
    "SameTopicCalibration",
    "SearchResult",
]
