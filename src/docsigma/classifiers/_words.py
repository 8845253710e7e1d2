"""TF-IDF of word counts, as the hybrid classifier sees words."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from docsigma._array_checks import Floats


def inverse_document_frequencies(counts: sp.csr_matrix) -> Floats:
    """Return the idf of each word, smoothed as by scikit-learn's TfidfTransformer."""
    having = np.bincount(counts.indices[counts.data > 0], minlength=counts.shape[1])
    return np.asarray(np.log((1 + counts.shape[0]) / (1 + having)) + 1)


def tfidf(counts: sp.csr_matrix, idf: Floats) -> sp.csr_matrix:
    """Return damped counts times idf, each row scaled to length 1.

    The damping is log(1 + x): unlike 1 + log(x) it is right for weighted counts too.
    """
    values = counts.astype(np.float64)
    values.data = np.log1p(values.data) * idf[values.indices]
    scaled: sp.csr_matrix = normalize(values, copy=False)
    return scaled
