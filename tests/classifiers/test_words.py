"""TF-IDF rows, against scikit-learn's normalisation of a stacked matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from docsigma.classifiers._words import tfidf


def expected(counts, idf, n_unknown):
    values = np.log1p(counts.toarray()) * idf
    room = np.sqrt(n_unknown) * np.log(2) * idf.max()
    return normalize(np.hstack([values, room[:, None]]))[:, : len(idf)]


@pytest.mark.parametrize("rows", [slice(None), slice(0, 1), slice(4, 5)])
def test_rows_have_length_one_with_the_room_of_unknown_words(rows):
    random = np.random.default_rng(0)
    values = random.poisson(0.5, (9, 6)).astype(float)
    # One document without known words, alone too, and a stored zero.
    values[4] = 0
    counts = sp.csr_matrix(values)
    counts.data[:1] = 0
    idf = 1 + random.random(6)
    n_unknown = np.arange(9)
    part = counts[rows].copy()
    part.eliminate_zeros()
    for some in (counts[rows], part):
        found = tfidf(some, idf, n_unknown[rows]).toarray()
        np.testing.assert_allclose(
            found, expected(some, idf, n_unknown[rows]), atol=1e-15
        )
        plain = tfidf(some, idf).toarray()
        nothing = np.zeros(len(n_unknown[rows]))
        np.testing.assert_allclose(plain, expected(some, idf, nothing), atol=1e-15)
