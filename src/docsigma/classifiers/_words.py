"""TF-IDF of word counts, and short copies of documents, for the hybrid classifier."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from docsigma._array_checks import Floats

# Tokens of short copies of documents, at the most on average.
SHORT_TOKENS = 3


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


def shorten(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Return copies of documents of some one to three tokens, drawn at random.

    They help the hybrid to choose how much to trust a few words.
    """
    random = np.random.default_rng(0)
    short, n_tokens = counts.copy(), np.asarray(counts.sum(axis=1)).ravel()
    wanted = random.uniform(1, SHORT_TOKENS, len(n_tokens))
    share = np.minimum(wanted / np.maximum(n_tokens, 1), 1)
    by_value = np.repeat(share, np.diff(counts.indptr))
    # Weighted counts are taken as the next whole number.
    drawn = random.binomial(np.ceil(counts.data).astype(np.int64), by_value)
    short.data = drawn.astype(counts.dtype)
    short.eliminate_zeros()
    return short
