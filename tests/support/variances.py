"""A step of a pipeline that takes any array for means and adds variances."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data


class AddVariances(TransformerMixin, BaseEstimator):
    """scikit-learn's checks bring arrays of any width and sign.

    The variances are `least` and `share` times the absolute value of the mean.
    """

    def __init__(self, least=0.0, share=0.0):
        self.least = least
        self.share = share

    def fit(self, X, y=None):  # noqa: ARG002
        validate_data(self, X)
        return self

    def transform(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.hstack([X, self.least + self.share * np.abs(X)])
