"""Words and embeddings together: the classifier that a user gets by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from docsigma._array_checks import Floats
from docsigma.classifiers._base import BaseClassifier
from docsigma.classifiers._folds import check_column, make_splits, trained_on
from docsigma.classifiers._labels import TrainingLabels
from docsigma.classifiers._linear import LinearScores
from docsigma.classifiers._pool import choose_held_out, pooled
from docsigma.classifiers._words import inverse_document_frequencies, tfidf
from docsigma.classifiers.documents import EmbeddedDocuments
from docsigma.classifiers.evidence import EvidenceClassifier
from docsigma.classifiers.explanation import Explanation, explain_document
from docsigma.classifiers.settings import MOST_UNLABELLED, N_FOLDS
from docsigma.exceptions import InputError
from docsigma.parts import under

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp

    from docsigma.classifiers._folds import Split
    from docsigma.posterior import GaussianPosterior


@dataclass(frozen=True)
class Features:
    """What the parts see: TF-IDF of words and pairs, scaled means, and embeddings."""

    words: sp.csr_matrix
    means: Floats
    embedding: GaussianPosterior | NDArray[Any]

    def __getitem__(self, rows: Any) -> Features:
        return Features(self.words[rows], self.means[rows], self.embedding[rows])


class HybridClassifier(BaseClassifier):
    r"""Three plain classifiers of words and embeddings, pooled.

    A linear support vector machine sees TF-IDF of words and of pairs of words, in rows
    of length 1; a logistic regression sees the means of the embeddings, centred and of
    mean square 1; both are scikit-learn's with its default settings. The score is the
    likelihood of Gaussian classes. Their log probabilities are pooled,

    .. math::

        \log p(\ell \mid x) = a \log p_{\mathrm{words}}(\ell \mid x)
        + b \log p_{\mathrm{means}}(\ell \mid x)
        + c \log p_{\mathrm{score}}(\ell \mid x) + \mathrm{const},

    with the weights, of which any may be zero, that have the least cross-entropy on
    held-out training documents. A document without known words gets the class priors.

    Documents without label get the probabilities of the Gaussian classes for a label:
    the classes learn from all of them, the linear classifiers from the most probable
    one, weighted by its probability; if that lowers the cross-entropy of held-out
    documents, or if none can be held out. In that case the score alone decides.

    Parameters
    ----------
    missing_label : object
        As for :class:`~docsigma.classifiers.evidence.EvidenceClassifier`.
    n_folds : int
        Parts of the cross-validation. Classes with fewer documents are allowed.
    random_state : int, RandomState or None
        Deals the documents to the folds.
    device : str
        Where the Gaussian classes are learned: ``"cpu"``, ``"cuda"`` or ``"auto"``.
    verbose : bool
        Whether a choice that takes longer than two seconds shows a progress bar.

    Attributes
    ----------
    pool_ : ndarray of shape (3,)
        Weights of words, means and score.
    words_, means_ : LinearScores
        The support vector machine and the regression.
    score_ : EvidenceClassifier
        The Gaussian classes.
    cross_entropy_ : float or None
        Of held-out documents, in nats; None where none can be held out.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    class_prior_ : ndarray of shape (n_classes,)
        Shares of the classes among the labelled documents.
    n_features_in_ : int
        Words.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "missing_label": "no_validation",
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
        "device": [str],
        "verbose": ["boolean"],
    }
    takes: ClassVar[str] = "documents"
    learns_from_unlabelled: ClassVar[bool] = True

    def __init__(
        self,
        *,
        missing_label: Any = -1,
        n_folds: int = N_FOLDS,
        random_state: Any = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.missing_label, self.n_folds = missing_label, n_folds
        self.random_state, self.device = random_state, device
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: EmbeddedDocuments,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        times: Any = None,
    ) -> Self:
        """Choose the weights and fit all documents.

        Parameters
        ----------
        X : EmbeddedDocuments
            Word counts and what a model made of them.
        y, sample_weight, groups, times
            As for :class:`~docsigma.classifiers.CountsClassifier`.
        """
        self.n_features_in_ = None
        documents = self._check(X)
        self.n_features_in_ = documents.counts.shape[1]
        labels = TrainingLabels.check_some(
            y, len(documents), sample_weight, missing_label=self.missing_label
        )
        column = {
            name: None if g is None else check_column(name, g, len(y), labels.kept)
            for name, g in (("groups", groups), ("times", times))
        }
        weights = np.concatenate([labels.weights, labels.unlabelled_weights])
        self._idf = inverse_document_frequencies(documents[labels.rows].both, weights)
        labels = labels.sampled(MOST_UNLABELLED)
        documents = documents[labels.rows]
        self.classes_ = labels.classes
        self.class_prior_ = labels.class_weights / labels.class_weights.sum()
        known, unknown = labels.targets()
        weights = known.sum(axis=1) + unknown
        self._points = documents.posterior is None
        self._centre = np.average(documents.means, axis=0, weights=weights)
        squares = ((documents.means - self._centre) ** 2).sum(axis=1)
        self._norm = float(np.sqrt(np.average(squares, weights=weights))) or 1.0
        features = self._features(documents)
        splits = make_splits(labels.codes, self.n_folds, self.random_state, **column)

        def hold_out(weight: float, split: Split) -> list[Floats]:
            self._learn(features, trained_on(known, split), weight * unknown)
            return self._opinions(features[split.held_out])

        choices = [1.0, 0.0] if unknown.any() else [0.0]
        best = choose_held_out(choices, splits, known, hold_out, self.verbose)
        self.cross_entropy_ = None if best is None else best.loss
        self.pool_ = np.array([0.0, 0.0, 1.0]) if best is None else best.pool
        weight = choices[0] if best is None else best.weight
        self._learn(features, known, weight * unknown)
        return self

    def _learn(self, features: Features, known: Floats, unknown: Floats) -> None:
        """Learn the Gaussian classes, and from their guesses the linear classifiers."""
        self.score_ = EvidenceClassifier(device=self.device)
        self.score_.n_features_in_ = len(self._centre)
        self.score_.learn(features.embedding, known, unknown)
        targets = known
        if unknown.any():
            guessed = np.exp(self.score_.predict_log_proba(features.embedding))
            targets = known + unknown[:, None] * guessed
        self.words_ = LinearScores.fit(
            LinearSVC(random_state=0), features.words, targets
        )
        self.means_ = LinearScores.fit(LogisticRegression(), features.means, targets)

    def _opinions(self, features: Features) -> list[Floats]:
        """Return the log probabilities that are pooled."""
        return [
            self.words_.log_proba(features.words),
            self.means_.log_proba(features.means),
            self.score_.predict_log_proba(features.embedding),
        ]

    def _check(self, X: Any) -> EmbeddedDocuments:
        """Refuse anything but documents of the kind and sizes that `fit` saw."""
        if not isinstance(X, EmbeddedDocuments):
            raise InputError(
                f"`X` must be EmbeddedDocuments, got {type(X).__name__}: "
                "TopicClassifier takes texts, CountsClassifier takes counts"
            )
        n_words = getattr(self, "n_features_in_", None)
        if n_words is None:
            return X
        for what, found, known in (
            ("words", X.counts.shape[1], n_words),
            ("pairs of words", X.pairs.shape[1], len(self._idf) - n_words),
            ("components", X.means.shape[1], len(self._centre)),
        ):
            if found != known:
                raise InputError(
                    f"`X` has {found} {what}, but there were {known} in `fit`"
                )
        if (X.posterior is None) != self._points:
            kinds = ("Gaussians", "points") if self._points else ("points", "Gaussians")
            raise InputError(
                f"`X` has {kinds[0]}, but the classifier was fitted to {kinds[1]}"
            )
        return X

    def _features(self, documents: EmbeddedDocuments) -> Features:
        return Features(
            tfidf(documents.both, self._idf),
            (documents.means - self._centre) / self._norm,
            documents.embedding,
        )

    def _class_scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        scores = pooled(self.pool_, self._opinions(self._features(self._check(X))))
        scores[X.n_tokens == 0] = np.log(self.class_prior_)
        return scores

    def familiarity(self, X: EmbeddedDocuments) -> Floats:
        """Return how much the words of each document say for the class they fit best.

        Unknown words say nothing, but take their room in the row. What a class gets
        without any word does not count: it is the same for all documents.
        """
        check_is_fitted(self)
        rows = tfidf(self._check(X).both, self._idf, X.n_unknown)
        return np.asarray((rows @ self.words_.coefficients).max(axis=1))

    def explain(
        self, X: EmbeddedDocuments, words: Sequence[str] | None = None
    ) -> list[Explanation]:
        """Return what spoke for the predicted class of each document.

        It is set against the second best class: the amounts add up to the difference
        of their log probabilities.

        Parameters
        ----------
        X : EmbeddedDocuments
            As for `fit`.
        words : sequence of str, optional
            Names of words and then of pairs; by default their numbers.
        """
        check_is_fitted(self)
        features = self._features(self._check(X))
        _, means, score = self._opinions(features)
        added = self.pool_[1] * means + self.pool_[2] * score
        order = np.argsort(-self._class_scores(X), axis=1, kind="stable")
        return [
            explain_document(
                self,
                features.words[row],
                float(self.pool_[0]),
                added[row],
                bool(X.n_tokens[row] == 0),
                (int(order[row, 0]), int(order[row, 1])),
                words,
            )
            for row in range(len(order))
        ]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted arrays."""
        arrays: dict[str, Any] = {
            "class_prior_": self.class_prior_,
            "idf": self._idf,
            "points": [self._points],
            "centre": self._centre,
            "norm": [self._norm],
            "pool": self.pool_,
            "words": self.words_.coefficients,
            "words_intercept": self.words_.intercept,
            "means": self.means_.coefficients,
            "means_intercept": self.means_.intercept,
            **{f"score.{k}": v for k, v in self.score_.arrays().items()},
        }
        return {name: np.ascontiguousarray(array) for name, array in arrays.items()}

    def set_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`arrays` returned; `classes_` is set before."""
        self.class_prior_, self._idf = arrays["class_prior_"], arrays["idf"]
        self._points = bool(arrays["points"][0])
        self._centre, self._norm = arrays["centre"], float(arrays["norm"][0])
        self.pool_ = arrays["pool"]
        self.words_ = LinearScores(arrays["words"], arrays["words_intercept"])
        self.means_ = LinearScores(arrays["means"], arrays["means_intercept"])
        self.score_ = EvidenceClassifier(device=self.device)
        self.score_.classes_ = np.arange(len(self.classes_))
        self.score_.n_features_in_ = len(self._centre)
        self.score_.set_arrays(under("score.", arrays))
