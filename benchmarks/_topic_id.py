"""A corpus as topic ID needs it, and the classifiers that are compared on it."""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from docsigma import (
    BayesianSMM,
    CrossValidatedLogisticRegression,
    HybridClassifier,
    TokenWeights,
    UncertainGaussianClassifier,
    Vocabulary,
    load_corpus,
)
from docsigma.classifiers import CountsClassifier
from docsigma.classifiers._hybrid_search import STEP, TOLERANCE
from docsigma.classifiers._softmax_regression import (
    Coefficients,
    Features,
    fit_regression,
)
from docsigma.classifiers._splits import make_splits
from docsigma.classifiers._words import (
    inverse_document_frequencies,
    shorten,
    tfidf,
)

LENGTHS = (200, 100, 50, 25, 10, 1)
# Calls begin with small talk and the question that was set.
STARTS = {"switchboard": 200}
# Test documents of these are later than the training ones.
LATER = ("20newsgroups",)
# Part of the training documents that is held out for choices.
HELD_OUT = 0.2


@dataclass
class Setting:
    """A corpus counted and embedded: training documents, and test ones by length."""

    model: Any
    weights: TokenWeights
    words: Vocabulary
    counts: Any
    posterior: Any
    labels: Any
    test_labels: Any
    # By number of words, 0 for whole: counts and posterior.
    tests: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    seconds: float = 0.0
    # Threads of postings, where they are known: folds keep them together.
    groups: Any = None

    def embed(self, counts: Any) -> Any:
        """Return the posteriors of documents."""
        return self.model.posterior(self.weights.transform(counts))


def load(name: str) -> Any:
    """Load a corpus by its name, or from a folder with its two parts."""
    if Path(name).is_dir():
        return load_corpus(f"{name}/train.jsonl.xz", test=f"{name}/test.jsonl.xz")
    return load_corpus(name)


def threads(texts: Any) -> Any:
    """Return the thread of each posting: its subject, without what answers add."""
    found = []
    for number, text in enumerate(texts):
        subject = re.search(r"^Subject:(.*)$", text, re.MULTILINE)
        words = re.sub(r"\b(re|fwd?)\b:?", " ", subject[1].lower()) if subject else ""
        found.append(" ".join(re.findall(r"\w+", words)) or str(number))
    return np.unique(found, return_inverse=True)[1]


def held_out_rows(name: str, labels: Any) -> Any:
    """Return the training documents that stand for test documents in choices."""
    random, rows = np.random.default_rng(0), []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        if name not in LATER:
            own = random.permutation(own)
        rows.append(own[len(own) - int(HELD_OUT * len(own)) :])
    return np.sort(np.concatenate(rows))


def prepare(
    name: str,
    n_components: int,
    seed: int,
    *,
    develop: bool = False,
    leave_out: bool = False,
) -> Setting:
    """Count, train the model and embed.

    With `develop` a part of the training documents stands for the test documents, which
    are not looked at. With `leave_out` every fourth class is not there in training, and
    test documents stay whole.
    """
    corpus = load(name)
    train, train_labels = corpus.train.labelled()
    labels = np.array(train_labels)
    if develop:
        held = held_out_rows(Path(name).name, labels)
        test = train[held.tolist()]
        test_labels = labels[held]
        kept = np.setdiff1d(np.arange(len(labels)), held)
        train, labels = train[kept.tolist()], labels[kept]
    else:
        test, found = corpus.test.labelled()
        test_labels = np.array(found)
    if leave_out:
        rows = np.flatnonzero(~np.isin(labels, np.unique(labels)[::4]))
        train, labels = train[rows.tolist()], labels[rows]
    words, counted = Vocabulary.fit_count(train.texts, min_df=2)
    weights = TokenWeights().fit(counted.counts)
    weighted = weights.transform(counted.counts)
    begun = time.perf_counter()
    model = BayesianSMM(n_components, random_state=seed).fit(weighted)
    seconds = time.perf_counter() - begun
    setting = Setting(
        model,
        weights,
        words,
        counted.counts,
        model.posterior(weighted),
        labels,
        test_labels,
        seconds=seconds,
        groups=threads(train.texts) if name == "20newsgroups" else None,
    )
    mean = float(counted.counts.sum()) / len(labels)
    start = STARTS.get(name, 0)
    cuts = () if leave_out else tuple(n for n in LENGTHS if n < 2 * mean)
    for n_words in (0, *cuts):
        texts = test.texts
        if n_words:
            texts = [" ".join(t.split()[start : start + n_words]) for t in texts]
        counts = words.count(texts).counts
        setting.tests[n_words] = counts, setting.embed(counts)
    return setting


