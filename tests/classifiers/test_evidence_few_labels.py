from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from docsigma.classifiers import EvidenceClassifier
from docsigma.classifiers._semi_supervised_labels import is_labelled
from evidence_draws import draw_classes, draw_documents


def draw(seed, n=1500, *, spread=1.5):
    rng = np.random.default_rng(seed)
    means, _ = draw_classes(rng, 10, 6, spread=spread)
    root = 0.5 * np.eye(10)
    train = draw_documents(rng, n, means, root, tokens=(20.0, 200.0))
    return train, draw_documents(rng, 1000, means, root, tokens=(20.0, 200.0))


def hide(y, n_labels):
    """Keep the first labels of each class."""
    seen = np.full(len(y), -1)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)[:n_labels]
        seen[rows] = label
    return seen


def accuracy(clf, q, y):
    return (clf.predict(q) == y).mean()


@pytest.mark.parametrize("n_labels", [1, 5])
@pytest.mark.parametrize("form", ["full", "diagonal"])
def test_documents_without_label_help_where_classes_are_clusters(form, n_labels):
    (q, y), (new, truth) = draw(0, spread=0.8)
    seen = hide(y, n_labels)
    clf = EvidenceClassifier(covariance=form).fit(q, seen)
    known = seen >= 0
    alone = EvidenceClassifier(covariance=form).fit(q[known], seen[known])
    whole = EvidenceClassifier(covariance=form).fit(q, y)
    assert clf.unlabelled_weight_ > 0
    assert accuracy(clf, new, truth) > accuracy(alone, new, truth) + 0.02
    # Of 1000 documents the accuracy has a standard error of 0.01 at the most.
    assert accuracy(clf, new, truth) > accuracy(whole, new, truth) - 0.03


def test_documents_without_label_count_nothing_where_they_mislead():
    rng = np.random.default_rng(1)
    means, root = draw_classes(rng, 4, 5, spread=3.0)
    q, cluster = draw_documents(rng, 1500, means, 0.3 * root, tokens=(50.0, 200.0))
    # Classes are halves of every cluster: not what the documents cluster by.
    y = (q.mean[:, 0] > means[cluster, 0]).astype(int) + 2 * (
        q.mean[:, 1] > means[cluster, 1]
    )
    seen = hide(y, 40)
    clf = EvidenceClassifier(covariance="diagonal").fit(q, seen)
    given = EvidenceClassifier(covariance="diagonal", unlabelled_weight=1.0)
    given.fit(q, seen)

    def loss(c):
        return -c.predict_log_proba(q)[np.arange(len(y)), y].mean()

    assert clf.unlabelled_weight_ < 1
    assert loss(clf) < loss(given)


def test_few_labels_never_cost_more_than_the_priors_by_much():
    (q, _), _ = draw(2)
    y = np.random.default_rng(0).integers(6, size=len(q))
    clf = EvidenceClassifier(covariance="diagonal").fit(q, hide(y, 1))
    assert clf.smoothing_ == 0.5
    loss = -clf.predict_log_proba(q)[np.arange(len(y)), y].mean()
    # Half of each prediction is the prior: log 2 above it at the worst.
    np.testing.assert_allclose(clf.class_prior_, 1 / 6)
    assert loss < np.log(6) + np.log(2)


@pytest.mark.parametrize("form", ["full", "diagonal"])
def test_class_priors_are_those_of_the_labels(form):
    (q, y), _ = draw(6, 600)
    rare = np.flatnonzero(y == 0)[20:]
    rest = np.setdiff1d(np.arange(len(y)), rare)
    q, y = q[rest], y[rest]
    clf = EvidenceClassifier(covariance=form, unlabelled_weight=1.0)
    np.testing.assert_allclose(clf.fit(q, hide(y, 4)).class_prior_, 1 / 6)
    seen = np.where(np.arange(len(y)) < 100, y, -1)
    shares = np.bincount(y[:100]) / 100
    np.testing.assert_allclose(clf.fit(q, seen).class_prior_, shares)


