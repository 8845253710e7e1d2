"""The classifier of raw texts."""

from __future__ import annotations

import copy
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from docsigma._base import HasDefaults
from docsigma.classifiers._base import BaseClassifier, BaseEmbeddingClassifier
from docsigma.classifiers._folds import check_column, held_out_share
from docsigma.classifiers._labels import has_label, labels_of
from docsigma.classifiers._pairs import learn_pairs
from docsigma.classifiers.counts_classifier import CountsClassifier
from docsigma.classifiers.triage import Triage, triage
from docsigma.counts.texts import as_list, as_texts
from docsigma.exceptions import InputError
from docsigma.groups.proposals import propose
from docsigma.metrics import entropies
from docsigma.models.components import known_words
from docsigma.text.embedder import DocumentEmbedder, TextEstimator

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from docsigma._array_checks import Floats
    from docsigma.classifiers.documents import EmbeddedDocuments
    from docsigma.classifiers.explanation import Explanation
    from docsigma.posterior import GaussianPosterior


class TopicClassifier(HasDefaults, BaseEmbeddingClassifier, TextEstimator):
    """Classifies texts, with probabilities.

    Some labels may be missing: the embedder is fitted to all texts, and so are the
    kinds ``"hybrid"`` and ``"evidence"``; other kinds use only texts that have a label.

    Parameters
    ----------
    embedder : DocumentEmbedder, default=None
        None means ``DocumentEmbedder()``. A fitted embedder is used unchanged; any
        other is copied and fitted to the texts.
    kind : {"hybrid", "evidence", "glcu", "glc", "lr"} or classifier, default="hybrid"
        The classifier: on words and embeddings, on embeddings by their likelihood, on
        means and variances, or (``"glc"``, ``"lr"``) on means only.
    missing_label : object, default=-1
        The label that stands for none, besides None, NaN, NA and blanks. With None,
        -1 is a class like any other; it is one anyway in labels of -1 and 1.
    calibration : float, default=0
        Share of the labelled texts that are kept from embedder and classifier, for
        :meth:`calibrate`. Copies of a text, and texts of one of the `groups`, stay
        together; of each class at least one text is learned from.
    verbose : bool, default=False
        Whether steps longer than two seconds show a progress bar.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "embedder": [DocumentEmbedder, None],
        "kind": [str, BaseClassifier],
        "missing_label": "no_validation",
        "calibration": [Interval(Real, 0, 1, closed="left")],
        "verbose": ["boolean"],
    }

    _defaults: ClassVar[dict[str, type[BaseEstimator]]] = {"embedder": DocumentEmbedder}

    embedder_: DocumentEmbedder
    classifier_: CountsClassifier

    def __init__(
        self,
        embedder: DocumentEmbedder | None = None,
        *,
        kind: Any = "hybrid",
        missing_label: Any = -1,
        calibration: float = 0,
        verbose: bool = False,
    ) -> None:
        self.embedder = embedder
        self.kind = kind
        self.missing_label = missing_label
        self.calibration = calibration
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Iterable[object],
        y: Iterable[object],
        sample_weight: Any = None,
        *,
        groups: Any = None,
        times: Any = None,
    ) -> Self:
        """Learn classes from texts, some of which have a label.

        Parameters
        ----------
        X : list or column of str
            The documents.
        y : list or column
            Their labels; `missing_label`, None, NaN, NA or a blank where there is none.
        sample_weight : array-like of shape (n_documents,), optional
            Weights of the texts in the classifier; those of weight 0 are left out of
            it.
        groups : array-like of shape (n_documents,), optional
            Author, thread or customer of each document: probabilities and prediction
            sets are then calibrated for new ones. For the hybrid only.
        times : array-like of shape (n_documents,), optional
            Numbers or dates: documents are held out from training on earlier ones. For
            the hybrid only.

        Returns
        -------
        self
        """
        texts = as_texts(X)
        labels, rows = self._some_labels(y, len(texts))
        weights = _check_sample_weight(
            sample_weight, texts, dtype=np.float64, ensure_non_negative=True
        )
        columns = {"groups": groups, "times": times}
        if self.calibration:
            rows = rows[weights[rows] > 0]
            return self._fit_and_calibrate(texts, labels, rows, weights, columns)
        given = DocumentEmbedder() if self.embedder is None else self.embedder
        if not hasattr(given, "model_"):
            given = clone(given)
            if self.verbose and given.verbose is None:
                given.set_params(verbose=True)
            given.fit(texts)
        classifier = CountsClassifier(
            given.model_,
            self.kind,
            missing_label=self.missing_label,
            verbose=self.verbose,
        )
        counts = given._counts(texts)
        pairs = None
        if classifier._takes == "documents":
            words = known_words(given.model_)
            pairs, more = learn_pairs(texts, words, weights, verbose=self.verbose)
            counts = sparse.hstack([counts, more], format="csr")
        self.classifier_ = classifier.fit(
            counts, labels, weights, **columns, pairs=pairs
        )
        self.embedder_ = given
        return self

    def _some_labels(
        self, y: Any, n_texts: int
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Return labels, and the rows that have one; refuse a column without any."""
        labels = _as_labels(y, n_texts)
        known = np.flatnonzero(has_label(labels, self.missing_label))
        if not len(known):
            raise InputError(f"none of the {n_texts} texts has a label")
        return labels, known

    def _fit_and_calibrate(
        self,
        texts: list[str],
        labels: NDArray[Any],
        known: NDArray[np.intp],
        weights: Floats,
        columns: dict[str, Any],
    ) -> Self:
        """Fit to some of the texts, and calibrate on the rest."""
        if hasattr(self.embedder, "model_"):
            raise InputError(
                "`calibration` needs an `embedder` that is not fitted: this one may "
                "have seen all texts"
            )
        every = np.arange(len(texts))
        for name, column in columns.items():
            if column is not None:
                columns[name] = check_column(name, column, len(texts), every)
        codes = np.full(len(texts), -1)
        codes[known] = np.unique(labels[known].tolist(), return_inverse=True)[1]
        groups = texts if columns["groups"] is None else columns["groups"]
        held = held_out_share(codes, self.calibration, groups, columns["times"])
        rest, used = np.flatnonzero(~held), known[held[known]]
        if not len(used):
            raise InputError(
                f"`calibration`={self.calibration:g} holds out none of the "
                f"{len(known)} labelled texts: give a larger share, or more labels per "
                "class and more groups"
            )
        part = clone(self).set_params(calibration=0)
        part.fit(
            [texts[row] for row in rest],
            labels[rest],
            weights[rest],
            **{k: None if v is None else v[rest] for k, v in columns.items()},
        )
        part.calibrate([texts[row] for row in used], labels[used])
        self.embedder_, self.classifier_ = part.embedder_, part.classifier_
        return self

    def embed(self, X: Iterable[object]) -> EmbeddedDocuments:
        """Return the texts' counts and embeddings: what `classifier_` takes too."""
        check_is_fitted(self)
        return self.classifier_.embed_texts(as_texts(X))

    @property
    def classes_(self) -> NDArray[Any]:  # type: ignore[override]
        """Labels, in the order of the probabilities."""
        check_is_fitted(self)
        return self.classifier_.classes_

    def _class_scores(self, X: Iterable[object]) -> Floats:
        check_is_fitted(self)
        texts = as_texts(X)
        if not texts:
            return np.zeros((0, len(self.classes_)))
        return self.classifier_.predict_log_proba(self.embed(texts))

    def predict(
        self,
        X: Iterable[object],
        *,
        reject: float = 0.0,
        unknown: Any = None,
        level: float = 0.05,
    ) -> NDArray[Any]:
        """Return the most probable class of each document.

        With `reject` it is None where the class is less probable than that; with
        `unknown` it is that where the document belongs to no class, and `level` is the
        share of documents of known classes for which this may be wrong. A text without
        known words gets the most frequent class.
        """
        check_is_fitted(self)
        texts = as_texts(X)
        if not texts:
            return self.classes_[:0]
        return self.classifier_.predict(
            self.embed(texts), reject=reject, unknown=unknown, level=level
        )

    def score(
        self, X: Iterable[object], y: Iterable[object], sample_weight: Any = None
    ) -> float:
        """Return the accuracy on the documents that have a label."""
        texts = as_texts(X)
        labels, known = self._some_labels(y, len(texts))
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, texts)[known]
        own = np.array(labels[known].tolist())
        return float(super().score([texts[row] for row in known], own, sample_weight))

    def in_language(self, name: str) -> Self:
        """Return the same classifier for texts in another language.

        The classifier must have been fitted with an embedder of a
        :class:`~docsigma.ParallelEmbedder`, as in
        ``TopicClassifier(parallel.language("en"), kind="evidence")``. Promises of
        :meth:`calibrate` are for one language, and must be made anew for another.
        """
        check_is_fitted(self)
        other = copy.copy(self)
        other.classifier_ = self.classifier_.in_language(name)
        other.embedder_ = DocumentEmbedder._of(other.classifier_.model_, None)
        return other

    def posterior(self, X: Iterable[object]) -> GaussianPosterior:
        """Return the Gaussian of each document."""
        check_is_fitted(self)
        return self.embedder_.posterior(X)

    def calibrate(self, X: Iterable[object], y: Iterable[object]) -> Self:
        """Learn what can be promised from labelled texts that nothing has seen.

        Neither the classifier nor the embedder may have been fitted to them; texts
        without a label are left out. `predict_sets`, `reject`, `unknown_p_value` and
        `triage` then keep their promises for texts drawn as these were.
        """
        check_is_fitted(self)
        texts = as_texts(X)
        labels, known = self._some_labels(y, len(texts))
        own = np.array(labels[known].tolist())
        self.classifier_.calibrate_on_texts([texts[row] for row in known], own)
        return self

    def predict_sets(
        self, X: Iterable[object], coverage: float = 0.9
    ) -> list[list[Any]]:
        """Return a set of possible labels for each text.

        The set has the true label for the share `coverage`, or more, of texts like
        those of `calibrate`. The most probable label is always in it; for a text
        without known words it has all labels.
        """
        check_is_fitted(self)
        texts = as_texts(X)
        if not texts:
            return []
        chosen = self.classifier_.predict_sets(self.embed(texts), coverage)
        return [self.classes_[row].tolist() for row in chosen]

    def reject(self, risk: float = 0.05, confidence: float = 0.9) -> float:
        """Return the least probability at which to answer, for `predict`.

        At most the share `risk` of the answers is then wrong, with the probability
        `confidence`; infinite where the texts of `calibrate` are too few to show it.
        """
        check_is_fitted(self)
        return self.classifier_.reject(risk, confidence)

    def unknown_p_value(self, X: Iterable[object]) -> NDArray[Any]:
        """Return a p-value of each text belonging to one of the known classes.

        Of texts like those of `calibrate` at most the share p has a value of p or less,
        whatever their length.
        """
        check_is_fitted(self)
        texts = as_texts(X)
        if not texts:
            return np.zeros(0)
        return self.classifier_.unknown_p_value(self.embed(texts))

    def triage(
        self,
        X: Iterable[object],
        *,
        top: int | None = None,
        risk: float | None = None,
        level: float = 0.05,
    ) -> Triage:
        """Return the texts that a person should look at, the most doubtful first.

        Parameters
        ----------
        X : list or column of str
            The texts.
        top : int, optional
            How many to return.
        risk : float, optional
            Return as many as it takes that at most this share of the rest is labelled
            wrongly, with a probability of 90 %, if all are of known classes. Give one
            of the two.
        level : float
            Share of texts of known classes that may be called unknown.
        """
        check_is_fitted(self)
        texts = as_texts(X)
        return triage(self.classifier_, texts, top=top, risk=risk, level=level)

    def next_to_label(
        self, X: Iterable[object], n: int = 10, y: Iterable[object] | None = None
    ) -> NDArray[np.intp]:
        """Return the rows of the `n` texts whose labels would help most, best first.

        They stand for groups of texts that have few labels and large entropies, as on
        the page of ``docsigma explore``.

        Parameters
        ----------
        X : list or column of str
            The texts.
        n : int
            How many.
        y : list or column, optional
            The labels that there are already, `missing_label`, None, NaN, NA or a blank
            for the rest.
        """
        check_is_fitted(self)
        if n < 1:
            raise InputError(f"`n` must be at least 1, got {n}")
        documents = self.embed(X)
        if n > len(documents):
            raise InputError(f"`n` is {n}, but there are {len(documents)} texts")
        labelled = np.zeros(0, dtype=np.intp)
        if y is not None:
            labels = _as_labels(y, len(documents))
            labelled = np.flatnonzero(has_label(labels, self.missing_label))
        if documents.posterior is None:
            raise InputError(
                "`next_to_label` needs Gaussians, and the model gives points"
            )
        entropy = entropies(self.classifier_.predict_log_proba(documents))
        return propose(documents.posterior, labelled, n, entropy)

    def explain(self, X: Iterable[object]) -> list[Explanation]:
        """Return the words for and against each label; for the kind ``"hybrid"``."""
        check_is_fitted(self)
        texts = as_texts(X)
        return self.classifier_.explain(self.embed(texts)) if texts else []

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write all to a folder, as ``docsigma classifier fit`` does.

        A folder that exists is refused unless `overwrite` says otherwise.
        """
        check_is_fitted(self)
        self.classifier_.save(folder, overwrite=overwrite)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        tokenizer: Callable[[str], Iterable[str]] | None = None,
    ) -> Self:
        """Read what :meth:`save` wrote; `tokenizer` is as for a `DocumentEmbedder`."""
        classifier = CountsClassifier.load(folder)
        embedder = DocumentEmbedder._of(classifier.model_, tokenizer)
        topics = cls(
            embedder, kind=classifier.kind, missing_label=classifier.missing_label
        )
        topics.embedder_, topics.classifier_ = embedder, classifier
        return topics


def _as_labels(y: Any, n_texts: int) -> NDArray[Any]:
    """Return labels as a column of objects."""
    labels = as_list(y)
    if len(labels) != n_texts:
        raise InputError(f"there are {n_texts} texts but {len(labels)} labels")
    return labels_of(labels)
