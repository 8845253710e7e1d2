"""A model and a classifier on its embeddings, kept together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from docsigma._array_checks import Floats, check_choice
from docsigma.classifiers._hybrid_arrays import (
    EVIDENCE,
    pack_hybrid,
    restore_hybrid,
)
from docsigma.classifiers._labels import TrainingLabels, label_array
from docsigma.classifiers._semi_supervised_labels import SemiSupervisedLabels
from docsigma.classifiers._turned_model import can_turn, within_class_axes
from docsigma.classifiers._words import shorten
from docsigma.classifiers.conformal import PredictionSets
from docsigma.classifiers.evidence import EvidenceClassifier
from docsigma.classifiers.gaussian_linear import GaussianLinearClassifier
from docsigma.classifiers.hybrid import HybridClassifier
from docsigma.classifiers.logistic import CrossValidatedLogisticRegression
from docsigma.classifiers.uncertain_gaussian import UncertainGaussianClassifier
from docsigma.classifiers.uncertainty import Uncertainty, embedding_uncertainty
from docsigma.counts import as_counts
from docsigma.exceptions import InputError
from docsigma.models.card import model_card
from docsigma.models.registry import restore_model
from docsigma.models.turned import turn_model
from docsigma.persistence import StoredModel, read_model, write_model
from docsigma.posterior import GaussianPosterior

if TYPE_CHECKING:
    from docsigma.classifiers.explanation import Explanation
    from docsigma.models._count_model import CountModel


KINDS: dict[str, type] = {
    "hybrid": HybridClassifier,
    "evidence": EvidenceClassifier,
    "glcu": UncertainGaussianClassifier,
    "glc": GaussianLinearClassifier,
    "lr": CrossValidatedLogisticRegression,
}
# What folders call it, since before TopicClassifier took texts.
FOLDER_KIND = "TopicClassifier"
_GAUSSIAN = EVIDENCE[:6]
# Classifiers on Gaussians; the others take means.
_ON_GAUSSIANS = ("evidence", "glcu")
# Kinds that learn from documents without label too.
SEMI_SUPERVISED = ("hybrid", "evidence")
# Documents that say along which axes the model is turned, at the most; and labelled
# ones per dimension at the least, below which its own axes are the better ones.
_AXES_DOCUMENTS = 4000
_AXES_LABELS = 5


class CountsClassifier:
    """A model of counts and a classifier on its embeddings, saved to one folder.

    :class:`~docsigma.text.topic_classifier.TopicClassifier` is the same on texts.

    Parameters
    ----------
    model : BayesianSMM, SMM or NVDM
        Turns counts into Gaussians or, as SMM does, into points.
    classifier : fitted classifier
        One of the `KINDS`, trained on the model's embeddings.
    kind : {"hybrid", "evidence", "glcu", "glc", "lr"}
        Its name in `KINDS`.
    axes : ndarray of shape (n_components, n_components), optional
        Axes along which the model is turned before it embeds, as columns: those in
        which the within-class covariance is diagonal.

    Examples
    --------
    >>> from docsigma import BayesianSMM, load_corpus
    >>> corpus = load_corpus("synthetic")
    >>> labels = np.where(corpus.truth.train_embeddings[:, 0] > 0, "up", "down")
    >>> smm = BayesianSMM(5, max_iter=100, learning_rate=0.05, random_state=0)
    >>> smm = smm.fit(corpus.train.counts)
    >>> topics = CountsClassifier.fit(smm, corpus.train.counts, labels)
    >>> q = topics.embed(corpus.test.counts)
    >>> topics.predict_log_proba(q, corpus.test.counts).shape
    (100, 2)
    """

    def __init__(
        self,
        model: CountModel,
        classifier: Any,
        kind: str,
        axes: Floats | None = None,
    ) -> None:
        self.model = model
        self.classifier = classifier
        self.kind = kind
        self.axes = axes
        self._embedding = model if axes is None else turn_model(model, axes)
        self._calibration: PredictionSets | None = None

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels, in the order of the probabilities."""
        return np.asarray(self.classifier.classes_)

    @classmethod
    def fit(
        cls,
        model: CountModel,
        counts: Any,
        labels: Sequence[str | None] | NDArray[Any],
        *,
        kind: str = "hybrid",
        groups: Any = None,
        times: Any = None,
    ) -> Self:
        """Embed documents by a fitted model and train a classifier on them.

        Parameters
        ----------
        model : BayesianSMM, SMM or NVDM
            Fitted; it never sees the labels.
        counts : sparse matrix of shape (n_documents, n_features)
            Word counts; or, except for the hybrid, a GaussianPosterior, what the model
            returned for them.
        labels : sequence of str
            One per document; for ``"hybrid"`` and ``"evidence"`` -1 or None where there
            is none.
        kind : {"hybrid", "evidence", "glcu", "glc", "lr"}
            Which classifier; ``"evidence"`` and ``"glcu"`` need a model that infers
            Gaussians. From counts, ``"hybrid"`` and ``"evidence"`` turn the model into
            axes in which the within-class covariance is diagonal, if labels are enough
            to tell, and are fast; from a posterior ``"evidence"`` uses the full
            covariance.
        groups, times : array-like of shape (n_documents,), optional
            What cross-validation keeps apart, as for the `fit` of the hybrid; groups
            for ``"evidence"`` too.
        """
        check_choice("kind", kind, KINDS)
        if kind in _ON_GAUSSIANS and model.gives_points:
            raise InputError(
                f"the classifier {kind} needs Gaussians, and {type(model).__name__} "
                "gives points: use glc or lr"
            )
        if kind not in SEMI_SUPERVISED and groups is not None:
            raise InputError(f"`groups` are for hybrid and evidence, not for {kind}")
        if kind != "hybrid" and times is not None:
            raise InputError(f"`times` are for the hybrid, not for {kind}")
        given = isinstance(counts, GaussianPosterior)
        if kind == "hybrid" and given:
            raise InputError("the hybrid needs counts, and got a GaussianPosterior")
        labels = label_array(labels)
        axes = None
        if kind in SEMI_SUPERVISED and not given and can_turn(model):
            axes = _axes(model, counts, labels)
        classifier = KINDS[kind]()
        if kind == "evidence" and axes is not None:
            classifier.set_params(covariance="diagonal")
        topics = cls(model, classifier, kind, axes)
        embedded = counts if given else topics.embed(counts)
        features = topics._features(embedded, counts)
        if kind == "hybrid":
            short = shorten(as_counts(counts)[:])
            options = {"groups": groups, "times": times}
            options["shortened"] = short, topics.embed(short)
            classifier.fit(features, labels, **options)
        elif kind == "evidence":
            classifier.fit(features, labels, groups=groups)
        else:
            classifier.fit(features, labels)
        return topics

    def embed(self, counts: Any) -> GaussianPosterior | NDArray[Any]:
        """Return the embeddings of documents: Gaussians, or points if it has those."""
        if self.model.gives_points:
            return self.model.transform(counts)
        return self._embedding.posterior(counts)

    def predict_log_proba(
        self, posterior: GaussianPosterior | NDArray[Any], counts: Any = None
    ) -> Floats:
        """Return log probabilities of the classes for what :meth:`embed` returned.

        The hybrid needs the `counts` of the same documents as well.
        """
        features = self._features(posterior, counts)
        return np.asarray(self.classifier.predict_log_proba(features))

    def predict(self, counts: Any, *, reject: float = 0.0) -> NDArray[Any]:
        """Return the label of each document, None where it is not probable enough.

        Parameters
        ----------
        counts : sparse matrix of shape (n_documents, n_features)
            Word counts.
        reject : float
            Least probability of a label;
            :meth:`~docsigma.classifiers.conformal.PredictionSets.reject_threshold` of
            `calibration` chooses one by risk or coverage.
        """
        log_proba = self.predict_log_proba(self.embed(counts), counts)
        winners = self.classes_[log_proba.argmax(axis=1)]
        labels: NDArray[Any] = winners.astype(object)
        labels[np.exp(log_proba.max(axis=1)) < reject] = None
        return labels

    def predict_uncertainty(
        self, posterior: GaussianPosterior | NDArray[Any], counts: Any = None
    ) -> Uncertainty:
        """Return entropy, its epistemic part and typicality; as `predict_log_proba`.

        Of a document without known words all of the entropy is epistemic.
        """
        features = self._features(posterior, counts)
        if self.kind == "hybrid":
            found: Uncertainty = self.classifier.predict_uncertainty(features)
        elif self.kind == "evidence" or not isinstance(posterior, GaussianPosterior):
            found = embedding_uncertainty(self.classifier, features)
        else:
            found = embedding_uncertainty(self.classifier, features, posterior)
        all_of_it = np.where(_silent(posterior), found.entropy, found.epistemic)
        return replace(found, epistemic=all_of_it)

    def predict_sets(
        self,
        posterior: GaussianPosterior | NDArray[Any],
        counts: Any = None,
        coverage: float = 0.9,
    ) -> NDArray[np.bool_]:
        """Return which labels may be right, documents x classes.

        The true one is among them for the share `coverage` of documents like those of
        the calibration. A set may be empty: no label is likely enough. A document
        without known words may be anything.
        """
        if not len(self.calibration):
            raise InputError(
                f"this classifier ({self.kind}) has no prediction sets: `calibrate` it "
                "on labelled documents that it was not trained on"
            )
        proba = np.exp(self.predict_log_proba(posterior, counts))
        chosen = self.calibration.contains(proba, coverage)
        return np.asarray(chosen | _silent(posterior)[:, None])

    def explain(self, counts: Any) -> list[Explanation]:
        """Return which words, and how much of the embedding, spoke for each label.

        For the hybrid only.
        """
        if self.kind != "hybrid":
            raise InputError(
                f"only the hybrid explains itself, and this is {self.kind}"
            )
        words = self.model.vocabulary_
        names = None if words is None else words.words
        pair = self._features(self.embed(counts), counts)
        explained: list[Explanation] = self.classifier.explain(pair, names)
        return explained

    @property
    def calibration(self) -> PredictionSets:
        """Prediction sets: from :meth:`calibrate`, else the hybrid's held-out ones.

        They have no document (their length is 0) where there were none to hold out.
        """
        if self._calibration is not None:
            return self._calibration
        if self.kind == "hybrid":
            found: PredictionSets = self.classifier.calibration_
            return found
        return PredictionSets(*(np.zeros(0) for _ in range(3)))

    def calibrate(self, counts: Any, labels: Any) -> Self:
        """Learn prediction sets from labelled documents that were not trained on."""
        counts = as_counts(counts)
        log_proba = self.predict_log_proba(self.embed(counts), counts)
        self._calibration = PredictionSets.calibrate(
            np.exp(log_proba), labels, classes=self.classes_, n_tokens=counts.n_tokens
        )
        return self

    def _features(
        self, embedded: GaussianPosterior | NDArray[Any], counts: Any = None
    ) -> Any:
        """Return what the classifier takes: Gaussians, their means, or with counts."""
        if self.kind == "hybrid":
            if counts is None:
                raise InputError("the hybrid needs the documents' `counts` as well")
            return counts, embedded
        if self.kind in _ON_GAUSSIANS or not isinstance(embedded, GaussianPosterior):
            return embedded
        return embedded.mean

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write model and classifier to one folder: safetensors and JSON."""
        embedding = self.model._pack()
        arrays = {f"embedding.{k}": v for k, v in embedding.arrays.items()}
        arrays |= {f"classifier.{k}": v for k, v in self._arrays().items()}
        if self.axes is not None:
            arrays["axes"] = self.axes
        if self._calibration is not None:
            arrays["calibration"] = self._calibration.to_array()
        config = {
            "classifier": {
                "kind": self.kind,
                "classes": self.classes_.tolist(),
                "parameters": _plain(self.classifier.get_params(deep=False)),
                "n_features_in_": int(self.classifier.n_features_in_),
            },
            "embedding": {"kind": embedding.kind, **embedding.config},
        }
        stored = StoredModel(FOLDER_KIND, config, arrays, embedding.vocabulary)
        write_model(folder, stored, model_card(self.model, self.classes_.tolist()))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        c = self.classifier
        if self.kind == "hybrid":
            return pack_hybrid(c)
        if self.kind != "lr":
            return {name: np.asarray(getattr(c, name)) for name in _fitted(self.kind)}
        return {
            "coef_": c.estimator_.coef_,
            "intercept_": c.estimator_.intercept_,
            "centre": c._centre,
            "scale": np.array([c._scale]),
        }

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote; no code is run."""
        stored = read_model(folder, FOLDER_KIND)
        try:
            about = _with_current_names(stored.config["classifier"])
            embedding = stored.config["embedding"]
            arrays = _named(stored.arrays, "embedding.")
            kind, words = embedding["kind"], stored.vocabulary
            stored_model = StoredModel(kind, embedding, arrays, words)
            classifier = KINDS[about["kind"]](**about["parameters"])
            classifier.classes_ = np.asarray(about["classes"])
            classifier.n_features_in_ = about["n_features_in_"]
            own = _named(stored.arrays, "classifier.")
            if about["kind"] == "lr":
                _restore_logistic(classifier, own)
            elif about["kind"] == "hybrid":
                restore_hybrid(classifier, own)
            else:
                for name in _fitted(about["kind"]):
                    setattr(classifier, name, own[name])
        except (KeyError, TypeError) as error:
            raise InputError(f"{folder}/config.json is damaged: {error}") from error
        model = restore_model(stored_model, folder)
        topics = cls(model, classifier, about["kind"], stored.arrays.get("axes"))
        if "calibration" in stored.arrays:
            topics._calibration = PredictionSets(*stored.arrays["calibration"])
        return topics


