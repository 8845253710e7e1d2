"""The classifier of raw texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context, clone
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from docsigma.classifiers._semi_supervised_labels import is_missing
from docsigma.classifiers.counts_classifier import (
    KINDS,
    SEMI_SUPERVISED,
    CountsClassifier,
)
from docsigma.counts.texts import as_list, as_texts
from docsigma.exceptions import InputError
from docsigma.text.embedder import DocumentEmbedder, TextEstimator

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from docsigma.classifiers.explanation import Explanation
    from docsigma.classifiers.uncertainty import Uncertainty
    from docsigma.posterior import GaussianPosterior


class TopicClassifier(ClassifierMixin, TextEstimator):
    """Classifies texts, with probabilities.

    Some labels may be missing: the embedder is fitted to all texts, and so are the
    kinds ``"hybrid"`` and ``"evidence"``; other kinds use only texts that have a label.

    Parameters
    ----------
    embedder : DocumentEmbedder, default=None
        None means ``DocumentEmbedder()``. A fitted embedder is used unchanged; any
        other is copied and fitted to the texts.
    kind : {"hybrid", "evidence", "glcu", "glc", "lr"}, default="hybrid"
        The classifier: on words and embeddings, on embeddings by their likelihood, on
        means and variances, or (``"glc"``, ``"lr"``) on means only.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, in the order of the probabilities.
    embedder_ : DocumentEmbedder
        The fitted embedder.
    classifier_ : CountsClassifier
        The model and the classifier on its Gaussians.

    Examples
    --------
    >>> texts = ["sun and rain", "rain and wind", "bread and salt", "salt and butter"]
    >>> embedder = DocumentEmbedder(2, random_state=0)
    >>> topics = TopicClassifier(embedder, kind="glcu")
    >>> topics = topics.fit(texts * 5, ["weather", "weather", "food", None] * 5)
    >>> topics.classes_
    array(['food', 'weather'], dtype='<U7')
    >>> topics.predict_proba(["rain", "salt", "hello"]).shape
    (3, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "embedder": [DocumentEmbedder, None],
        "kind": [StrOptions(set(KINDS))],
    }

    embedder_: DocumentEmbedder
    classifier_: CountsClassifier

    def __init__(
        self, embedder: DocumentEmbedder | None = None, *, kind: str = "hybrid"
    ) -> None:
        self.embedder = embedder
        self.kind = kind

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Iterable[object],
        y: Iterable[object],
        groups: Any = None,
    ) -> Self:
        """Learn classes from texts, some of which have a label.

        Parameters
        ----------
        X : list or column of str
            The documents.
        y : list or column
            Their labels; None, NaN, the number -1 or a blank where there is none.
        groups : array-like of shape (n_documents,), optional
            Author, thread or customer of each document: probabilities and prediction
            sets are then calibrated for new ones. For hybrid and evidence only.

        Returns
        -------
        self
        """
        texts = as_texts(X)
        labels = _as_labels(y, len(texts))
        given = DocumentEmbedder() if self.embedder is None else self.embedder
        if not hasattr(given, "model_"):
            given = clone(given).fit(texts)
        self.embedder_ = given
        counts, kept = given._counts(texts), np.array(labels, dtype=object)
        if self.kind not in SEMI_SUPERVISED:
            known = np.flatnonzero([label is not None for label in labels])
            counts, kept = counts[known], np.array([labels[row] for row in known])
        elif None not in labels:
            kept = np.array(labels)
        self.classifier_ = CountsClassifier.fit(
            given.model_, counts, kept, kind=self.kind, groups=groups
        )
        return self

    def _embed(self, X: Iterable[object]) -> tuple[Any, Any]:
        """Return the classifier's input for texts, and their counts."""
        check_is_fitted(self)
        counts = self.embedder_._counts(X)
        return self.classifier_.embed(counts), counts

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels, in the order of the probabilities."""
        return self.classifier_.classes_

    def predict_proba(self, X: Iterable[object]) -> NDArray[Any]:
        """Return the probability of each class for each document."""
        proba: NDArray[Any] = np.exp(self.predict_log_proba(X))
        return proba

    def predict_log_proba(self, X: Iterable[object]) -> NDArray[Any]:
        """Return the log probability of each class for each document."""
        embedded = self._embed(X)  # before `classifier_`: checks that there is one
        log_proba: NDArray[Any] = self.classifier_.predict_log_proba(*embedded)
        return log_proba

    def predict(self, X: Iterable[object]) -> NDArray[Any]:
        """Return the most probable class of each document."""
        best = self.predict_log_proba(X).argmax(axis=1)
        winners: NDArray[Any] = self.classes_[best]
        return winners

    def score(
        self, X: Iterable[object], y: Iterable[object], sample_weight: Any = None
    ) -> float:
        """Return the accuracy on the documents that have a label."""
        texts = as_texts(X)
        labels = _as_labels(y, len(texts))
        known = [row for row, label in enumerate(labels) if label is not None]
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)[known]
        own = np.array([labels[row] for row in known])
        return float(super().score([texts[row] for row in known], own, sample_weight))

    def posterior(self, X: Iterable[object]) -> GaussianPosterior:
        """Return the Gaussian of each document."""
        check_is_fitted(self)
        return self.embedder_.posterior(X)

    def predict_uncertainty(self, X: Iterable[object]) -> Uncertainty:
        """Return the uncertainty of each prediction, with its causes."""
        embedded = self._embed(X)
        return self.classifier_.predict_uncertainty(*embedded)

    def predict_sets(
        self, X: Iterable[object], coverage: float = 0.9
    ) -> list[list[Any]]:
        """Return a set of possible labels for each text.

        The set has the true label for the share `coverage` of texts that are like the
        labelled ones. It is empty if no label is likely enough; for a text without
        known words it has all labels.
        """
        embedded = self._embed(X)
        chosen = self.classifier_.predict_sets(*embedded, coverage)
        return [self.classes_[row].tolist() for row in chosen]

    def explain(self, X: Iterable[object]) -> list[Explanation]:
        """Return the words for and against each label; for the kind ``"hybrid"``."""
        check_is_fitted(self)
        return self.classifier_.explain(self.embedder_._counts(X))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write all to a folder, as ``docsigma classifier fit`` does."""
        check_is_fitted(self)
        self.classifier_.save(folder)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        tokenizer: Callable[[str], Iterable[str]] | None = None,
    ) -> Self:
        """Read what :meth:`save` wrote; `tokenizer` is as for a `DocumentEmbedder`."""
        classifier = CountsClassifier.load(folder)
        embedder = DocumentEmbedder._of(classifier.model, tokenizer)
        topics = cls(embedder, kind=classifier.kind)
        topics.embedder_, topics.classifier_ = embedder, classifier
        return topics


def _as_labels(y: Iterable[object], n_texts: int) -> list[object]:
    """Return labels as a list, None where there is none."""
    if isinstance(y, str) or not hasattr(y, "__iter__"):
        kind = type(y).__name__
        raise InputError(f"`y` must be a list or a column of labels, got {kind}")
    labels = [None if is_missing(value) else value for value in as_list(y)]
    if len(labels) != n_texts:
        raise InputError(f"there are {n_texts} texts but {len(labels)} labels")
    if all(label is None for label in labels):
        raise InputError(f"none of the {n_texts} texts has a label")
    return labels
