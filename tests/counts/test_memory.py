"""Counts in memory, as estimators take them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from docsigma import BayesianSMM
from docsigma.counts.memory import estimator_counts


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_the_callers_matrix_stays_as_it_is(dtype):
    """CountVectorizer's matrices have words in no order; theirs must not be changed."""
    given = sparse.csr_matrix(
        (np.array([3, 1, 2], dtype=dtype), np.array([2, 0, 1]), np.array([0, 2, 3])),
        shape=(2, 3),
    )
    data, indices = given.data.copy(), given.indices.copy()
    checked = estimator_counts(BayesianSMM(), given, reset=True)
    assert checked[:].toarray().tolist() == [[1, 0, 3], [0, 2, 0]]
    np.testing.assert_array_equal(given.data, data)
    np.testing.assert_array_equal(given.indices, indices)