def _fitted(kind: str) -> tuple[str, ...]:
    """Return the names of a Gaussian classifier's fitted arrays."""
    return EVIDENCE if kind == "evidence" else _GAUSSIAN


def _axes(model: CountModel, counts: Any, labels: Any) -> Floats | None:
    """Return the within-class axes of a model's embeddings, from some documents.

    None if too few of them have labels.
    """
    y = label_array(labels)
    found = SemiSupervisedLabels.check(y, counts.shape[0])
    rows = found.labels.kept
    if len(rows) < _AXES_LABELS * model.n_components:
        return None
    if len(rows) > _AXES_DOCUMENTS:
        chosen = np.random.default_rng(0).permutation(len(rows))[:_AXES_DOCUMENTS]
        rows = np.sort(rows[chosen])
    some = TrainingLabels.check(y[rows], len(rows), min_classes=1)
    means = model.posterior(counts[rows]).mean
    return within_class_axes(means, some, np.ones(len(rows)))


def _with_current_names(about: dict[str, Any]) -> dict[str, Any]:
    """Describe a classifier that an earlier version wrote as `save` does now."""
    if about["kind"] != "glcu":
        return about
    parameters = dict(about["parameters"])
    uncertainty = parameters.pop("uncertainty", None)
    if uncertainty == "columns":
        # It counted the variances of posteriors among its columns.
        parameters["layout"] = "mean"
        n_components = about["n_features_in_"] // 2
        return {**about, "parameters": parameters, "n_features_in_": n_components}
    if uncertainty == "none":
        # It took only the means of posteriors, and so was GLC.
        kept = {name: parameters[name] for name in ("priors", "regularization")}
        return {**about, "kind": "glc", "parameters": kept}
    return about


def _named(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names have the prefix, without it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _restore_logistic(classifier: Any, arrays: dict[str, NDArray[Any]]) -> None:
    classifier._centre = arrays["centre"]
    classifier._scale = float(arrays["scale"][0])
    inner = LogisticRegression()
    inner.coef_, inner.intercept_ = arrays["coef_"], arrays["intercept_"]
    inner.classes_ = np.arange(len(classifier.classes_))
    inner.n_features_in_ = inner.coef_.shape[1]
    classifier.estimator_ = inner


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        for name, value in parameters.items()
    }


def _silent(posterior: GaussianPosterior | NDArray[Any]) -> NDArray[np.bool_]:
    """Return which documents are known to have no known word."""
    tokens = getattr(posterior, "n_tokens", None)
    return np.zeros(len(posterior), dtype=bool) if tokens is None else tokens == 0
