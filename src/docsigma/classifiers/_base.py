"""What the classifiers share: predictions, and Gaussian classes and their priors."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from docsigma._array_checks import Floats
from docsigma.classifiers._covariance import invert
from docsigma.classifiers._labels import (
    TrainingLabels,
    encode,
    extend_priors,
    resolve_priors,
)
from docsigma.exceptions import InputError
from docsigma.metrics import entropies


class BaseClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Predictions from scores whose softmax are the classes' probabilities."""

    classes_: NDArray[Any]
    # What `fit` and the rest take: "documents", their "posterior", or their "means".
    takes: ClassVar[str] = "means"
    learns_from_unlabelled: ClassVar[bool] = False
    # The fitted attributes that a saved classifier must hold.
    _saved: ClassVar[tuple[str, ...]] = ()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted arrays that a saved classifier must hold."""
        return {name: np.asarray(getattr(self, name)) for name in self._saved}

    def set_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`arrays` returned; `classes_` is set before."""
        for name in self._saved:
            setattr(self, name, arrays[name])

    @abstractmethod
    def _class_scores(self, X: Any) -> Floats:
        """Return the scores, documents x classes."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class per document, for `X` as `fit` takes it."""
        scores = self._class_scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def predict_log_proba(self, X: Any) -> Floats:
        """Return log probabilities, documents x classes, which never underflow.

        `X` is as `fit` takes it; columns are in the order of ``classes_``.
        """
        return np.asarray(log_softmax(self._class_scores(X), axis=1), dtype=np.float64)

    def predict_proba(self, X: Any) -> Floats:
        """Return probabilities, documents x classes, whose rows add up to 1.

        `X` is as `fit` takes it; columns are in the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_entropy(self, X: Any) -> Floats:
        """Return the entropy of the predicted classes per document, in nats.

        The higher it is, the likelier the label is wrong. `X` is as `fit` takes it.
        """
        return entropies(self.predict_log_proba(X))

    def familiarity(self, X: Any) -> Floats:
        """Return how much documents are like those of the classes.

        These are the nats by which predictions are surer than none. `X` is as `fit`
        takes it.
        """
        return np.asarray(np.log(len(self.classes_)) - self.predict_entropy(X))


class BaseEmbeddingClassifier(BaseClassifier):
    """A classifier of embeddings; one of counts, as naive Bayes, gives no scores."""

    def decision_function(self, X: Any) -> Floats:
        """Return scores whose softmax is `predict_proba`, for `X` as `fit` takes it.

        Documents x classes; of two classes, one number per document, the log odds of
        the second class.
        """
        scores = self._class_scores(X)
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0], dtype=np.float64)
        return scores


class BaseGaussianClassifier(BaseEmbeddingClassifier):
    r"""Gaussian classes with a shared covariance.

    A subclass defines the log density of a document, split into a part that
    depends on the class and one that does not:
    :math:`\log p(x \mid \ell) = s_\ell(x) + b(x)`. Probabilities need only the
    former, which keeps them exact far away from all classes.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "priors": [StrOptions({"empirical", "uniform"}), "array-like", None],
        "regularization": [Interval(Real, 0, None, closed="left")],
    }
    priors: Any
    regularization: float
    _saved: ClassVar[tuple[str, ...]] = (
        "means_",
        "covariance_",
        "precision_",
        "class_weight_",
        "class_prior_",
        "log_prior_",
    )

    @abstractmethod
    def _documents(self, X: Any) -> Any:
        """Check documents that come after `fit`; the result has a length."""

    @abstractmethod
    def _log_densities(self, documents: Any) -> tuple[Floats, Floats]:
        """Return both parts of the log density: documents x classes, and documents."""

    @abstractmethod
    def _estimate_means(self, documents: Any, labels: TrainingLabels) -> Floats:
        """Return the means of the labelled classes under the trained covariance."""

    def _store(self, labels: TrainingLabels, means: Floats, covariance: Floats) -> None:
        prior = resolve_priors(self.priors, labels.class_weights)
        self.precision_ = invert(covariance)
        self.covariance_ = covariance
        self._store_classes(labels.classes, labels.class_weights, prior, means)

    def _store_classes(
        self, classes: NDArray[Any], weights: Floats, prior: Floats, means: Floats
    ) -> None:
        self.classes_, self.class_weight_, self.means_ = classes, weights, means
        self.class_prior_, self.log_prior_ = prior, np.log(prior)

    def add_classes(
        self, X: Any, y: Any, sample_weight: Any = None, priors: Any = None
    ) -> Self:
        """Learn new classes from a few documents; the old ones stay as they are.

        The covariance and the means of the old classes are not touched. New
        classes come after the old ones in ``classes_``.

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
        new, old = (_kind_of_labels(c) for c in (labels.classes, self.classes_))
        if new != old:
            raise InputError(f"`y` has {new} as labels, but the model's are {old}")
        weights = np.concatenate([self.class_weight_, labels.class_weights])
        prior = extend_priors(self.priors, self.class_prior_, weights, priors)
        means = self._estimate_means(documents, labels)
        classes = np.concatenate([self.classes_, labels.classes])
        means = np.concatenate([self.means_, means])
        self._store_classes(classes, weights, prior, means)
        return self

    def log_likelihood(self, X: Any, y: Any) -> Floats:
        r"""Return the log density :math:`\log p(x_d \mid y_d)` per document, in nats.

        `X` and the labels `y` are as `fit` takes them.
        """
        check_is_fitted(self)
        documents = self._documents(X)
        codes = encode(y, self.classes_, len(documents))
        by_class, common = self._log_densities(documents)
        return np.asarray(by_class[np.arange(len(codes)), codes] + common)

    def score_samples(self, X: Any) -> Floats:
        r"""Return the log density of each document under all classes, in nats.

        It is :math:`\log \sum_\ell p(\ell)\, p(x_d \mid \ell)`, and low for
        documents that are like none of the classes. `X` is as `fit` takes it.
        """
        check_is_fitted(self)
        by_class, common = self._log_densities(self._documents(X))
        mixture = logsumexp(by_class + self.log_prior_, axis=1)
        return np.asarray(mixture + common, dtype=np.float64)

    def _class_scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        by_class, _ = self._log_densities(self._documents(X))
        return np.asarray(by_class + self.log_prior_, dtype=np.float64)


def _kind_of_labels(classes: NDArray[Any]) -> str:
    """Return what labels are; strings in an array of objects, as of pandas, too."""
    strings = classes.dtype.kind in "US" or all(isinstance(c, str) for c in classes)
    return "strings" if strings else "numbers"
