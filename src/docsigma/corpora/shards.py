"""Counts on disk: folders of shards that are read without loading them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsigma.corpora._shard_manifest import is_counts_folder
from docsigma.corpora.shard_writer import ShardWriter
from docsigma.corpora.sharded_counts import ShardedCounts

if TYPE_CHECKING:
    import os

__all__ = ["ShardWriter", "ShardedCounts", "is_counts_folder", "shard_digest"]


def shard_digest(counts: str | os.PathLike[str] | ShardedCounts) -> str:
    """Fingerprint of a folder of counts, for checkpoints; reads no counts.

    It is made of the checksums that were taken when the folder was written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from scipy import sparse
    >>> folder = Path(tempfile.mkdtemp()) / "weather"
    >>> with ShardWriter(folder, n_features=2) as writer:
    ...     writer.add(sparse.csr_matrix([[2, 0]]))
    >>> shard_digest(folder) == ShardedCounts.open(folder).digest
    True
    """
    if not isinstance(counts, ShardedCounts):
        counts = ShardedCounts.open(counts)
    return counts.digest
