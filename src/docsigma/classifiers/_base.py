"""What the Gaussian classifiers share: priors, probabilities, new classes."""

from __future__ import annotations

import math
from abc import ABCMeta, abstractmethod
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import log_softmax, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from docsigma.classifiers._covariance import invert
from docsigma.classifiers._labels import (
    TrainingLabels,
    encode,
    extend_priors,
    resolve_priors,
)
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BaseGaussianClassifier"]


class BaseGaussianClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    r"""Gaussian classes with a shared covariance.

    A subclass says what a document's log density is, split in a part that
    depends on the class and one that does not:
    :math:`\log p(x \mid \ell) = s_\ell(x) + b(x)`. Probabilities need only the
    former, which keeps them exact far away from all classes.
    """

    priors: Any
    regularization: float
    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]
    class_prior_: NDArray[np.float64]
    log_prior_: NDArray[np.float64]
    means_: NDArray[np.float64]
    covariance_: NDArray[np.float64]
    precision_: NDArray[np.float64]

    @abstractmethod
    def _documents(self, X: Any) -> Any:
        """Check `X`, which comes after `fit`; the result has a length."""

    @abstractmethod
    def _log_densities(
        self, documents: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Class part, documents x classes, and common part of the log density."""

    @abstractmethod
    def _estimate_means(
        self, documents: Any, labels: TrainingLabels
    ) -> NDArray[np.float64]:
        """Means of the labelled classes under the trained covariance."""

    def _check_regularization(self) -> float:
        value = self.regularization
        if not isinstance(value, Real) or not 0 <= value < math.inf:
            raise InputError(
                f"`regularization` must be finite and not negative, got {value!r}"
            )
        return float(value)

    def _store(
        self,
        labels: TrainingLabels,
        means: NDArray[np.float64],
        covariance: NDArray[np.float64],
    ) -> None:
        prior = resolve_priors(self.priors, labels.class_weights)
        precision = invert(covariance)
        self.classes_ = labels.classes
        self.class_weight_ = labels.class_weights
        self.class_prior_ = prior
        self.log_prior_ = np.log(prior)
        self.means_ = means
        self.covariance_ = covariance
        self.precision_ = precision

    def add_classes(
        self, X: Any, y: Any, sample_weight: Any = None, priors: Any = None
    ) -> Self:
        """Learn new classes from a few documents; the old ones stay as they are.

        The covariance and the means of the old classes are not touched. New
        classes come behind the old ones in ``classes_``.

        Parameters
        ----------
        X : array-like or posterior
            Documents of the new classes, in the form that `fit` takes.
        y : array-like of shape (n_documents,)
            Labels, none of which the model knows.
        sample_weight : array-like of shape (n_documents,), optional
            Weights of the documents.
        priors : array-like of shape (n_new_classes,), optional
            Prior probabilities of the new classes in sorted order; the old
            classes share the rest in their old proportions. By default
            empirical priors count the new documents with the old, uniform
            priors stay uniform, and with priors given as an array each new
            class gets one over the number of classes.

        Returns
        -------
        self
            The classifier with the classes added.
        """
        check_is_fitted(self)
        documents = self._documents(X)
        labels = TrainingLabels.check(y, len(documents), sample_weight, min_classes=1)
        known = np.isin(labels.classes, self.classes_)
        if known.any():
            raise InputError(
                f"`y` has the class {labels.classes[known][0]!s}, which the model "
                "already knows"
            )
        if (labels.classes.dtype.kind in "US") != (self.classes_.dtype.kind in "US"):
            raise InputError(
                f"`y` has labels of type {labels.classes.dtype}, but the model's are "
                f"of type {self.classes_.dtype}"
            )
        weights = np.concatenate([self.class_weight_, labels.class_weights])
        prior = extend_priors(self.priors, self.class_prior_, weights, priors)
        means = self._estimate_means(documents, labels)
        self.classes_ = np.concatenate([self.classes_, labels.classes])
        self.class_weight_ = weights
        self.class_prior_ = prior
        self.log_prior_ = np.log(prior)
        self.means_ = np.concatenate([self.means_, means])
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores whose softmax is `predict_proba`.

        Parameters
        ----------
        X : array-like or posterior
            Documents, in the form that `fit` takes.

        Returns
        -------
        ndarray of shape (n_documents, n_classes) or (n_documents,)
            One score a class; of two classes, the log odds of the second.
        """
        scores = self._class_scores(X)
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0], dtype=np.float64)
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each document.

        Parameters
        ----------
        X : array-like or posterior
            Documents, in the form that `fit` takes.

        Returns
        -------
        ndarray of shape (n_documents,)
            Labels, as they were given to `fit`.
        """
        scores = self._class_scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Log probabilities of the classes, which never underflow.

        Parameters
        ----------
        X : array-like or posterior
            Documents, in the form that `fit` takes.

        Returns
        -------
        ndarray of shape (n_documents, n_classes)
            Columns in the order of ``classes_``.
        """
        return np.asarray(log_softmax(self._class_scores(X), axis=1), dtype=np.float64)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or posterior
            Documents, in the form that `fit` takes.

        Returns
        -------
        ndarray of shape (n_documents, n_classes)
            Columns in the order of ``classes_``; rows add up to 1.
        """
        return np.exp(self.predict_log_proba(X))

    def log_likelihood(self, X: Any, y: Any) -> NDArray[np.float64]:
        r"""Log density :math:`\log p(x_d \mid y_d)` of each document in its class.

        Parameters
        ----------
        X : array-like or posterior
            Documents, in the form that `fit` takes.
        y : array-like of shape (n_documents,)
            Their labels.

        Returns
        -------
        ndarray of shape (n_documents,)
            Log densities in nats.
        """
        check_is_fitted(self)
        documents = self._documents(X)
        codes = encode(y, self.classes_, len(documents))
        by_class, common = self._log_densities(documents)
        return np.asarray(by_class[np.arange(len(codes)), codes] + common)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        r"""Log density :math:`\log \sum_\ell p(\ell)\, p(x_d \mid \ell)`.

        Parameters
        ----------
        X : array-like or posterior
            Documents, in the form that `fit` takes.

        Returns
        -------
        ndarray of shape (n_documents,)
            Log densities in nats; low for documents like none of the classes.
        """
        check_is_fitted(self)
        by_class, common = self._log_densities(self._documents(X))
        mixture = logsumexp(by_class + self.log_prior_, axis=1)
        return np.asarray(mixture + common, dtype=np.float64)

    def _class_scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        by_class, _ = self._log_densities(self._documents(X))
        return np.asarray(by_class + self.log_prior_, dtype=np.float64)
