"""The classifier of word counts: a model and a classifier on its embeddings."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from docsigma._array_checks import Floats, check_choice
from docsigma._base import HasDefaults
from docsigma.classifiers._base import BaseClassifier
from docsigma.classifiers._folds import check_column
from docsigma.classifiers._labels import TrainingLabels, fingerprints, label_array
from docsigma.classifiers._pairs import pairs_of
from docsigma.classifiers._promises import Promises
from docsigma.classifiers.documents import EmbeddedDocuments
from docsigma.classifiers.evidence import EvidenceClassifier
from docsigma.classifiers.gaussian_linear import GaussianLinearClassifier
from docsigma.classifiers.guarantees import Guarantees
from docsigma.classifiers.hybrid import HybridClassifier
from docsigma.classifiers.logistic import CrossValidatedLogisticRegression
from docsigma.classifiers.uncertain_gaussian import UncertainGaussianClassifier
from docsigma.counts.memory import as_counts, estimator_counts
from docsigma.counts.texts import is_nothing
from docsigma.exceptions import InputError
from docsigma.models import BayesianSMM
from docsigma.models.card import model_card
from docsigma.models.components import known_words
from docsigma.models.registry import restore_model
from docsigma.parts import under
from docsigma.persistence import StoredModel, read_model, write_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from docsigma.classifiers.explanation import Explanation
    from docsigma.counts import CountedDocuments, Vocabulary
    from docsigma.models._count_model import CountModel


KINDS: dict[str, type[BaseClassifier]] = {
    "hybrid": HybridClassifier,
    "evidence": EvidenceClassifier,
    "glcu": UncertainGaussianClassifier,
    "glc": GaussianLinearClassifier,
    "lr": CrossValidatedLogisticRegression,
}
FOLDER_KIND = "TopicClassifier"
# The kind for texts in languages other than that of the labels
# (`benchmarks/results/languages.json`).
ACROSS = "evidence"


class CountsClassifier(HasDefaults, Promises):
    """Classifies word counts, with probabilities.

    :class:`~docsigma.text.topic_classifier.TopicClassifier` is the same on texts.

    Parameters
    ----------
    model : BayesianSMM, SMM or NVDM, default=None
        Turns counts into Gaussians or, as SMM does, into points; it never sees the
        labels. None means a :class:`~docsigma.BayesianSMM`. A fitted model is used
        unchanged; any other is copied and fitted.
    kind : {"hybrid", "evidence", "glcu", "glc", "lr"} or classifier, default="hybrid"
        The classifier on words and embeddings, on embeddings by their likelihood, on
        means and variances, or (``"glc"``, ``"lr"``) on means only. The first two learn
        from documents without label too; the others leave them out.
    missing_label : object, default=-1
        The label that stands for none, besides None, NaN, NA and blanks. With None,
        -1 is a class like any other; it is one anyway in labels of -1 and 1.
    verbose : bool, default=False
        Whether steps longer than two seconds show a progress bar.

    Attributes
    ----------
    model_ : estimator
        The fitted model.
    classifier_ : classifier
        The fitted classifier on its embeddings.
    classes_ : ndarray of shape (n_classes,)
        Labels, in the order of the probabilities.
    class_prior_ : ndarray of shape (n_classes,)
        Their shares of the labelled documents, or the classifier's `priors`: what a
        document without known words gets.
    n_features_in_ : int
        Words.

    Examples
    --------
    >>> from docsigma import BayesianSMM, load_corpus
    >>> corpus = load_corpus("synthetic")
    >>> labels = np.where(corpus.truth.train_embeddings[:, 0] > 0, "up", "down")
    >>> smm = BayesianSMM(5, max_iter=100, learning_rate=0.05, random_state=0)
    >>> topics = CountsClassifier(smm).fit(corpus.train.counts, labels)
    >>> topics.predict_proba(corpus.test.counts).shape
    (100, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "model": [BaseEstimator, None],
        "kind": [str, BaseClassifier],
        "missing_label": "no_validation",
        "verbose": ["boolean"],
    }

    _defaults: ClassVar[dict[str, type[BaseEstimator]]] = {"model": BayesianSMM}

    model_: CountModel
    classifier_: Any

    def __init__(
        self,
        model: Any = None,
        kind: Any = "hybrid",
        *,
        missing_label: Any = -1,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.kind = kind
        self.missing_label = missing_label
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Embeddings know shares of words and no lengths: of the two features of
        # scikit-learn's check one is left, as for its own MultinomialNB.
        tags.classifier_tags.poor_score = True
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        times: Any = None,
        pairs: Vocabulary | None = None,
    ) -> Self:
        """Embed documents and learn classes from them, some of which have a label.

        Parameters
        ----------
        X : matrix or Counts of shape (n_documents, n_words)
            Word counts; counts of `pairs`, if any, come after the words that the model
            knows.
        y : array-like of shape (n_documents,)
            Labels; `missing_label`, None, NaN, NA or a blank where there is none.
        sample_weight : array-like of shape (n_documents,), optional
            Weights of the documents in the classifier: one of weight 2 counts as two
            copies, one of weight 0 is left out. A model that is still to be fitted
            sees each document of counts in memory once, those of weight 0 not at all.
        groups : array-like of shape (n_documents,), optional
            Documents of one group (author, thread) are never both trained on and held
            out. For the hybrid only.
        times : array-like of shape (n_documents,), optional
            Numbers or dates: documents are held out from training on earlier ones. For
            the hybrid only.
        pairs : Vocabulary, optional
            Pairs of words, which only the hybrid looks at.
        """
        classifier = self._unfitted_classifier()
        given = {"groups": groups, "times": times}
        options = {name: value for name, value in given.items() if value is not None}
        _check_options(classifier, options)
        counts = estimator_counts(self, X, reset=True)
        if counts.shape[1] < 2:
            raise InputError("`X` has n_features = 1: documents of one word are alike")
        n_documents = len(counts)
        labels = TrainingLabels.check_some(
            y, n_documents, sample_weight, missing_label=self.missing_label
        )
        for name, column in options.items():
            check_column(name, column, n_documents, labels.kept)
        if not options:
            contents = [fingerprints(block) for block in counts.iter_blocks()]
            labels = labels.merged(np.concatenate(contents))
        on_disk = not counts.in_memory
        own = counts if on_disk else as_counts(counts[labels.rows])
        self.model_ = self._fitted_model(own)
        self.pairs_ = pairs
        if self.model_.gives_points and classifier.takes == "posterior":
            raise InputError(
                f"the classifier {self._kind_name} needs Gaussians, and "
                f"{type(self.model_).__name__} gives points: use hybrid, glc or lr"
            )
        rows = labels.rows if classifier.learns_from_unlabelled else labels.kept
        if on_disk and len(rows) == n_documents:
            rows = np.arange(n_documents)
        else:
            counts = as_counts(counts[rows])
        weights = np.zeros(n_documents)
        weights[labels.kept] = labels.weights
        weights[labels.unlabelled] = labels.unlabelled_weights
        documents = self.embed(counts)
        for name, column in options.items():
            options[name] = label_array(column)[rows]
        if classifier.learns_from_unlabelled:
            classifier.set_params(missing_label=None)
        self.classifier_ = classifier.fit(
            self._input(documents),
            labels.column(rows),
            weights[rows],
            **options,
        )
        shares = labels.class_weights / labels.class_weights.sum()
        self.class_prior_ = getattr(self.classifier_, "class_prior_", shares)
        self._guarantees: Guarantees | None = None
        return self

    def _unfitted_classifier(self) -> Any:
        if isinstance(self.kind, BaseEstimator):
            nothing = repr(getattr(self.kind, "missing_label", -1))
            if nothing not in ("-1", "None", repr(self.missing_label)):
                raise InputError(
                    f"`missing_label` is {self.missing_label!r}, but that of `kind` is "
                    f"{nothing}: give it to {type(self).__name__} alone"
                )
            return clone(self.kind)
        check_choice("kind", self.kind, KINDS)
        found: Any = KINDS[self.kind]()
        own = set(found.get_params(deep=False))
        device = getattr(self.model, "device", "auto")
        settings = {"device": device, "verbose": self.verbose}
        return found.set_params(**{k: v for k, v in settings.items() if k in own})

    def _fitted_model(self, counts: Any) -> CountModel:
        model: Any = BayesianSMM() if self.model is None else self.model
        if isinstance(model, FrozenEstimator):
            model = model.estimator
        try:
            check_is_fitted(model)
        except NotFittedError:
            model = clone(model).fit(counts)
        found: CountModel = model
        return found

    @property
    def _kind_name(self) -> str:
        return self.kind if isinstance(self.kind, str) else type(self.kind).__name__

    @property
    def classes_(self) -> NDArray[Any]:  # type: ignore[override]
        """Labels, in the order of the probabilities."""
        check_is_fitted(self)
        return np.asarray(self.classifier_.classes_)

    def embed(self, X: Any, n_unknown: Any = None) -> EmbeddedDocuments:
        """Return the documents with their embeddings, which all methods take too.

        `n_unknown` are the words of each that the model does not know.
        """
        check_is_fitted(self, "model_")
        model: Any = self.model_
        n_words = model.n_features_in_
        # Documents may come without the counts of their pairs.
        alone = getattr(X, "shape", (0, 0))[-1] == n_words
        counts = estimator_counts(model if alone else self, X, reset=False)
        matrix = counts[:]
        pairs = matrix[:, n_words:]
        if alone:
            n_pairs = self.n_features_in_ - n_words
            pairs = sparse.csr_matrix((matrix.shape[0], n_pairs))
        elif pairs.shape[1]:
            matrix = matrix[:, :n_words]
            counts = as_counts(matrix)
        embed = model.transform if model.gives_points else model.posterior
        return EmbeddedDocuments(matrix, embed(counts), pairs, n_unknown)

    def embed_texts(self, texts: Iterable[object]) -> EmbeddedDocuments:
        """Count the words of texts and embed them."""
        counted = self.count(texts)
        return self.embed(counted.counts, counted.n_unknown)

    def count(self, texts: Iterable[object]) -> CountedDocuments:
        """Count the words of texts, and the pairs after them."""
        check_is_fitted(self)
        known = list(texts)
        counted = known_words(self.model_).count(known)
        return replace(counted, counts=self.with_pairs(counted.counts, known))

    def with_pairs(
        self, counts: sparse.csr_matrix, texts: Sequence[object] | None
    ) -> sparse.csr_matrix:
        """Return word counts with those of the texts' pairs after them."""
        if self.pairs_ is None or texts is None:
            return counts
        both = [counts, self.pairs_.count(texts).counts]
        wide: sparse.csr_matrix = sparse.hstack(both, format="csr")
        return wide

    def _documents(self, X: Any) -> EmbeddedDocuments:
        check_is_fitted(self)
        return X if isinstance(X, EmbeddedDocuments) else self.embed(X)

    def _input(self, documents: EmbeddedDocuments) -> Any:
        """Return what the classifier takes."""
        if self._takes == "documents":
            return documents
        return documents.means if self._takes == "means" else documents.posterior

    @property
    def _takes(self) -> str:
        found = getattr(self, "classifier_", None)
        if found is None:
            found = self._unfitted_classifier()
        return str(found.takes)

    def _class_scores(self, X: Any) -> Floats:
        documents = self._documents(X)
        scores = self.classifier_._class_scores(self._input(documents))
        silent = (documents.n_tokens == 0)[:, None]
        return np.asarray(np.where(silent, np.log(self.class_prior_), scores))

    def in_language(self, name: str) -> Self:
        """Return the same classifier for counts in another language of the model.

        Promises of :meth:`calibrate` are for the language that it was given, and the
        hybrid looks at words of that language: it is refused.
        """
        check_is_fitted(self)
        whole, own = getattr(self.model_, "whole_", None) or (None, None)
        if whole is None:
            raise InputError(
                "the classifier was fitted with a model of one language: fit it with "
                "that of a ParallelEmbedder"
            )
        if name != own and self._takes == "documents":
            raise InputError(
                f"the kind {self._kind_name} looks at words of {own!r}, so it does not "
                f'know those of {name!r}: fit with kind="{ACROSS}"'
            )
        other = copy.copy(self)
        other.model_ = whole.view(name)
        if name != own:
            other.pairs_, other._guarantees = None, None
            other.n_features_in_ = other.model_.n_features_in_
        return other

    def explain(self, X: Any) -> list[Explanation]:
        """Return which words, and how much of the embedding, spoke for each label.

        For the hybrid only.
        """
        check_is_fitted(self)
        if not hasattr(self.classifier_, "explain"):
            raise InputError(
                f"only the hybrid explains itself, and this is {self._kind_name}"
            )
        words = self.model_.vocabulary_
        names = None if words is None else list(words.words)
        if names is not None and self.pairs_ is not None:
            names += self.pairs_.words
        found: list[Explanation] = self.classifier_.explain(self._documents(X), names)
        return found

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write model and classifier to one folder: safetensors and JSON.

        A folder that exists is refused unless `overwrite` says otherwise.
        """
        check_is_fitted(self)
        missing = _plain({"": self.missing_label})[""]
        # A model of one language is saved with the others, which know the same classes.
        whole, language = getattr(self.model_, "whole_", None) or (self.model_, None)
        embedding, classifier = whole._pack(), self.classifier_
        kinds = {cls: name for name, cls in KINDS.items()}
        if type(classifier) not in kinds:
            raise InputError(
                f"a {type(classifier).__name__} cannot be saved: "
                f"only {', '.join(KINDS)} can"
            )
        arrays = {f"embedding.{k}": v for k, v in embedding.arrays.items()}
        arrays |= {f"classifier.{k}": v for k, v in classifier.arrays().items()}
        arrays["class_prior"] = self.class_prior_
        if self._guarantees is not None:
            arrays["guarantees"] = self._guarantees.to_array()
        config = {
            "classifier": {
                "kind": kinds[type(classifier)],
                "classes": self.classes_.tolist(),
                "parameters": _plain(classifier.get_params(deep=False)),
                "missing_label": None if is_nothing(missing) else missing,
                "n_features_in_": int(classifier.n_features_in_),
            },
            "pairs": None if self.pairs_ is None else list(self.pairs_.words),
            "embedding": {"kind": embedding.kind, **embedding.config},
            **({} if language is None else {"language": language}),
        }
        stored = StoredModel(FOLDER_KIND, config, arrays, embedding.vocabulary)
        card = model_card(self.model_, self.classes_.tolist())
        write_model(folder, stored, card, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote; no code is run."""
        stored = read_model(folder, FOLDER_KIND)
        try:
            about, embedding = stored.config["classifier"], stored.config["embedding"]
            arrays, words = under("embedding.", stored.arrays), stored.vocabulary
            classifier: Any = KINDS[about["kind"]](**about["parameters"])
            classifier.classes_ = np.asarray(about["classes"])
            classifier.n_features_in_ = about["n_features_in_"]
            classifier.set_arrays(under("classifier.", stored.arrays))
            stored_model = StoredModel(embedding["kind"], embedding, arrays, words)
            missing_label = about["missing_label"]
            class_prior = stored.arrays["class_prior"]
        except (KeyError, TypeError) as error:
            raise InputError(f"{folder}/config.json is damaged: {error}") from error
        model: Any = restore_model(stored_model, folder)
        if "language" in stored.config:
            model = model.view(stored.config["language"])
        topics = cls(model, about["kind"], missing_label=missing_label)
        topics.model_, topics.classifier_ = model, classifier
        topics.class_prior_ = class_prior
        found = stored.config["pairs"]
        topics.pairs_ = found and pairs_of(known_words(model), found)
        topics.n_features_in_ = model.n_features_in_ + len(found or ())
        topics._guarantees = None
        if "guarantees" in stored.arrays:
            topics._guarantees = Guarantees.of_array(stored.arrays["guarantees"])
        return topics


def _check_options(classifier: Any, options: dict[str, Any]) -> None:
    """Refuse `groups` and `times` for classifiers that do not take them."""
    if options and classifier.takes != "documents":
        name = type(classifier).__name__
        raise InputError(f"`{min(options)}` are for the hybrid, not for {name}")


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        for name, value in parameters.items()
        if name != "verbose"
    }
