"""Strong baselines of scikit-learn's parts, for many labels and for few.

Each has `fit(texts, labels)`, where labels may be None, and `predict_log_proba(texts)`.
Words are counted, and TF-IDF and LSA are learned, on all training texts, labelled or
not. All choices are made on three stratified folds of the labelled texts; then a
temperature that depends on length is fitted to the held-out texts, whole and cut to
random lengths. With one label per class nothing can be held out: the first option and
C = 10 are taken, without a temperature.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

from _corpora import cut

Scorer = Callable[[Any], np.ndarray]
DECADES = tuple(10.0**n for n in range(7))


class Words:
    """Training texts, counted, and what turns other texts into the same features."""

    def __init__(self, texts: list[str], ngrams: int) -> None:
        self.texts = texts
        self._counter = CountVectorizer(min_df=2, ngram_range=(1, ngrams))
        self.counts = self._counter.fit_transform(texts).astype(float)
        self._idf = TfidfTransformer(sublinear_tf=True).fit(self.counts)

    def count(self, texts: list[str]) -> Any:
        """Return word counts; those of the training texts are kept."""
        if texts is self.texts:
            return self.counts
        return self._counter.transform(texts).astype(float)

    def tfidf(self, counts: Any) -> Any:
        """Return sublinear TF-IDF, in rows of unit length."""
        return self._idf.transform(counts)

    @functools.cached_property
    def _svd(self) -> TruncatedSVD:
        svd = TruncatedSVD(min(400, min(self.counts.shape) - 1), random_state=0)
        return svd.fit(self.tfidf(self.counts))

    def lsa(self, counts: Any) -> Any:
        """Return 400 components of TF-IDF, largest first, not yet of unit length."""
        return self._svd.transform(self.tfidf(counts))

    @functools.lru_cache(maxsize=2)  # noqa: B019
    def neighbours(self, n_components: int) -> tuple[Any, NearestNeighbors]:
        """Return the normalised graph of the 15 nearest training texts, and its index.

        As scikit-learn's LabelSpreading makes it, but once for all draws of labels.
        """
        X = first(self.lsa(self.counts), n_components)
        index = NearestNeighbors(n_neighbors=15).fit(X)
        graph = index.kneighbors_graph()
        degree = np.maximum(np.asarray(graph.sum(axis=0)).ravel(), 1)
        scale = sp.diags(degree**-0.5)
        return (scale @ graph @ scale).tocsr(), index


_analysed: dict[int, Words] = {}


def analyse(texts: list[str], ngrams: int) -> Words:
    """Return the words of texts, which are counted once for all baselines."""
    if ngrams not in _analysed or _analysed[ngrams].texts is not texts:
        _analysed[ngrams] = Words(texts, ngrams)
    return _analysed[ngrams]


def first(X: Any, n: int) -> Any:
    """Return the first columns, in rows of unit length."""
    return normalize(X[:, :n])


@dataclass
class Linear:
    """Scores that are linear in features."""

    weights: Any
    offsets: Any
    n_first: int | None = None

    def __call__(self, X: Any) -> Any:
        if self.n_first:
            X = first(X, self.n_first)
        return X @ self.weights + self.offsets


class Temperature:
    """Factors of scores: log t is quadratic in log(1 + number of words)."""

    def __init__(self, scores: Any, codes: Any, n_words: Any) -> None:
        x = np.log1p(n_words)
        self._range, self._mean, self._sd = (x.min(), x.max()), x.mean(), x.std() + 1e-9
        powers = self._powers(n_words)
        rows = np.arange(len(codes))

        def loss(parameters: Any) -> tuple[float, Any]:
            t = np.exp(powers @ parameters)
            log_proba = log_softmax(scores * t[:, None], axis=1)
            slope = (np.exp(log_proba) * scores).sum(axis=1) - scores[rows, codes]
            gradient = powers.T @ (slope * t) / len(rows)
            return -log_proba[rows, codes].mean(), gradient

        start = np.array([scalar_temperature(scores, codes)[0], 0.0, 0.0])
        self.parameters = minimize(loss, start, jac=True, method="BFGS").x

    def _powers(self, n_words: Any) -> Any:
        x = (np.clip(np.log1p(n_words), *self._range) - self._mean) / self._sd
        return np.stack([np.ones_like(x), x, x * x], axis=1)

    def __call__(self, n_words: Any) -> Any:
        return np.exp(self._powers(n_words) @ self.parameters)[:, None]


def scalar_temperature(scores: Any, codes: Any) -> tuple[float, float]:
    """Return the log factor of scores that fits labels best, and the cross-entropy."""
    rows = np.arange(len(codes))

    def loss(log_t: float) -> float:
        return -log_softmax(scores * np.exp(log_t), axis=1)[rows, codes].mean()

    found = minimize_scalar(loss, bounds=(-9.0, 9.0), method="bounded")
    return found.x, found.fun


class Sigmoids:
    """A sigmoid for the scores of each class, after Platt."""

    def __init__(self, scores: Any, codes: Any) -> None:
        self._fits = [
            LogisticRegression(C=1e4).fit(column[:, None], codes == c)
            for c, column in enumerate(scores.T)
        ]

    def __call__(self, scores: Any) -> Any:
        columns = zip(self._fits, scores.T[:, :, None], strict=True)
        logits = [fit.decision_function(column) for fit, column in columns]
        return -np.logaddexp(0, -np.stack(logits, axis=1))


class Baseline:
    """What all baselines share: choices on folds, and the temperature.

    `ngrams` is the longest sequence of words that is counted.
    """

    Cs: tuple[float, ...] = (10.0,)
    options: tuple[Any, ...] = (None,)
    # Whether sigmoids are tried, and whether `_final` trains otherwise than `_train`.
    platt = False
    retrained = False

    def __init__(self, ngrams: int = 1) -> None:
        self.ngrams = ngrams
        self._sigmoids: Sigmoids | None = None
        self._temperature: Temperature | None = None

    def _features(self, counts: Any) -> Any:
        return self.words.tfidf(counts)

    def _train(self, codes: Any, choice: Any, start: Any) -> Scorer:
        """Return scores of features, learned from all texts; code -1 is no label."""
        raise NotImplementedError

    def fit(self, texts: list[str], labels: Any) -> Self:
        """Choose, fit to all labelled texts and calibrate."""
        self.words = analyse(texts, self.ngrams)
        self.X = self._features(self.words.counts)
        known = np.flatnonzero([label is not None for label in labels])
        names = np.array([labels[row] for row in known])
        self.classes_, own = np.unique(names, return_inverse=True)
        codes = np.full(len(texts), -1)
        codes[known] = own
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if np.bincount(own).min() > 1:
                dealt = StratifiedKFold(3, shuffle=True, random_state=0)
                warnings.filterwarnings("ignore", "The least populated class")
                folds = [known[held] for _, held in dealt.split(known, own)]
                models = self._choose(codes, folds)
                self._calibrate(codes, folds, models)
            else:
                self.choice_, models = (self.options[0], 10.0), [None]
            self._score = self._final(codes, models[0])
        self.settings_ = {"chosen": self.choice_}
        if self._temperature is not None:
            self.settings_ |= {
                "held_out": round(float(self.held_out_), 4),
                "sigmoids": self._sigmoids is not None,
                "temperature": self._temperature.parameters.round(3).tolist(),
            }
        del self.X
        return self

    def _final(self, codes: Any, start: Any) -> Scorer:
        return self._train(codes, self.choice_, start)

    def predict_log_proba(self, texts: list[str]) -> np.ndarray:
        """Return log probabilities of `classes_`."""
        counts = self.words.count(texts)
        scores = self._score(self._features(counts))
        if self._sigmoids is not None:
            scores = self._sigmoids(scores)
        if self._temperature is not None:
            scores = scores * self._temperature(_lengths(counts))
        return log_softmax(scores, axis=1)

    def _choose(self, codes: Any, folds: list[Any]) -> list[Scorer]:
        """Choose by held-out cross-entropy, and return the folds' models."""
        best, chosen = np.inf, []

        def evaluate(option: Any, C: float, starts: list[Any]) -> Any:
            nonlocal best, chosen
            models = [
                self._train(_without(codes, held), (option, C), start)
                for held, start in zip(folds, starts, strict=True)
            ]
            loss = scalar_temperature(*self._held_out(codes, folds, models))[1]
            if loss < best:
                best, chosen, self.choice_ = loss, models, (option, C)
            return loss, models

        for option in self.options:
            models, last, rises = [None] * len(folds), np.inf, 0
            for C in self.Cs:
                loss, models = evaluate(option, C, models)
                rises += loss > last
                last = loss
                if rises == 2:
                    break
        if len(self.Cs) > 1:
            option, C = self.choice_
            for half in (C * 10**0.5, C / 10**0.5):
                evaluate(option, half, chosen)
        self.held_out_ = best
        return chosen

    def _held_out(self, codes: Any, folds: list[Any], models: Any) -> tuple[Any, Any]:
        pairs = zip(folds, models, strict=True)
        scores = np.concatenate([model(self.X[held]) for held, model in pairs])
        return scores, codes[np.concatenate(folds)]

    def _calibrate(self, codes: Any, folds: list[Any], models: list[Scorer]) -> None:
        """Fit the temperature to held-out texts, whole and cut to random lengths."""
        if self.retrained:
            models = [self._final(_without(codes, held), None) for held in folds]
        whole, truth = self._held_out(codes, folds, models)
        rows, random = np.concatenate(folds), np.random.default_rng(0)
        texts = [self.words.texts[row] for row in rows]
        most = np.log([len(text.split()) + 1 for text in texts])
        lengths = np.exp(random.uniform(0, most)).astype(int)
        counts = self.words.count(cut(texts, lengths.tolist()))
        features = self._features(counts)
        parts = np.repeat(np.arange(len(folds)), [len(held) for held in folds])
        short = np.concatenate([m(features[parts == i]) for i, m in enumerate(models)])
        if self.platt:
            # The sigmoids, too, are compared on texts that they were not fitted to.
            crossed = [
                Sigmoids(whole[parts != i], truth[parts != i])(whole[parts == i])
                for i in range(len(folds))
            ]
            sigmoid = scalar_temperature(np.concatenate(crossed), truth)[1]
            if sigmoid < self.held_out_:
                self._sigmoids = Sigmoids(whole, truth)
                whole, short = self._sigmoids(whole), self._sigmoids(short)
        n_words = _lengths(sp.vstack([self.words.counts[rows], counts]))
        scores = np.concatenate([whole, short])
        self._temperature = Temperature(scores, np.tile(truth, 2), n_words)


