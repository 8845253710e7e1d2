"""TF-IDF of word counts, for the hybrid classifier."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from docsigma._array_checks import Floats


def inverse_document_frequencies(
    counts: sp.csr_matrix, weights: Floats | None = None
) -> Floats:
    """Return the idf of each word, smoothed as by scikit-learn's TfidfTransformer."""
    own = np.ones(counts.shape[0]) if weights is None else weights
    by_value = np.repeat(own, np.diff(counts.indptr)) * (counts.data > 0)
    having = np.bincount(counts.indices, by_value, counts.shape[1])
    return np.asarray(np.log((1 + own.sum()) / (1 + having)) + 1)


def tfidf(
    counts: sp.csr_matrix, idf: Floats, n_unknown: Floats | None = None
) -> sp.csr_matrix:
    """Return log(1 + count) times idf, each row scaled to length 1.

    The length includes `n_unknown` words, each as heavy as the rarest known one.
    """
    values = counts.astype(np.float64)
    values.data = np.log1p(values.data) * idf[values.indices]
    rows = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
    square = np.bincount(rows, np.square(values.data), values.shape[0])
    if n_unknown is not None:
        square = square + n_unknown * (np.log1p(1) * idf.max()) ** 2
    # A row without words stays zero.
    values.data /= np.sqrt(np.where(square > 0, square, 1.0))[rows]
    return values
