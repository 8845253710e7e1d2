"""Documents looked up: search that knows how sure it is."""

from __future__ import annotations

from docsigma.search.calibration import SameTopicCalibration
from docsigma.search.documents import DocumentIndex, Match
from docsigma.search.index import GaussianIndex, SearchResult

__all__ = [
    "DocumentIndex",
    "GaussianIndex",
    "Match",
    "SameTopicCalibration",
    "SearchResult",
]