def _lengths(counts: Any) -> Any:
    return np.asarray(counts.sum(axis=1)).ravel()


def _without(codes: Any, rows: Any) -> Any:
    return np.where(np.isin(np.arange(len(codes)), rows), -1, codes)


class Regression(Baseline):
    """TF-IDF + LR, warm starts along C."""

    Cs = DECADES

    def _train(self, codes: Any, choice: Any, start: Any) -> Linear:
        option, C = choice
        rows = np.flatnonzero(codes >= 0)
        X = first(self.X[rows], option) if option else self.X[rows]
        solver: dict[str, Any] = {"max_iter": 200}
        if sp.issparse(X):
            # With many words lbfgs is four times slower, and far from its goal.
            solver = {"solver": "sag", "max_iter": 100, "tol": 1e-3}
        clf = LogisticRegression(C=C, warm_start=True, random_state=0, **solver)
        if start is not None:
            clf.coef_, clf.intercept_ = start.weights.T.copy(), start.offsets.copy()
        clf.fit(X, codes[rows])
        return Linear(clf.coef_.T, clf.intercept_, option)


class LsaRegression(Regression):
    """LSA + LR, with 100 or 400 components in rows of unit length."""

    options = (100, 400)

    def _features(self, counts: Any) -> Any:
        return self.words.lsa(counts)


