"""Words and embeddings together: the classifier that a user gets by default."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from docsigma._array_checks import Floats
from docsigma.classifiers._base import BaseClassifier
from docsigma.classifiers._folds import check_column, make_splits, trained_on
from docsigma.classifiers._labels import TrainingLabels
from docsigma.classifiers._margins import Margins
from docsigma.classifiers._pool import Pool
from docsigma.classifiers._search import Fold, Point, Search
from docsigma.classifiers._softmax_regression import (
    Coefficients,
    Features,
    fit_regression,
)
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


class HybridClassifier(BaseClassifier):
    r"""Two linear classifiers on words, pooled with the likelihood of embeddings.

    A logistic regression sees TF-IDF, rows of length 1, and the centred means of the
    embeddings times a scale :math:`\beta`; a linear support vector machine sees TF-IDF
    of words and of pairs of words; the score is that of Gaussian classes. Their log
    probabilities are pooled,

    .. math::

        \log p(\ell \mid x) = a(N) \log p_{\mathrm{regression}}(\ell \mid x)
        + b(N) \log p_{\mathrm{machine}}(\ell \mid x)
        + c(N) \log p_{\mathrm{score}}(\ell \mid x) + \mathrm{const},

    with weights that depend on the number of tokens N, and of which any may be zero.
    The l2 weights, the scale, which may come out as nothing, and the weights are those
    with the least cross-entropy on held-out training documents. A document without
    known words gets the class priors.

    Documents without label get the probabilities of the Gaussian classes for a label,
    in the classes and in the regression, if that lowers the cross-entropy of held-out
    documents, or if none can be held out. In that case regression and score count
    alike, and the machine, whose scores are no probabilities, not at all.

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
        Whether a search longer than two seconds shows a progress bar.

    Attributes
    ----------
    C_, scale_, margin_ : float
        The chosen inverse l2 weight of the regression, scale of the embedding, whose
        rows have the mean square 1 without it, and C of the machine.
    pool_ : Pool
        Weights of regression, machine and score by length.
    coefficients_ : Coefficients
        The regression.
    margins_ : Margins
        The support vector machine.
    score_ : EvidenceClassifier or None
        The Gaussian classes; None where the embeddings are points.
    cross_entropies_ : dict
        Cross-validated cross-entropy, in nats, of each (C, scale, margin) that was
        tried.
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
        """Choose the settings and fit all documents with them.

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
        self._centre = np.average(documents.means, axis=0, weights=weights)
        squares = ((documents.means - self._centre) ** 2).sum(axis=1)
        square = np.average(squares, weights=weights)
        self._norm = float(np.sqrt(square)) or 1.0
        splits = make_splits(labels.codes, self.n_folds, self.random_state, **column)
        features, wide = self._features(documents), self._wide(documents)
        best: tuple[float, float, Search] | None = None
        several = unknown.any() and documents.posterior is not None
        for weight in (1.0, 0.0) if several else (0.0,):
            folds = [
                self._fold(documents, features, wide, known, weight * unknown, split)
                for split in splits
            ]
            search = Search(folds, self.verbose)
            loss = search.evaluate(Point()) if folds else 0.0
            if best is None or loss < best[0]:
                best = loss, weight, search
        assert best is not None
        _, weight, search = best
        point = search.choose() if search.folds else Point()
        self.C_, self.scale_, self.margin_ = point
        self.score_, targets = self._learn_score(documents, known, weight * unknown)
        rows = np.flatnonzero(targets.any(axis=1))
        start = Coefficients.zeros(features, len(self.classes_), point.scale)
        self.coefficients_ = fit_regression(
            features[rows], targets[rows], start, point.C
        )
        self.margins_ = self._machine(wide, known, point.margin)
        self._adopt(search, point)
        return self

    def _fold(
        self,
        documents: EmbeddedDocuments,
        features: Features,
        wide: sp.csr_matrix,
        known: Floats,
        unknown: Floats,
        split: Split,
    ) -> Fold:
        """Return what one split needs; what is held out has no label for training."""
        own = trained_on(known, split)
        score, targets = self._learn_score(documents, own, unknown)
        rows, held = np.flatnonzero(targets.any(axis=1)), split.held_out
        opinions, q = None, documents.posterior
        if score is not None and q is not None:
            opinions = score.predict_log_proba(q[held])
        return Fold(
            train=features[rows],
            targets=targets[rows],
            held_out=features[held],
            machine=functools.partial(self._machine, wide, own),
            held_out_wide=wide[held],
            codes=known[held].argmax(axis=1),
            weights=known[held].sum(axis=1),
            n_tokens=documents.n_tokens[held],
            score=opinions,
        )

    def _learn_score(
        self, documents: EmbeddedDocuments, known: Floats, unknown: Floats
    ) -> tuple[EvidenceClassifier | None, Floats]:
        """Learn the Gaussian classes; return them and the regression's targets."""
        q = documents.posterior
        if q is None:
            return None, known
        score = EvidenceClassifier(device=self.device)
        score.n_features_in_ = q.n_components
        score.learn(q, known, unknown)
        if not unknown.any():
            return score, known
        guessed = np.exp(score.predict_log_proba(q))
        return score, np.asarray(known + unknown[:, None] * guessed)

    def _machine(self, wide: sp.csr_matrix, known: Floats, C: float) -> Margins:
        """Train the support vector machine on labelled documents."""
        rows = np.flatnonzero(known.any(axis=1))
        codes, weights = known[rows].argmax(axis=1), known[rows].sum(axis=1)
        return Margins.fit(wide[rows], codes, weights, known.shape[1], C)

    def _adopt(self, search: Search, point: Point) -> None:
        """Keep what the search found about held-out documents."""
        self.cross_entropies_ = {p: o.loss for p, o in search.outcomes.items()}
        alone = [1.0, 0.0] if self.score_ is None else [0.5, 0.0, 0.5]
        found = search.outcomes.get(point)
        self.pool_ = Pool.constant(alone) if found is None else found.pool

    def _check(self, X: Any) -> EmbeddedDocuments:
        """Refuse anything but documents of the sizes that `fit` saw."""
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
        return X

    def _features(self, documents: EmbeddedDocuments) -> Features:
        return Features(
            tfidf(documents.counts, self._idf[: documents.counts.shape[1]]),
            (documents.means - self._centre) / self._norm,
        )

    def _wide(self, documents: EmbeddedDocuments) -> sp.csr_matrix:
        return tfidf(documents.both, self._idf)

    def _parts(self, X: Any) -> tuple[Features, sp.csr_matrix, list[Floats], Floats]:
        """Return features, those with pairs, the parts' opinions and their weights."""
        check_is_fitted(self)
        documents = self._check(X)
        features = self._features(documents)
        wide = self._wide(documents)
        parts = [np.asarray(log_softmax(self.coefficients_.scores(features), axis=1))]
        parts.append(self.margins_.log_proba(wide))
        if self.score_ is not None:
            if documents.posterior is None:
                raise InputError("`X` has points, but the classifier needs Gaussians")
            parts.append(self.score_.predict_log_proba(documents.posterior))
        return features, wide, parts, self.pool_.at(documents.n_tokens)

    def _class_scores(self, X: Any) -> Floats:
        *_, parts, weights = self._parts(X)
        scores = np.asarray(
            sum(w[:, None] * p for w, p in zip(weights.T, parts, strict=True))
        )
        scores[X.n_tokens == 0] = np.log(self.class_prior_)
        return scores

    def familiarity(self, X: EmbeddedDocuments) -> Floats:
        """Return the largest score of a class, before the scores are normalised.

        Probabilities say which class it is if it is one; how far logits and margins are
        on the side of a class says whether it is.
        """
        features, wide, _, weights = self._parts(X)
        scores = weights[:, [0]] * self.coefficients_.scores(features)
        scores += weights[:, [1]] * self.margins_.scores(wide)
        return np.asarray(scores.max(axis=1))

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
        features, wide, parts, weights = self._parts(X)
        added = np.zeros_like(parts[0])
        if self.score_ is not None:
            added = weights[:, [2]] * parts[2]
        order = np.argsort(-self._class_scores(X), axis=1, kind="stable")
        return [
            explain_document(
                self,
                features[row : row + 1],
                wide[row],
                weights[row],
                added[row],
                bool(X.n_tokens[row] == 0),
                (int(order[row, 0]), int(order[row, 1])),
                words,
            )
            for row in range(len(order))
        ]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted arrays."""
        found = self.coefficients_
        arrays: dict[str, Any] = {
            "class_prior_": self.class_prior_,
            "settings": [self.C_, self.scale_, self.margin_, self._norm],
            "idf": self._idf,
            "centre": self._centre,
            "knots": self.pool_.knots,
            "weights": self.pool_.weights,
            "words": found.words,
            "embedding": found.embedding,
            "intercept": found.intercept,
            "margins": self.margins_.coefficients,
            "margin_intercept": self.margins_.intercept,
        }
        if self.score_ is not None:
            arrays |= {f"score.{k}": v for k, v in self.score_.arrays().items()}
        return {name: np.ascontiguousarray(array) for name, array in arrays.items()}

    def set_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`arrays` returned; `classes_` is set before."""
        self.C_, self.scale_, self.margin_, self._norm = arrays["settings"].tolist()
        self.class_prior_ = arrays["class_prior_"]
        self._idf, self._centre = arrays["idf"], arrays["centre"]
        self.margins_ = Margins(arrays["margins"], arrays["margin_intercept"])
        self.pool_ = Pool(arrays["knots"], arrays["weights"])
        self.coefficients_ = Coefficients(
            arrays["words"], arrays["embedding"], arrays["intercept"], self.scale_
        )
        own = under("score.", arrays)
        self.score_ = None
        if own:
            self.score_ = EvidenceClassifier(device=self.device)
            self.score_.classes_ = np.arange(len(self.classes_))
            self.score_.n_features_in_ = len(self._centre)
            self.score_.set_arrays(own)
