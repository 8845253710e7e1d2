"""Word counts as an estimator gets them: checked by scikit-learn, sparse, unique."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_non_negative, validate_data

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike
    from sklearn.base import BaseEstimator

__all__ = ["estimator_counts"]


def estimator_counts(
    estimator: BaseEstimator,
    X: ArrayLike | sp.csr_matrix,
    *,
    reset: bool,
    like: DTypeLike | None = None,
) -> sp.csr_matrix:
    """Give counts as CSR without duplicates; float64 if `like`, or else X, is so."""
    checked: Any = validate_data(estimator, X, accept_sparse="csr", reset=reset)
    check_non_negative(checked, type(estimator).__name__)
    wide = (checked.dtype if like is None else like) == np.float64
    counts = sp.csr_matrix(checked, dtype=np.float64 if wide else np.float32)
    counts.sum_duplicates()
    return counts