class SelfTraining(LsaRegression):
    """LSA + LR that labels a tenth of the texts itself, five times.

    C and the number of components are those of LSA + LR without that.
    """

    retrained = True

    def _final(self, codes: Any, _: Any) -> Linear:
        n_first, C = self.choice_
        clf = SelfTrainingClassifier(
            LogisticRegression(C=C, max_iter=100),
            criterion="k_best",
            k_best=len(codes) // 10,
            max_iter=5,
        )
        clf.fit(first(self.X, n_first), codes)
        return Linear(clf.estimator_.coef_.T, clf.estimator_.intercept_, n_first)


class SupportVectors(Baseline):
    """TF-IDF + linear SVM, calibrated."""

    Cs = tuple(10.0**n for n in range(-2, 4))
    platt = True

    def _train(self, codes: Any, choice: Any, _: Any) -> Linear:
        _, C = choice
        rows = np.flatnonzero(codes >= 0)
        svm = LinearSVC(C=C, random_state=0).fit(self.X[rows], codes[rows])
        return Linear(svm.coef_.T, svm.intercept_)


class NaiveBayesVectors(Baseline):
    """NB-SVM (Wang and Manning 2012) with LR: ratios of naive Bayes scale the words.

    Words that occur or not, one class against the rest, pseudocount 1; weights go three
    quarters of the way to their mean absolute value, as published, or stay.
    """

    Cs = tuple(10.0**n for n in range(-2, 3))
    options = (0.25, 1.0)
    platt = True

    def _features(self, counts: Any) -> Any:
        return counts.sign()

    def _train(self, codes: Any, choice: Any, _: Any) -> Linear:
        option, C = choice
        rows = np.flatnonzero(codes >= 0)
        X, own = self.X[rows], codes[rows]
        whole = np.asarray(X.sum(axis=0)).ravel()
        weights, offsets = [], []
        for c in range(len(self.classes_)):
            inside = np.asarray(X[own == c].sum(axis=0)).ravel()
            p, q = inside + 1, whole - inside + 1
            ratio = np.log(p / p.sum()) - np.log(q / q.sum())
            scaled = X.copy()
            scaled.data *= ratio[X.indices]
            clf = LogisticRegression(C=C, solver="liblinear", dual=True, max_iter=50)
            w = clf.fit(scaled, own == c).coef_[0]
            weights.append(ratio * ((1 - option) * np.abs(w).mean() + option * w))
            offsets.append(clf.intercept_[0])
        return Linear(np.stack(weights, axis=1), np.array(offsets))


