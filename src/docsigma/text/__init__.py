"""The embedder and the classifier that take raw text."""

from __future__ import annotations

from docsigma.counts.texts import as_texts, beginning
from docsigma.text.embedder import DocumentEmbedder, Topic
from docsigma.text.parallel_embedder import ParallelEmbedder
from docsigma.text.topic_classifier import TopicClassifier

__all__ = [
    "DocumentEmbedder",
    "ParallelEmbedder",
    "Topic",
    "TopicClassifier",
    "as_texts",
    "beginning",
]