class TfidfRegression:
    """TF-IDF + LR by the hybrid's own solver, its C chosen on the hybrid's folds."""

    def __init__(
        self, counts: Any, labels: Any, groups: Any = None, n_folds: int = 3
    ) -> None:
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self._idf = inverse_document_frequencies(counts)
        features, targets = self._features(counts), np.eye(len(self.classes_))[codes]
        splits = make_splits(codes, n_folds, 0, groups)
        zeros = Coefficients.zeros(features, len(self.classes_), 0.0)
        fits = [zeros for _ in splits]
        losses: dict[float, float] = {}

        def loss(C: float) -> float:
            if C not in losses:
                total = 0.0
                for i, (train, held_out) in enumerate(splits):
                    fits[i] = fit_regression(
                        features[train], targets[train], fits[i], C, tol=TOLERANCE
                    )
                    log_proba = log_softmax(fits[i].scores(features[held_out]), axis=1)
                    total -= float((targets[held_out] * log_proba).sum())
                losses[C] = total
            return losses[C]

        self.C_ = 100.0
        for factor in (STEP, 1 / STEP):
            while splits and 0.1 < self.C_ * factor < 3000:
                if loss(self.C_ * factor) >= loss(self.C_):
                    break
                self.C_ *= factor
        self._found = fit_regression(features, targets, zeros, self.C_)

    def _features(self, counts: Any) -> Features:
        return Features(tfidf(counts, self._idf), np.zeros((counts.shape[0], 1)))

    def predict_log_proba(self, counts: Any) -> Any:
        """Return log probabilities of the classes."""
        return log_softmax(self._found.scores(self._features(counts)), axis=1)


def fit_hybrid(setting: Setting, labels: Any, **options: Any) -> HybridClassifier:
    """Fit the hybrid as CountsClassifier does, in the model's own axes."""
    short = shorten(setting.counts)
    return HybridClassifier(**options).fit(
        (setting.counts, setting.posterior),
        labels,
        groups=setting.groups,
        shortened=(short, setting.embed(short)),
    )


def fit_one(setting: Setting, kind: str) -> tuple[Any, float]:
    """Fit a classifier; return a function of (counts, posterior), and seconds."""
    s = setting

    def prior() -> Any:
        _, n = np.unique(s.labels, return_counts=True)
        log_prior = np.log(n / n.sum())
        return lambda _, q: np.broadcast_to(log_prior, (len(q), len(n)))

    def evidence() -> Any:
        weighted = s.weights.transform(s.counts)
        topics = CountsClassifier.fit(
            s.model, weighted, s.labels, kind="evidence", groups=s.groups
        )
        return lambda counts, _: topics.predict_log_proba(
            topics.embed(s.weights.transform(counts))
        )

    def glcu() -> Any:
        # Ten steps are better than more.
        clf = UncertainGaussianClassifier(max_iter=10, accelerate=False)
        clf.fit(s.posterior, s.labels)
        return lambda _, q: clf.predict_log_proba(q)

    def lr() -> Any:
        clf = CrossValidatedLogisticRegression(n_folds=3)
        clf.fit(s.posterior.mean, s.labels)
        return lambda _, q: clf.predict_log_proba(q.mean)

    def tfidf_lr() -> Any:
        clf = TfidfRegression(s.counts, s.labels, s.groups)
        return lambda counts, _: clf.predict_log_proba(counts)

    def hybrid() -> Any:
        clf = fit_hybrid(s, s.labels)
        return partial(_as_pair, clf)

    makers = {
        "hybrid": hybrid,
        "evidence": evidence,
        "GLCU": glcu,
        "LR": lr,
        "TF-IDF + LR": tfidf_lr,
        "priors": prior,
    }
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = makers[kind]()
    return found, round(time.perf_counter() - begun, 2)


def _as_pair(clf: HybridClassifier, counts: Any, q: Any) -> Any:
    return clf.predict_log_proba((counts, q))
