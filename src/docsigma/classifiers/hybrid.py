"""Words and embeddings together: the classifier that a user gets by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from docsigma._array_checks import Floats
from docsigma.classifiers._base import BaseClassifier
from docsigma.classifiers._folds import check_column, make_splits, trained_on
from docsigma.classifiers._labels import TrainingLabels
from docsigma.classifiers._linear import LinearScores
from docsigma.classifiers._pool import fit_pool, pooled
from docsigma.classifiers._words import inverse_document_frequencies, tfidf
from docsigma.classifiers.documents import EmbeddedDocuments
from docsigma.classifiers.evidence import EvidenceClassifier
from docsigma.classifiers.explanation import Explanation, explain_document
from docsigma.classifiers.settings import MOST_UNLABELLED, N_FOLDS
from docsigma.exceptions import InputError
from docsigma.parts import under

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docsigma.classifiers._folds import Split


@dataclass(frozen=True)
class Features:
    """What the parts see: TF-IDF of words and pairs, scaled means, and documents."""

    words: sp.csr_matrix
    means: Floats
    documents: EmbeddedDocuments

    def __getitem__(self, rows: Any) -> Features:
        return Features(self.words[rows], self.means[rows], self.documents[rows])


class HybridClassifier(BaseClassifier):
    r"""Three plain classifiers of words and embeddings, pooled.

    A linear support vector machine sees TF-IDF of words and of pairs of words, in rows
    of length 1; a logistic regression sees the means of the embeddings, centred and of
    mean square 1; the score is the likelihood of Gaussian classes. Their log
    probabilities are pooled,

    .. math::

        \log p(\ell \mid x) = a \log p_{\mathrm{machine}}(\ell \mid x)
        + b \log p_{\mathrm{regression}}(\ell \mid x)
        + c \log p_{\mathrm{score}}(\ell \mid x) + \mathrm{const},

    with the weights, of which any may be zero, that have the least cross-entropy on
    held-out training documents. A document without known words gets the class priors.

    Documents without label get the probabilities of the Gaussian classes for a label:
    the classes learn from all of them, the linear classifiers from the most probable
    one, weighted by its probability, if that lowers the cross-entropy of held-out
    documents. With one label per class none can be held out: machine and score then
    count alike, the machine made as sure as the score is on documents without label.

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
        Weights of machine, regression and score.
    machine_, regression_ : LinearScores
        The support vector machine and the logistic regression.
    score_ : EvidenceClassifier
        The Gaussian classes.
    cross_entropy_ : float or None
        Of held-out documents, in nats; None where no label can be held out.
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
        self.score_ = EvidenceClassifier(device=self.device)
        self.score_.n_features_in_ = len(self._centre)
        self.score_.survey(features.documents, weights)
        self.cross_entropy_: float | None = None
        guess = self._choose(features, known, unknown, splits) if splits else True
        self.score_.learn(features.documents, known, unknown)
        self._learn_linear(features, known, guess * unknown)
        if not splits:
            self._imitate(features, known, unknown)
        return self

    def _choose(
        self, features: Features, known: Floats, unknown: Floats, splits: list[Split]
    ) -> bool:
        """Pool the parts by documents whose labels are held out.

        Return whether the linear classifiers should learn from guesses.
        """
        choices = (True, False) if unknown.any() else (False,)
        found: dict[bool, list[list[Floats]]] = {guess: [] for guess in choices}
        for split in self._shown(splits):
            rest = trained_on(known, split)
            self.score_.learn(features.documents, rest, unknown)
            for guess, parts in found.items():
                self._learn_linear(features, rest, guess * unknown)
                parts.append(self._opinions(features[split.held_out]))
        held = known[np.concatenate([split.held_out for split in splits])]
        best = False
        for guess, parts in found.items():
            every = [np.concatenate(part) for part in zip(*parts, strict=True)]
            pool = fit_pool(every, held)
            loss = float(-(held * pooled(pool, every)).sum() / held.sum())
            if self.cross_entropy_ is None or loss < self.cross_entropy_:
                self.pool_, self.cross_entropy_, best = pool, loss, guess
        return best

    def _imitate(self, features: Features, known: Floats, unknown: Floats) -> None:
        """Pool machine and score alike, the one as sure as the other.

        The machine is weighted by the score's guesses for held-out documents.
        """
        self.pool_ = np.array([0.0, 0.0, 1.0])
        rows = np.flatnonzero(unknown)
        if len(rows) < self.n_folds:
            return
        targets = self._targets(features, known, unknown)
        fold = np.random.default_rng(0).permutation(len(rows)) % self.n_folds
        found = np.zeros((len(rows), targets.shape[1]))
        for number in self._shown(range(self.n_folds)):
            own, rest = rows[fold == number], targets.copy()
            rest[own] = 0.0
            machine = LinearScores.fit(_machine(), features.words, rest)
            found[fold == number] = machine.log_proba(features.words[own])
        weight = fit_pool([found], targets[rows])[0]
        self.pool_ = np.array([weight / 2, 0.0, 0.5])

    def _shown(self, steps: Any) -> Any:
        return tqdm(steps, "choosing", delay=2, disable=not self.verbose)

    def _learn_linear(self, features: Features, known: Floats, unknown: Floats) -> None:
        targets = self._targets(features, known, unknown)
        self.machine_ = LinearScores.fit(_machine(), features.words, targets)
        regression = LogisticRegression()
        self.regression_ = LinearScores.fit(regression, features.means, targets)

    def _targets(self, features: Features, known: Floats, unknown: Floats) -> Floats:
        """Return weights in the classes; the score's guesses where labels are none."""
        if not unknown.any():
            return known
        guessed = np.exp(self.score_.predict_log_proba(features.documents))
        return np.asarray(known + unknown[:, None] * guessed)

    def _opinions(self, features: Features) -> list[Floats]:
        """Return the log probabilities that are pooled."""
        return [
            self.machine_.log_proba(features.words),
            self.regression_.log_proba(features.means),
            self.score_.predict_log_proba(features.documents),
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
        words = tfidf(documents.both, self._idf)
        means = (documents.means - self._centre) / self._norm
        return Features(words, means, documents)

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
        return np.asarray((rows @ self.machine_.coefficients).max(axis=1))

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
        order = np.argsort(-self._class_scores(X), axis=1, kind="stable")
        machine = self.pool_[0] * self.machine_.coefficients
        regression = self.pool_[1] * self.regression_.coefficients
        score = self.pool_[2] * self.score_.predict_log_proba(features.documents)
        embedding = features.means @ regression + score
        intercepts = self.pool_[0] * self.machine_.intercept
        return [
            explain_document(
                self,
                features.words[row],
                machine,
                embedding[row],
                intercepts + self.pool_[1] * self.regression_.intercept,
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
            "machine": self.machine_.coefficients,
            "machine_intercept": self.machine_.intercept,
            "regression": self.regression_.coefficients,
            "regression_intercept": self.regression_.intercept,
            **{f"score.{k}": v for k, v in self.score_.arrays().items()},
        }
        return {name: np.ascontiguousarray(array) for name, array in arrays.items()}

    def set_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`arrays` returned; `classes_` is set before."""
        self.class_prior_, self._idf = arrays["class_prior_"], arrays["idf"]
        self._points = bool(arrays["points"][0])
        self._centre, self._norm = arrays["centre"], float(arrays["norm"][0])
        self.pool_ = arrays["pool"]
        self.machine_, self.regression_ = (
            LinearScores(arrays[name], arrays[f"{name}_intercept"])
            for name in ("machine", "regression")
        )
        self.score_ = EvidenceClassifier(device=self.device)
        self.score_.classes_ = np.arange(len(self.classes_))
        self.score_.n_features_in_ = len(self._centre)
        self.score_.set_arrays(under("score.", arrays))


def _machine() -> LinearSVC:
    return LinearSVC(random_state=0)
