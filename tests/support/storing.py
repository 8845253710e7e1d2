"""Counts to store, and storing them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from docsigma.counts import CountsWriter, DiskCounts

__all__ = ["random_counts", "write"]


def random_counts(n, v, seed=0, largest=4):
    random = np.random.default_rng(seed)
    dense = random.integers(1, largest + 1, (n, v)) * (random.random((n, v)) < 0.2)
    dense[::5] = 0
    return sp.csr_matrix(dense.astype(np.float32))


def write(folder, counts, *, block=None, **options):
    names = ("labels", "ids", "n_unknown")
    columns = {name: options.pop(name) for name in names if name in options}
    block = block or max(1, counts.shape[0])
    with CountsWriter(folder, counts.shape[1], **options) as writer:
        for start in range(0, counts.shape[0], block):
            rows = slice(start, start + block)
            writer.add(counts[rows], **{k: v[rows] for k, v in columns.items()})
    return DiskCounts(folder)
