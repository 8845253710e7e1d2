"""Words and embeddings together: the classifier that a user gets by default."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, check_is_fitted

from docsigma._array_checks import Floats
from docsigma.classifiers._base import BaseClassifier
from docsigma.classifiers._hybrid_search import Fold, Point, Search, blend
from docsigma.classifiers._mixing import Mixture
from docsigma.classifiers._semi_supervised_labels import SemiSupervisedLabels
from docsigma.classifiers._softmax_regression import (
    Coefficients,
    Features,
    fit_regression,
)
from docsigma.classifiers._splits import check_column, make_splits
from docsigma.classifiers._words import (
    inverse_document_frequencies,
    tfidf,
)
from docsigma.classifiers.evidence import EvidenceClassifier
from docsigma.classifiers.explanation import Explanation, explain_document
from docsigma.classifiers.uncertainty import Uncertainty
from docsigma.counts.memory import estimator_counts
from docsigma.exceptions import InputError
from docsigma.posterior import GaussianPosterior

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp

# Weights of regression and score in the mixture while no held-out document says more.
START = 0.7, 0.3
# What a shorter copy of a document counts in the choice of settings.
SHORT_WEIGHT = 0.2


class HybridClassifier(BaseClassifier):
    r"""Logistic regression on words and embeddings, mixed with the likelihood score.

    The regression sees TF-IDF, rows of length 1, and the centred means of the
    embeddings times a scale :math:`\beta`. Its scores are mixed with the log
    probabilities of a classifier on the Gaussians,

    .. math::

        s_\ell(x) = a(N)\,(x^T W_\ell + \beta z^T U_\ell + b_\ell)
        + c(N) \log p(\ell \mid q),

    with weights that depend on the number of tokens N. The l2 weight, the scale, which
    may come out as nothing, and the weights are those with the least cross-entropy on
    held-out training documents. A document without known words gets the class priors.

    Parameters
    ----------
    score : estimator, optional
        Scores Gaussians by their likelihood: `fit` takes a posterior and labels, -1
        where there is none, `predict_log_proba` a posterior. By default an
        :class:`~docsigma.classifiers.evidence.EvidenceClassifier`.
    n_folds : int
        Parts of the cross-validation. Classes with fewer documents are allowed.
    random_state : int, RandomState or None
        Deals the documents to the folds.

    Attributes
    ----------
    C_, scale_ : float
        The chosen inverse l2 weight, and scale of the embedding, whose rows have the
        mean square 1 without it.
    mixture_ : Mixture
        Weights of regression and score by length.
    coefficients_ : Coefficients
        The regression.
    score_ : estimator or None
        The fitted score; None where the embeddings are points.
    cross_entropies_ : dict
        Cross-validated cross-entropy, in nats, of each (C, scale, soft) that was tried,
        where `soft` is what the score's opinion on a document without label counts.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    class_prior_ : ndarray of shape (n_classes,)
        Shares of the classes among the labelled documents.
    n_features_in_ : int
        Words.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "score": [BaseEstimator, None],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        score: BaseEstimator | None = None,
        n_folds: int = 3,
        random_state: Any = 0,
    ) -> None:
        self.score, self.n_folds, self.random_state = score, n_folds, random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: tuple[Any, Any],
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        times: Any = None,
        shortened: tuple[Any, Any] | None = None,
    ) -> Self:
        """Choose the settings and fit all documents with them.

        Parameters
        ----------
        X : pair
            Word counts, documents x words, and what a model made of them: a
            GaussianPosterior, or an array of points.
        y : array-like of shape (n_documents,)
            Labels: strings or integers; None or -1 for unknown.
        sample_weight : array-like of shape (n_documents,), optional
            Weights of the documents.
        groups : array-like of shape (n_documents,), optional
            Documents of one group (author, thread) are never both trained on and held
            out.
        times : array-like of shape (n_documents,), optional
            Numbers or dates: documents are held out from training on earlier ones.
        shortened : pair, optional
            Shorter copies of the same documents, in the form of `X`. They help to
            choose the weights by length, and are not trained on.
        """
        counts, embedded = self._check_pair(X, reset=True)
        labels = SemiSupervisedLabels.check(y, counts.shape[0], sample_weight).labels
        rows = labels.kept
        self.classes_ = labels.classes
        self.class_prior_ = labels.class_weights / labels.class_weights.sum()
        self._idf = inverse_document_frequencies(counts)
        means = _means(embedded)
        self._centre = means.mean(axis=0)
        square = ((means - self._centre) ** 2).sum(axis=1).mean()
        self._norm = float(np.sqrt(square)) or 1.0
        features = self._features(counts, embedded)
        targets = np.zeros((len(features), len(self.classes_)))
        targets[rows, labels.codes] = labels.weights
        short = None
        if shortened is not None:
            short_counts, short_embedded = self._check_pair(shortened)
            short = _Part(
                self._features(short_counts, short_embedded),
                short_embedded,
                _lengths(short_counts),
            )
        whole = _Part(features, embedded, _lengths(counts))
        splits = make_splits(
            labels.codes,
            self.n_folds,
            self.random_state,
            *(
                None if g is None else check_column(name, g, counts.shape[0], rows)
                for name, g in (("groups", groups), ("times", times))
            ),
        )
        self.score_, guessed = self._fit_score(embedded, targets, groups=groups)
        folds = [
            self._fold(whole, short, targets, rows[s.train], rows[s.held_out])
            for s in splits
        ]
        soft = 0.0 if guessed is None else 1.0
        first = START if self.score_ is not None else (1.0,)
        search = Search(folds, Mixture.constant(first))
        point = search.choose(Point(soft=soft))
        targets = blend(targets, guessed, point.soft)
        kept = np.flatnonzero(targets.any(axis=1))
        zeros = Coefficients.zeros(features, len(self.classes_), point.scale)
        self.coefficients_ = fit_regression(
            features[kept], targets[kept], zeros, point.C
        )
        self.mixture_ = search.mixture(point)
        self.calibration_ = search.calibration(point)
        self.C_, self.scale_, self.soft_ = point
        self.cross_entropies_ = dict(search.losses)
        return self

    def _fold(
        self,
        whole: _Part,
        short: _Part | None,
        targets: Floats,
        train: NDArray[np.intp],
        held_out: NDArray[np.intp],
    ) -> Fold:
        """Return what one split needs; what is held out has no label for training."""
        known = np.zeros_like(targets)
        known[train] = targets[train]
        score, guessed = self._fit_score(whole.embedded, known, like=self.score_)
        parts = [part for part in (whole, short) if part is not None]
        chosen = [part.take(held_out) for part in parts]
        opinions = None
        if score is not None:
            opinions = np.concatenate(
                [
                    _all_classes(score, part.embedded, targets.shape[1])
                    for part in chosen
                ]
            )
        return Fold(
            train=whole.features,
            labelled=known,
            guessed=guessed,
            evaluated=Features.concatenate([part.features for part in chosen]),
            codes=np.tile(targets[held_out].argmax(axis=1), len(parts)),
            weights=np.outer(
                [1.0, SHORT_WEIGHT][: len(parts)], targets[held_out].sum(axis=1)
            ).ravel(),
            n_tokens=np.concatenate([part.n_tokens for part in chosen]),
            whole=np.repeat([True, False][: len(parts)], len(held_out)),
            score=opinions,
        )

    def _fit_score(
        self, embedded: Any, targets: Floats, like: Any = None, groups: Any = None
    ) -> tuple[Any, Floats | None]:
        """Return the score and its opinion on documents without label, if it has any.

        None and None where the embeddings are points. What the score `like` chose by
        cross-validation is not chosen again.
        """
        if not isinstance(embedded, GaussianPosterior):
            return None, None
        score = EvidenceClassifier(covariance="diagonal")
        if self.score is not None:
            score = clone(self.score)
        if isinstance(like, EvidenceClassifier):
            score.set_params(
                tempering=like.tempering_, unlabelled_weight=like.unlabelled_weight_
            )
        weights = targets.sum(axis=1)
        unknown = weights == 0
        codes = np.where(unknown, -1, targets.argmax(axis=1))
        options: dict[str, Any] = {}
        if groups is not None and isinstance(score, EvidenceClassifier):
            options["groups"] = groups
        score.fit(embedded, codes, np.where(unknown, 1.0, weights), **options)
        weight = float(score.unlabelled_weight_) if unknown.any() else 0.0
        if not weight:
            return score, None
        guessed = np.zeros_like(targets)
        log_proba = _all_classes(score, embedded[unknown], targets.shape[1])
        guessed[unknown] = weight * np.exp(log_proba)
        return score, guessed

    def _check_pair(self, X: Any, *, reset: bool = False) -> tuple[sp.csr_matrix, Any]:
        if not (isinstance(X, (tuple, list)) and len(X) == 2):
            raise InputError(
                "`X` must be a pair, counts and their embeddings, got "
                f"{type(X).__name__}"
            )
        counts = estimator_counts(self, X[0], reset=reset)[:]
        embedded = X[1]
        if not isinstance(embedded, GaussianPosterior):
            embedded = check_array(embedded, dtype=np.float64, input_name="embeddings")
            if not reset and self.score_ is not None:
                raise InputError("`X` has points, but the classifier needs Gaussians")
        if len(embedded) != counts.shape[0]:
            raise InputError(
                f"`X` has the counts of {counts.shape[0]} documents, but the "
                f"embeddings of {len(embedded)}"
            )
        if not reset and _means(embedded).shape[1] != len(self._centre):
            raise InputError(
                f"`X` has embeddings of size {_means(embedded).shape[1]}, but the "
                f"classifier was trained with size {len(self._centre)}"
            )
        return counts, embedded

    def _features(self, counts: sp.csr_matrix, embedded: Any) -> Features:
        return Features(
            tfidf(counts, self._idf), (_means(embedded) - self._centre) / self._norm
        )

    def _parts(self, X: Any) -> tuple[Features, Floats, Floats, Floats]:
        """Return features, weights of the regression, what the score adds, lengths."""
        check_is_fitted(self)
        counts, embedded = self._check_pair(X)
        n_tokens = _lengths(counts)
        weights = self.mixture_.at(n_tokens)
        added = np.zeros((len(n_tokens), len(self.classes_)))
        if self.score_ is not None:
            log_proba = _all_classes(self.score_, embedded, len(self.classes_))
            added = weights[:, 1:] * log_proba
        return self._features(counts, embedded), weights[:, 0], added, n_tokens

    def _class_scores(self, X: Any) -> Floats:
        features, weights, added, n_tokens = self._parts(X)
        scores = weights[:, None] * self.coefficients_.scores(features) + added
        scores[n_tokens == 0] = np.log(self.class_prior_)
        return np.asarray(scores)

    def predict_uncertainty(
        self, X: Any, *, n_draws: int = 32, random_state: int = 0
    ) -> Uncertainty:
        """Return what the prediction does not know, per document.

        Parameters
        ----------
        X : pair
            As for `fit`.
        n_draws : int
            Draws of embeddings for the epistemic part.
        random_state : int
            Decides the draws.
        """
        features, weights, added, n_tokens = self._parts(X)
        words = weights[:, None] * self.coefficients_.word_scores(features)
        embedded = X[1]
        if isinstance(embedded, GaussianPosterior):
            draws = embedded.draws(n_draws, random_state, same_noise=True)
        else:
            draws = np.asarray(embedded)[None]
        factor = weights[:, None] * (self.scale_ / self._norm)
        at = getattr(self.score_, "log_proba_at", None)
        share = None if at is None else self.mixture_.at(n_tokens)[:, 1:]

        def log_proba(draw: Floats) -> Floats:
            moved = (draw - self._centre) @ self.coefficients_.embedding
            score = added if at is None else share * at(draw)
            scores = words + factor * moved + score
            scores[n_tokens == 0] = np.log(self.class_prior_)
            return np.asarray(log_softmax(scores, axis=1))

        return Uncertainty.of_draws(
            self.predict_log_proba(X),
            (log_proba(draw) for draw in draws),
            self.coefficients_.scores(features).max(axis=1),
        )

    def explain(self, X: Any, words: Sequence[str] | None = None) -> list[Explanation]:
        """Return what spoke for the predicted class of each document.

        It is set against the second best class: the amounts add up to the difference
        of their log probabilities.

        Parameters
        ----------
        X : pair
            As for `fit`.
        words : sequence of str, optional
            Names of the columns of the counts; by default their numbers.
        """
        features, weights, added, n_tokens = self._parts(X)
        scores = self._class_scores(X)
        order = np.argsort(-scores, axis=1, kind="stable")
        return [
            explain_document(
                self,
                features[row : row + 1],
                float(weights[row]),
                added[row],
                bool(n_tokens[row] == 0),
                (int(order[row, 0]), int(order[row, 1])),
                words,
            )
            for row in range(len(scores))
        ]


@dataclass(frozen=True)
class _Part:
    """Documents as the search needs them."""

    features: Features
    embedded: Any
    n_tokens: Floats

    def take(self, rows: NDArray[np.intp]) -> _Part:
        return _Part(self.features[rows], self.embedded[rows], self.n_tokens[rows])


def _means(embedded: Any) -> Floats:
    given = embedded.mean if isinstance(embedded, GaussianPosterior) else embedded
    return np.asarray(given, dtype=np.float64)


def _lengths(counts: sp.csr_matrix) -> Floats:
    return np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()


def _all_classes(score: Any, embedded: GaussianPosterior, n_classes: int) -> Floats:
    """Return log probabilities; a class that the score has not seen is unlikely."""
    log_proba = np.asarray(score.predict_log_proba(embedded))
    if log_proba.shape[1] == n_classes:
        return log_proba
    lowest = log_proba.min(axis=1, keepdims=True)
    result = np.repeat(lowest, n_classes, axis=1)
    result[:, score.classes_] = log_proba
    return result
