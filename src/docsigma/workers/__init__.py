"""Processing of Arrow batches on the workers of Ray, Spark or any other engine."""

from __future__ import annotations

from docsigma.workers.classify_batches import ClassifyBatches
from docsigma.workers.count_batches import CountBatches, write_counts
from docsigma.workers.embed_batches import EmbedBatches
from docsigma.workers.frequency_batches import FrequencyBatches

__all__ = [
    "ClassifyBatches",
    "CountBatches",
    "EmbedBatches",
    "FrequencyBatches",
    "write_counts",
]
