"""Topics with their shares over time."""

from __future__ import annotations

from typing import Any, NamedTuple


class TopicOverTime(NamedTuple):
    """A topic, and its share of the documents per period, with intervals.

    The first four fields are those of :class:`~docsigma.text.embedder.Topic`; `shares`
    has the rows of :meth:`~docsigma.groups.over_time.SharesOverTime.to_dicts`.
    """

    topic: int
    size: int
    words: list[str]
    documents: list[str]
    shares: list[dict[str, Any]]
