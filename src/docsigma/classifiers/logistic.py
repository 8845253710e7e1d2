"""Logistic regression with its l2 weight chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from docsigma._array_checks import Floats
from docsigma.classifiers._base import BaseEmbeddingClassifier
from docsigma.classifiers._folds import make_splits
from docsigma.classifiers._labels import TrainingLabels
from docsigma.classifiers._uncertain_documents import check_points
from docsigma.exceptions import InputError

# The search ends after this many inverse l2 weights in a row that are no better.
PATIENCE = 2


class CrossValidatedLogisticRegression(BaseEmbeddingClassifier):
    r"""Multinomial logistic regression on embeddings.

    Scikit-learn's :class:`~sklearn.linear_model.LogisticRegression`, whose `C` is
    the one of `Cs` with the least cross-entropy in stratified cross-validation.
    Embeddings are centred and divided by *one* standard deviation: that makes `C`
    free of their scale, and leaves a direction that varies little as it is.

    Parameters
    ----------
    uncertainty : {"none", "columns"}
        ``"columns"``: the second half of the columns holds variances, which are
        left out.
    Cs : array-like of float, optional
        Inverse l2 weights to choose from, by default 1e-4 to 1e2, half a decade
        apart. They are tried from the least on, until two in a row are no better
        than the best.
    n_folds : int
        Parts of the cross-validation. Classes with fewer documents are allowed.
    max_iter : int
        Most iterations of a fit.
    random_state : int, RandomState or None
        Deals the documents to the folds.

    Attributes
    ----------
    C_ : float
        The chosen inverse l2 weight.
    cross_entropies_ : ndarray of shape (n_Cs,)
        Cross-validated cross-entropy of each of `Cs`, in nats; infinite where it was
        not tried.
    estimator_ : LogisticRegression
        The fit on all documents, centred and scaled.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    n_features_in_ : int
        Columns of `X`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (30, 2)), rng.normal(2, 1, (30, 2))])
    >>> y = ["cat"] * 30 + ["dog"] * 30
    >>> lr = CrossValidatedLogisticRegression(random_state=0).fit(X, y)
    >>> lr.predict([[0.0, 0.0], [2.0, 2.0]])
    array(['cat', 'dog'], dtype='<U3')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "uncertainty": [StrOptions({"none", "columns"})],
        "Cs": ["array-like", None],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        uncertainty: str = "none",
        Cs: Any = None,
        n_folds: int = 5,
        max_iter: int = 1000,
        random_state: Any = 0,
    ) -> None:
        self.uncertainty, self.Cs, self.max_iter = uncertainty, Cs, max_iter
        self.n_folds, self.random_state = n_folds, random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the l2 weight and fit all documents with it.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_columns)
            Embeddings, with their variances after them if `uncertainty` says so.
        y : array-like of shape (n_documents,)
            Labels: strings or integers.
        sample_weight : array-like of shape (n_documents,), optional
            Weights of the documents.
        """
        Cs = np.sort(np.logspace(-4, 2, 13) if self.Cs is None else np.asarray(self.Cs))
        check_points(X)
        X, y = validate_data(self, X, y, dtype=np.float64)
        labels = TrainingLabels.check(y, len(X), sample_weight)
        X = self._means(X)[labels.kept]
        self._centre = np.average(X, axis=0, weights=labels.weights)
        variance = np.average((X - self._centre) ** 2, axis=0, weights=labels.weights)
        self._scale = float(np.sqrt(variance.mean())) or 1.0
        X = (X - self._centre) / self._scale
        self.classes_ = labels.classes
        self.cross_entropies_ = self._cross_validate(X, labels, Cs)
        # Of equally good ones (no fold could be evaluated) the one nearest to 1.
        best = np.flatnonzero(self.cross_entropies_ == self.cross_entropies_.min())
        self.C_ = float(min(Cs[best], key=lambda C: abs(np.log(C))))
        self.estimator_ = LogisticRegression(C=self.C_, max_iter=self.max_iter)
        self.estimator_.fit(X, labels.codes, labels.weights)
        self.n_iter_ = int(np.max(self.estimator_.n_iter_))
        return self

    def _cross_validate(self, X: Floats, labels: TrainingLabels, Cs: Floats) -> Floats:
        codes, weights = labels.codes, labels.weights
        # Each fit starts at that of the last C.
        splits = [
            (LogisticRegression(warm_start=True, max_iter=self.max_iter), *split)
            for split in make_splits(codes, self.n_folds, self.random_state)
        ]
        if not splits:
            return np.zeros(len(Cs))
        losses = np.full(len(Cs), np.inf)
        for index, C in enumerate(Cs):
            losses[index] = 0.0
            for model, train, test in splits:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    model.set_params(C=C).fit(X[train], codes[train], weights[train])
                log_proba = log_softmax(_scores(model, X[test]), axis=1)
                columns = np.searchsorted(model.classes_, codes[test])
                own = log_proba[np.arange(len(columns)), columns]
                losses[index] -= weights[test] @ own
            if index - int(losses.argmin()) >= PATIENCE:
                break
        total = sum(float(weights[test].sum()) for _, _, test in splits)
        return losses / total

    def _means(self, X: Floats) -> Floats:
        if self.uncertainty == "none":
            return X
        if X.shape[1] % 2:
            raise InputError(
                "`X` must have an even number of features, means and then as many "
                f"variances, got {X.shape[1]}"
            )
        return X[:, : X.shape[1] // 2]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted arrays."""
        return {
            "coef_": self.estimator_.coef_,
            "intercept_": self.estimator_.intercept_,
            "centre": self._centre,
            "scale": np.array([self._scale]),
        }

    def set_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`arrays` returned; `classes_` is set before."""
        self._centre, self._scale = arrays["centre"], float(arrays["scale"][0])
        inner = LogisticRegression()
        inner.coef_, inner.intercept_ = arrays["coef_"], arrays["intercept_"]
        inner.classes_ = np.arange(len(self.classes_))
        inner.n_features_in_ = inner.coef_.shape[1]
        self.estimator_ = inner

    def _class_scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        check_points(X)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return _scores(self.estimator_, (self._means(X) - self._centre) / self._scale)


def _scores(model: LogisticRegression, X: Floats) -> Floats:
    """Return the scores of all classes, of two classes as well."""
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        return np.stack([np.zeros_like(scores), scores], axis=1)
    return scores