class ExpectedLabels(Baseline):
    """Naive Bayes with EM on all texts (Nigam et al. 2000), ten steps.

    Unlabelled texts have the weight 1 or 0.1. On counts, or TF-IDF in rows of length 5.
    """

    options = (1.0, 0.1)

    def __init__(self, counted: bool) -> None:
        super().__init__()
        self.counted = counted

    def _features(self, counts: Any) -> Any:
        return counts if self.counted else 5 * super()._features(counts)

    def _train(self, codes: Any, choice: Any, _: Any) -> Linear:
        weight, _ = choice
        n_classes = len(self.classes_)
        shares = np.zeros((len(codes), n_classes))
        known = np.flatnonzero(codes >= 0)
        shares[known, codes[known]] = 1
        unknown = np.flatnonzero(codes < 0)
        for step in range(11):
            weights = np.log(self.X.T @ shares + 0.01)
            prior = np.log(shares.sum(axis=0) + 1)
            model = Linear(weights - logsumexp(weights, axis=0), prior)
            if step < 10:
                shares[unknown] = weight * softmax(model(self.X[unknown]), axis=1)
        return model


class Spreading(Baseline):
    """Label spreading over the nearest texts, by 100 or 400 components of LSA."""

    options = ((100, 0.2), (100, 0.8), (400, 0.2), (400, 0.8))

    def _features(self, counts: Any) -> Any:
        return self.words.lsa(counts)

    def _train(self, codes: Any, choice: Any, _: Any) -> Scorer:
        (n_components, alpha), _ = choice
        graph, index = self.words.neighbours(n_components)
        known = np.flatnonzero(codes >= 0)
        given = np.zeros((len(codes), len(self.classes_)))
        given[known, codes[known]] = 1
        shares = given
        for _ in range(60):
            shares = alpha * (graph @ shares) + (1 - alpha) * given
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)

        def score(X: Any) -> Any:
            nearest = index.kneighbors(first(X, n_components), return_distance=False)
            return np.log(shares[nearest].mean(axis=1) + 1e-6)

        return score
