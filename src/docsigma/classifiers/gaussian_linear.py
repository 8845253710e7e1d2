"""The Gaussian linear classifier (GLC)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils.validation import validate_data

from docsigma._array_checks import Floats
from docsigma.classifiers._base import BaseGaussianClassifier
from docsigma.classifiers._covariance import (
    feature_scale,
    floor_covariance,
    shared_log_densities,
)
from docsigma.classifiers._labels import TrainingLabels
from docsigma.classifiers._uncertain_documents import check_points


class GaussianLinearClassifier(BaseGaussianClassifier):
    r"""Gaussian classes with one full covariance, by maximum likelihood.

    A document's embedding is its class mean and noise,
    :math:`w_d = \mu_{\ell(d)} + \varepsilon_d` with
    :math:`\varepsilon_d \sim \mathcal{N}(0, D^{-1})`. The likelihood is largest for
    the class averages and the within-class scatter, divided by the total weight. Log
    odds are linear in the embedding.

    Parameters
    ----------
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or None
        Class priors; the array follows the sorted classes, None is
        ``"empirical"``: the classes' shares of the training weight.
    regularization : float
        Eigenvalues of the covariance, each feature scaled to variance 1, are
        raised to this floor. It is the maximum-likelihood covariance above the
        floor; nothing changes unless an eigenvalue lies below, as happens with
        fewer documents than dimensions or constant features. Raise it (0.01 to
        0.1) when there are few documents.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    class_weight_ : ndarray of shape (n_classes,)
        Total training weight of each class.
    class_prior_, log_prior_ : ndarray of shape (n_classes,)
        Prior probabilities and their logarithms.
    means_ : ndarray of shape (n_classes, n_components)
        Class means :math:`\mu_\ell`.
    covariance_, precision_ : ndarray of shape (n_components, n_components)
        Shared within-class covariance :math:`D^{-1}` and precision :math:`D`.
    n_features_in_ : int
        Size of the embeddings.

    See Also
    --------
    docsigma.classifiers.UncertainGaussianClassifier : uses the variances as well.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0], [10.0], [12.0]])
    >>> glc = GaussianLinearClassifier().fit(X, ["low", "low", "high", "high"])
    >>> glc.means_.ravel(), glc.covariance_.item()
    (array([11.,  1.]), 1.0)
    >>> glc.decision_function([[3.0], [5.0], [7.0]])
    array([ 30.,  10., -10.])
    """

    def __init__(
        self, *, priors: Any = "empirical", regularization: float = 1e-6
    ) -> None:
        self.priors = priors
        self.regularization = regularization

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate class means and the shared covariance.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_components)
            Embeddings.
        y : array-like of shape (n_documents,)
            Labels: strings or integers.
        sample_weight : array-like of shape (n_documents,), optional
            A weight of 2 counts a document twice, one of 0 leaves it out.
        """
        check_points(X)
        X, y = validate_data(self, X, y, dtype=np.float64)
        labels = TrainingLabels.check(y, len(X), sample_weight)
        X = X[labels.kept]
        means = class_means(X, labels)
        residual = (X - means[labels.codes]) * np.sqrt(labels.weights)[:, None]
        scatter = residual.T @ residual / labels.weights.sum()
        scale = feature_scale(X, labels.weights)
        covariance = floor_covariance(scatter, scale, self.regularization)
        self._store(labels, means, covariance)
        return self

    def _documents(self, X: Any) -> Floats:
        check_points(X)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _estimate_means(self, documents: Floats, labels: TrainingLabels) -> Floats:
        return class_means(documents[labels.kept], labels)

    def _log_densities(self, documents: Floats) -> tuple[Floats, Floats]:
        return shared_log_densities(documents, self.means_, self.covariance_)


def class_means(X: Floats, labels: TrainingLabels) -> Floats:
    """Return the weighted mean of each class, of the documents that `labels` keeps."""
    # Around a document, so that features far from zero lose no digits.
    sums = labels.membership @ (X - X[0])
    means = X[0] + sums / labels.class_weights[:, None]
    return np.asarray(means, dtype=np.float64)
