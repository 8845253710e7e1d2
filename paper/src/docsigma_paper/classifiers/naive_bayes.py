"""Naive Bayes on word counts, with the vocabulary chosen by the topics."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from docsigma.classifiers._folds import deal_folds
from docsigma.classifiers._labels import TrainingLabels, resolve_priors
from docsigma.exceptions import InputError
from docsigma_paper.classifiers._word_selection import (
    best_scale,
    select_words,
    sum_classes,
    word_probabilities,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Least and greatest scale that cross-validation may choose; times the average length
# where the log-likelihood is divided by the length.
_SCALES = (1e-3, 10.0)


class SelectedNaiveBayes(ClassifierMixin, BaseEstimator):
    r"""Multinomial naive Bayes on the words that distinguish classes.

    A bag-of-words baseline after Hazen, Richardson and Margolis (2007). The vocabulary
    is the union, over topics, of the words with the highest :math:`P(t \mid w)`,
    `topic_probabilities`; all other words are passed over, as if no document had
    them. On what is left, :math:`P(w \mid t)` is a MAP estimate towards the
    frequencies of all topics together, `word_probabilities`, and

    .. math::
        P(t \mid d) \propto P(t) \exp(s\,L_{dt}), \qquad
        L_{dt} = \sum_w x_{dw} \log P(w \mid t).

    Naive Bayes takes each token as new evidence, and is far too sure of long
    documents. The scale :math:`s` mends the probabilities; with equal priors it
    leaves the labels as they are.

    Parameters
    ----------
    words_per_class : int or None
        Words that each topic gives to the vocabulary; None keeps every column. Few
        are enough where a topic has its own words, as a prompted conversation has.
    alpha : float
        Weight of both priors, in tokens per word and tokens per topic. Near zero, words
        seen once in one topic are taken first.
    scale : float or "cv"
        The scale :math:`s`; 1 is the model itself. ``"cv"`` chooses the one with the
        least cross-entropy in cross-validation on the training documents, in which
        the vocabulary is selected anew for each fold. Documents that belong
        together, such as the sides of a call, may fall into different folds and make
        it too sure.
    normalize : bool
        Divide :math:`L_{dt}` by the document's number of tokens in the vocabulary;
        wants ``scale="cv"``, as the scores are then those of one average token.
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or None
        Class priors :math:`P(t)`; the array follows the sorted classes, None is
        ``"empirical"``: the classes' shares of the training weight.
    n_folds : int
        Parts of the cross-validation. Classes with fewer documents are allowed.
    random_state : int, RandomState or None
        Deals the documents to the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    class_prior_, log_prior_ : ndarray of shape (n_classes,)
        Prior probabilities and their logarithms.
    selected_ : ndarray of shape (n_selected,)
        Columns of the vocabulary, ascending.
    feature_log_prob_ : ndarray of shape (n_classes, n_selected)
        The logarithms of :math:`P(w \mid t)`.
    scale_ : float
        The scale :math:`s`.
    cross_entropy_ : float
        Cross-validated cross-entropy at that scale, in nats; only with ``"cv"``, and
        NaN where no fold could be judged.
    n_features_in_ : int
        Columns of `X`.

    See Also
    --------
    docsigma.classifiers.CrossValidatedLogisticRegression : on embeddings.

    References
    ----------
    T. J. Hazen, F. Richardson, A. Margolis: Topic identification from audio
    recordings using word and phone recognition lattices. ASRU 2007.

    Examples
    --------
    >>> X = np.array([[5, 0, 1, 2], [4, 1, 0, 3], [0, 6, 0, 2], [1, 5, 1, 3]])
    >>> y = ["music", "music", "sport", "sport"]
    >>> nb = SelectedNaiveBayes(words_per_class=1).fit(X, y)
    >>> nb.selected_
    array([0, 1])
    >>> nb.predict([[1, 0, 7, 9], [0, 2, 0, 0]])
    array(['music', 'sport'], dtype='<U5')
    >>> nb.predict_proba([[1, 0, 7, 9], [1, 1, 0, 0]]).round(2)
    array([[0.86, 0.14],
           [0.55, 0.45]])
    """

    def __init__(
        self,
        *,
        words_per_class: int | None = 100,
        alpha: float = 1.0,
        scale: float | str = 1.0,
        normalize: bool = False,
        priors: Any = "empirical",
        n_folds: int = 5,
        random_state: Any = 0,
    ) -> None:
        self.words_per_class = words_per_class
        self.alpha = alpha
        self.scale = scale
        self.normalize = normalize
        self.priors = priors
        self.n_folds = n_folds
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # scikit-learn's checks score on data that are not counts.
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Select the vocabulary, estimate its probabilities and choose the scale.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts; expected counts, which are not whole, will do.
        y : array-like of shape (n_documents,)
            Labels: strings or integers.
        sample_weight : array-like of shape (n_documents,), optional
            A weight of 2 counts a document twice, one of 0 leaves it out.

        Returns
        -------
        self
            The trained classifier.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        counts = self._checked(X)
        labels = TrainingLabels.check(y, counts.shape[0], sample_weight)
        counts = counts[labels.kept]
        prior = resolve_priors(self.priors, labels.class_weights)
        class_counts = sum_classes(counts, labels.codes, labels.weights, len(prior))
        if not class_counts.any():
            raise InputError("`X` has no counts: every document is empty")
        self.classes_ = labels.classes
        self.class_prior_ = prior
        self.log_prior_ = np.log(prior)
        self.selected_, self.feature_log_prob_ = self._estimate(class_counts, prior)
        if self.scale == "cv":
            self.scale_, self.cross_entropy_ = self._cross_validate(counts, labels)
        else:
            self.scale_ = float(self.scale)
        return self

    def _estimate(
        self, class_counts: NDArray[np.float64], prior: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return selected columns, and the log probabilities of their words."""
        if self.words_per_class is None:
            selected = np.arange(class_counts.shape[1])
        else:
            selected = select_words(
                class_counts, prior, self.alpha, int(self.words_per_class)
            )
        probabilities = word_probabilities(class_counts[:, selected], self.alpha)
        return selected, np.log(probabilities)

    def _cross_validate(
        self, counts: sparse.csr_matrix, labels: TrainingLabels
    ) -> tuple[float, float]:
        """Return the scale chosen by cross-validation, and its cross-entropy."""
        codes, weights, n_classes = labels.codes, labels.weights, len(self.classes_)
        scores = np.zeros((len(codes), n_classes))
        log_prior = np.full_like(scores, -np.inf)
        lengths = np.zeros(len(codes))
        judged = np.zeros(len(codes), dtype=np.bool_)
        folds = deal_folds(codes, self.n_folds, self.random_state)
        for fold in range(self.n_folds):
            rest = np.flatnonzero(folds != fold)
            known = np.unique(codes[rest])
            # Documents of classes unseen in training do not inform the scale.
            rows = np.flatnonzero((folds == fold) & np.isin(codes, known))
            class_counts = sum_classes(
                counts[rest], codes[rest], weights[rest], n_classes
            )[known]
            if len(known) < 2 or not len(rows) or not class_counts.any():
                continue
            prior = self.class_prior_[known] / self.class_prior_[known].sum()
            selected, log_probabilities = self._estimate(class_counts, prior)
            block = np.ix_(rows, known)
            scores[block], lengths[rows] = self._log_likelihood(
                counts[rows], selected, log_probabilities
            )
            log_prior[block] = np.log(prior)
            judged[rows] = True
        if not judged.any():
            return 1.0, math.nan
        scores, log_prior = scores[judged], log_prior[judged]
        codes, weights = codes[judged], weights[judged]
        unit = 1.0
        if self.normalize:
            unit = float(np.average(lengths[judged], weights=weights)) or 1.0
        bounds = (_SCALES[0] * unit, _SCALES[1] * unit)
        scale = best_scale(scores, log_prior, codes, weights, bounds)
        log_proba = log_softmax(log_prior + scale * scores, axis=1)
        nats = -log_proba[np.arange(len(codes)), codes]
        return scale, float(np.average(nats, weights=weights))

    def _log_likelihood(
        self,
        counts: sparse.csr_matrix,
        selected: NDArray[np.intp],
        log_probabilities: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log-likelihoods, documents x classes, and the documents' lengths."""
        kept = counts[:, selected]
        lengths = np.asarray(kept.sum(axis=1), dtype=np.float64).ravel()
        scores = np.asarray(kept @ log_probabilities.T, dtype=np.float64)
        if self.normalize:
            scores /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return scores, lengths

    def _check_parameters(self) -> None:
        n_words, alpha, scale = self.words_per_class, self.alpha, self.scale
        if n_words is not None and (not isinstance(n_words, Integral) or n_words < 1):
            raise InputError(
                f"`words_per_class` must be at least 1, or None, got {n_words!r}"
            )
        if not isinstance(alpha, Real) or not 0 < alpha < math.inf:
            raise InputError(f"`alpha` must be finite and above 0, got {alpha!r}")
        number = isinstance(scale, Real) and 0 < scale < math.inf
        if not number and not (isinstance(scale, str) and scale == "cv"):
            raise InputError(
                f"`scale` must be 'cv', or finite and above 0, got {scale!r}"
            )
        if not isinstance(self.n_folds, Integral) or self.n_folds < 2:
            raise InputError(f"`n_folds` must be at least 2, got {self.n_folds!r}")

    def _checked(self, X: Any) -> sparse.csr_matrix:
        counts = sparse.csr_matrix(X)
        negative = np.flatnonzero(counts.data < 0)
        if len(negative):
            entry = negative[0]
            row = int(np.searchsorted(counts.indptr, entry, side="right")) - 1
            raise InputError(
                f"Negative values in data passed to {type(self).__name__}: `X` has "
                f"{counts.data[entry]} in row {row}, column {counts.indices[entry]}"
            )
        return counts

    def _scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores, _ = self._log_likelihood(
            self._checked(X), self.selected_, self.feature_log_prob_
        )
        return np.asarray(self.log_prior_ + self.scale_ * scores, dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts.

        Returns
        -------
        ndarray of shape (n_documents,)
            Labels, as they were given to `fit`.
        """
        scores = self._scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Log probabilities of the classes, which never underflow.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts. A document without a word of the vocabulary has the priors.

        Returns
        -------
        ndarray of shape (n_documents, n_classes)
            Columns in the order of ``classes_``.
        """
        return np.asarray(log_softmax(self._scores(X), axis=1), dtype=np.float64)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts.

        Returns
        -------
        ndarray of shape (n_documents, n_classes)
            Columns in the order of ``classes_``; rows add up to 1.
        """
        return np.exp(self.predict_log_proba(X))