def test_classes_stay_where_the_prior_puts_embeddings():
    rng = np.random.default_rng(0)
    means, _ = draw_classes(rng, 40, 10, spread=10.0)
    q, y = draw_documents(rng, 400, means, np.eye(40), tokens=(0.05, 0.1))
    clf = EvidenceClassifier(covariance="diagonal", tempering=(1, 1e9))
    clf.fit(q[:50], y[:50])
    # Without the bound 70 times the prior's variance, as the means were drawn.
    assert np.diag(clf.between_covariance_).mean() < 6


@pytest.mark.parametrize("form", ["full", "diagonal"])
def test_documents_that_cannot_tell_their_class_count_nothing(form):
    """A precision of P tells log(1 + P) / 2 nats per dimension; 6 classes take 1.8."""
    rng = np.random.default_rng(5)
    means, _ = draw_classes(rng, 10, 6, spread=1.5)
    for tokens, counts in ((0.5, False), (200.0, True)):
        q, y = draw_documents(rng, 600, means, np.eye(10), tokens=(tokens, tokens))
        nats = -0.5 * np.log(q.variance).sum(axis=1)
        assert (np.median(nats) > np.log(6)) == counts
        clf = EvidenceClassifier(covariance=form).fit(q, hide(y, 1))
        assert (clf.unlabelled_weight_ > 0) == counts


def test_one_label_per_class_is_nothing_to_warn_of():
    rng = np.random.default_rng(7)
    means, _ = draw_classes(rng, 10, 30)
    q, y = draw_documents(rng, 200, means, np.eye(10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EvidenceClassifier(covariance="diagonal").fit(q, hide(y, 1))


def test_enough_labels_need_no_smoothing():
    (q, y), _ = draw(3, 300)
    assert EvidenceClassifier(covariance="diagonal").fit(q, y).smoothing_ == 0
    clf = EvidenceClassifier(covariance="diagonal", unlabelled_weight=0.0)
    assert clf.fit(q, hide(y, 1)).smoothing_ == 0


@pytest.mark.parametrize("missing", [-1, None, np.nan, pd.NA])
def test_ways_to_say_that_a_label_is_missing(missing):
    (q, y), (new, _) = draw(4, 200)
    names = np.array([f"class {label}" for label in y], dtype=object)
    seen = hide(y, 8)
    names[seen < 0] = missing
    clf = EvidenceClassifier(covariance="diagonal", tempering=(1, 100))
    one, other = clf.fit(q, seen).predict_proba(new), clf.fit(q, names)
    np.testing.assert_array_equal(other.predict_proba(new), one)
    assert other.classes_.tolist() == [f"class {label}" for label in range(6)]
    series = pd.Series(names)
    np.testing.assert_array_equal(clf.fit(q, series).predict_proba(new), one)


def test_the_number_minus_one_is_no_class_and_the_string_is():
    assert is_labelled([-1, 0, 1]).tolist() == [False, True, True]
    assert is_labelled(["-1", "0"]).tolist() == [True, True]
    assert is_labelled(np.array([-1.0, np.nan, 2.0])).tolist() == [False, False, True]
    mixed = np.array([-1, None, "a", "-1", np.nan], dtype=object)
    assert is_labelled(mixed).tolist() == [False, False, True, True, False]


def test_weights_of_documents_without_label_count():
    (q, y), (new, _) = draw(5, 200)
    seen = hide(y, 8)
    weights = np.where(seen < 0, 0.0, 1.0)
    clf = EvidenceClassifier(covariance="diagonal", tempering=(1, 100))
    one = clf.fit(q, seen, sample_weight=weights).predict_proba(new)
    known = seen >= 0
    other = clf.fit(q[known], seen[known]).predict_proba(new)
    np.testing.assert_array_equal(one, other)
