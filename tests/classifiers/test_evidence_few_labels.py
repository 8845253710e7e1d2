"""Documents without label: when they help, what stands for none, what they count."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from docsigma import GaussianPosterior, InputError
from docsigma.classifiers import EvidenceClassifier
from docsigma.classifiers._labels import TrainingLabels, fingerprints, has_label
from docsigma.classifiers.documents import EmbeddedDocuments
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


def loss(clf, q, y):
    codes = np.searchsorted(clf.classes_, y)
    return -clf.predict_log_proba(q)[np.arange(len(y)), codes].mean()


@pytest.mark.parametrize("n_labels", [1, 5])
def test_documents_without_label_help_where_classes_are_clusters(n_labels):
    (q, y), (new, truth) = draw(0, spread=0.8)
    seen = hide(y, n_labels)
    clf = EvidenceClassifier().fit(q, seen)
    known = seen >= 0
    alone = EvidenceClassifier().fit(q[known], seen[known])
    whole = EvidenceClassifier().fit(q, y)
    # Of 1000 documents an accuracy of 0.9 has a standard error of 0.01.
    assert clf.score(new, truth) > alone.score(new, truth) + 0.03
    assert clf.score(new, truth) > whole.score(new, truth) - 0.03
    assert loss(clf, new, truth) < loss(alone, new, truth) - 0.1


def test_documents_without_label_cost_little_where_they_mislead():
    rng = np.random.default_rng(1)
    means, root = draw_classes(rng, 4, 5, spread=3.0)
    q, cluster = draw_documents(rng, 1500, means, 0.3 * root, tokens=(50.0, 200.0))
    # Classes are halves of every cluster: not what the documents cluster by.
    y = (q.mean[:, 0] > means[cluster, 0]).astype(int) + 2 * (
        q.mean[:, 1] > means[cluster, 1]
    )
    seen = hide(y, 40)
    known = seen >= 0
    clf = EvidenceClassifier().fit(q, seen)
    alone = EvidenceClassifier().fit(q[known], seen[known])
    # Guessing has log 4; the classes of labelled documents alone take part as well.
    assert loss(clf, q, y) < loss(alone, q, y) + 0.05
    assert loss(clf, q, y) < np.log(4)


def test_with_one_label_per_class_probabilities_are_calibrated():
    """The mean of the largest probability is near the accuracy, and rarely above it."""
    excess, gains = [], []
    for seed in range(6):
        (q, y), (new, truth) = draw(seed, spread=0.5)
        seen = hide(y, 1)
        clf = EvidenceClassifier().fit(q, seen)
        sureness = clf.predict_proba(new).max(axis=1).mean()
        excess.append(sureness - clf.score(new, truth))
        known = seen >= 0
        alone = EvidenceClassifier().fit(q[known], seen[known])
        gains.append(loss(alone, new, truth) - loss(clf, new, truth))
    # Nothing can be held out. Which cluster a lone label is in is a matter of luck:
    # accuracies are from 0.55 to 0.82, so that the mean of six has a standard error of
    # 0.05; probabilities that are averaged over beliefs are rather too low.
    assert -0.3 < np.mean(excess) < 0.1
    assert np.max(excess) < 0.15
    assert np.mean(gains) > 0.1


def test_labels_that_have_nothing_to_do_with_documents_cost_next_to_nothing():
    (q, _), _ = draw(2)
    y = np.random.default_rng(0).integers(6, size=len(q))
    clf = EvidenceClassifier().fit(q, hide(y, 20))
    np.testing.assert_allclose(clf.class_prior_, 1 / 6)
    # A temperature fitted on 120 documents cannot lose much there, nor here.
    assert loss(clf, q, y) < np.log(6) + 0.05


def test_class_priors_are_those_of_the_labels():
    (q, y), _ = draw(6, 600)
    rare = np.flatnonzero(y == 0)[20:]
    rest = np.setdiff1d(np.arange(len(y)), rare)
    q, y = q[rest], y[rest]
    clf = EvidenceClassifier()
    np.testing.assert_allclose(clf.fit(q, hide(y, 4)).class_prior_, 1 / 6)
    seen = np.where(np.arange(len(y)) < 100, y, -1)
    shares = np.bincount(y[:100]) / 100
    np.testing.assert_allclose(clf.fit(q, seen).class_prior_, shares)


def test_one_label_per_class_is_nothing_to_warn_of():
    rng = np.random.default_rng(7)
    means, _ = draw_classes(rng, 10, 30)
    q, y = draw_documents(rng, 200, means, np.eye(10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EvidenceClassifier().fit(q, hide(y, 1))


def test_classes_can_be_added_after_training_with_few_labels():
    (q, y), (new, truth) = draw(8, 600)
    old = y < 5
    clf = EvidenceClassifier().fit(q[old], hide(y[old], 3))
    some = np.flatnonzero(~old)[:3]
    clf.add_classes(q[some], y[some])
    assert clf.classes_.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(clf.class_prior_, 1 / 6)
    # Clusters of 10 dimensions that hardly overlap: trained on all they give 0.99.
    assert clf.score(new, truth) > 0.9


@pytest.mark.parametrize("missing", [-1, None, np.nan, pd.NA, " "])
def test_ways_to_say_that_a_label_is_missing(missing):
    (q, y), (new, _) = draw(4, 200)
    names = np.array([f"class {label}" for label in y], dtype=object)
    seen = hide(y, 8)
    names[seen < 0] = missing
    one = EvidenceClassifier().fit(q, seen).predict_proba(new)
    for given in (names, list(names), pd.Series(names)):
        other = EvidenceClassifier().fit(q, given)
        np.testing.assert_array_equal(other.predict_proba(new), one)
        assert other.classes_.tolist() == [f"class {label}" for label in range(6)]


def test_the_number_minus_one_is_a_class_where_it_is_declared_one():
    (q, y), (new, _) = draw(4, 200)
    clf = EvidenceClassifier(missing_label=None).fit(q, y - 1)
    assert clf.classes_.tolist() == [-1, 0, 1, 2, 3, 4]
    usual = EvidenceClassifier().fit(q, y).predict_proba(new)
    np.testing.assert_array_equal(clf.predict_proba(new), usual)
    # And where it is the other one of two.
    signs = np.where(y < 3, -1, 1)
    assert EvidenceClassifier().fit(q, signs).classes_.tolist() == [-1, 1]
    other = EvidenceClassifier(missing_label="?")
    names = np.where(y < 1, "?", np.where(y < 3, "-1", "1"))
    assert other.fit(q, names).classes_.tolist() == ["-1", "1"]


def test_minus_one_is_no_label_and_the_string_is():
    def known(labels, missing_label=-1):
        return has_label(np.asarray(labels), missing_label).tolist()

    assert known([-1, 0, 1]) == [False, True, True]
    assert known([-1, 1]) == [True, True]
    assert known([-1, 0, 1], None) == [True, True, True]
    assert known([-1, 0, 7], 7) == [True, True, False]
    assert known(["-1", "0"]) == [True, True]
    assert known([-1.0, np.nan, 2.0]) == [False, False, True]
    mixed = np.array([-1, None, "a", "-1", np.nan, pd.NA, " "], dtype=object)
    assert known(mixed) == [False, False, True, True, False, False, False]


def test_documents_of_weight_zero_are_absent_and_not_unlabelled():
    (q, y), (new, _) = draw(5, 200)
    seen = hide(y, 8)
    labelled = np.flatnonzero(seen >= 0)
    weights = np.ones(len(y))
    # Two labels of each class, and half of the rest, are taken away.
    gone = np.concatenate([labelled[::4], np.flatnonzero(seen < 0)[::2]])
    weights[gone] = 0
    counting = EvidenceClassifier()
    one = clone(counting).fit(q, seen, sample_weight=weights)
    kept = np.setdiff1d(np.arange(len(y)), gone)
    other = clone(counting).fit(q[kept], seen[kept])
    np.testing.assert_array_equal(one.predict_proba(new), other.predict_proba(new))
    hidden = np.where(np.isin(np.arange(len(y)), labelled[::4]), -1, seen)
    third = clone(counting).fit(q, hidden)
    assert np.abs(one.predict_proba(new) - third.predict_proba(new)).max() > 1e-3


def test_weights_of_documents_without_label_count_as_copies():
    (q, y), (new, _) = draw(5, 200)
    seen = hide(y, 3)
    weights = np.where(seen < 0, np.arange(len(y)) % 3, 1)
    copies = np.repeat(np.arange(len(y)), weights)
    one = EvidenceClassifier().fit(q, seen, sample_weight=weights)
    other = EvidenceClassifier().fit(q[copies], seen[copies])
    np.testing.assert_allclose(
        one.predict_proba(new), other.predict_proba(new), atol=1e-9
    )


def test_labels_are_checked_and_merged():
    y = np.array(["b", "a", None, "b", None, "a"], dtype=object)
    weights = [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]
    labels = TrainingLabels.check_some(y, 6, weights)
    assert labels.classes.tolist() == ["a", "b"]
    assert labels.kept.tolist() == [0, 1, 3]
    assert labels.codes.tolist() == [1, 0, 1]
    assert labels.unlabelled.tolist() == [2]
    np.testing.assert_array_equal(labels.class_weights, [2.0, 5.0])
    np.testing.assert_array_equal(labels.membership.sum(axis=0), labels.weights)
    known, unknown = labels.targets()
    np.testing.assert_array_equal(known, [[0, 1], [2, 0], [0, 4], [0, 0]])
    np.testing.assert_array_equal(unknown, [0, 0, 0, 3])
    assert labels.column(np.array([3, 2, 1])).tolist() == ["b", None, "a"]
    # Rows 0 and 3 are copies of one document, 1 is the same with another label.
    X = np.array([[1.0], [1.0], [1.0], [1.0], [2.0], [3.0]])
    merged = labels.merged(fingerprints(X))
    pairs = zip(merged.codes, merged.weights, strict=True)
    assert sorted(pairs) == [(0, 2.0), (1, 5.0)]
    with pytest.raises(InputError, match="infinity: inf in row 1"):
        TrainingLabels.check_some([1.0, np.inf], 2)


def test_words_that_are_there_already_say_nothing_new():
    """Documents have every word 1, 2, 4 or 8 times, as if each had been drawn anew."""
    gains, costs = [], []
    for seed in (0, 3, 6):
        (q, y), (new, truth) = draw(seed, spread=0.5)
        seen = hide(y, 1)
        (own, bare), (others, bare_others) = repeat(q, seed), repeat(new, seed + 10)
        counted = loss(EvidenceClassifier().fit(own, seen), others, truth)
        alone = loss(EvidenceClassifier().fit(bare, seen), bare_others, truth)
        once = loss(EvidenceClassifier().fit(q, seen), new, truth)
        gains.append(alone - counted)
        costs.append(counted - once)
    # Of nine seeds gains had a mean of 0.11 and a standard deviation of 0.1, costs one
    # of 0.01 and of 0.04: each test fails in a share of 3 % or less of other seeds.
    assert np.mean(gains) > 0
    assert abs(np.mean(costs)) < 0.06


def repeat(q, seed):
    """Documents with counts, and the same without, of words that come several times."""
    times = 2.0 ** np.random.default_rng(seed).integers(4, size=len(q))
    precision = 1 + (1 / q.variance - 1) * times[:, None]
    mean = q.mean / q.variance * times[:, None] / precision
    tokens = q.n_tokens * times
    bare = GaussianPosterior(mean, 1 / precision, prior=q.prior, n_tokens=tokens)
    counts = sparse.csr_matrix(times[:, None])
    return EmbeddedDocuments(counts, bare, counts[:, :0]), bare
