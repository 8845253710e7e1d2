from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from docsigma.exceptions import InputError
from docsigma.metrics.classification import accuracy, brier_score, cross_entropy


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(4), size=300), rng.integers(4, size=300)


def test_equal_scikit_learn(data):
    p, y = data
    assert accuracy(p, y) == pytest.approx(accuracy_score(y, p.argmax(axis=1)))
    assert cross_entropy(p, y) == pytest.approx(log_loss(y, p))
    assert cross_entropy(np.log(p), y, log=True) == pytest.approx(log_loss(y, p))


def test_brier_score_is_twice_the_binary_one(data):
    p = data[0][:, :2] / data[0][:, :2].sum(axis=1, keepdims=True)
    y = data[1] % 2
    expected = 2 * brier_score_loss(y, p[:, 1])
    assert brier_score(p, y) == pytest.approx(expected)


def test_by_hand():
    p = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    assert accuracy(p, [0, 1]) == 0.5
    assert cross_entropy(p, [0, 1]) == pytest.approx(-np.log(0.7 * 0.1) / 2)
    first, second = 0.3**2 + 0.2**2 + 0.1**2, 0.1**2 + 0.9**2 + 0.8**2
    assert brier_score(p, [0, 1]) == pytest.approx((first + second) / 2)


def test_names_of_classes(data):
    p, y = data
    names = np.array(["d", "a", "c", "b"])
    assert accuracy(p, names[y], classes=names) == accuracy(p, y)
    assert cross_entropy(p, names[y], classes=names) == cross_entropy(p, y)


def test_zero_probability_is_finite():
    expected = -np.log(np.finfo(float).tiny)
    assert cross_entropy([[1.0, 0.0]], [1]) == pytest.approx(expected)
    log_p = [[0.0, -np.inf]]
    assert cross_entropy(log_p, [1], log=True) == pytest.approx(expected)
    assert cross_entropy([[1.0, 0.0]], [0]) == 0.0


def test_log_probabilities_do_not_underflow():
    assert cross_entropy([[-5000.0, 0.0]], [0], log=True) == 5000.0


@pytest.mark.parametrize(
    ("p", "y", "classes", "sentence"),
    [
        ([[0.5, 0.5]], [0, 1], None, r"shape \(2,\), but `probabilities` has 1 rows"),
        ([0.5, 0.5], [0, 1], None, r"documents x classes, got the shape \(2,\)"),
        ([[0.5, 0.6]], [0], None, "adds up to 1.1 in row 0, not to 1"),
        ([[1.5, -0.5]], [0], None, "1.5 in row 0, column 0; probabilities lie"),
        ([[np.nan, 1.0]], [0], None, "nan in row 0, column 0; probabilities lie"),
        ([[0.5, 0.5]], [2], None, "`labels` has 2, but `probabilities` has 2 col"),
        ([[0.5, 0.5]], [-1], None, "`labels` has -1, but `probabilities` has 2"),
        ([[0.5, 0.5]], ["a"], None, "column numbers if no `classes` are given"),
        ([[0.5, 0.5]], ["a"], ["b", "c"], "'a', which is not in `classes`"),
        ([[0.5, 0.5]], ["a"], ["a"], "has 1 names, but `probabilities` has 2 col"),
    ],
)
def test_bad_input(p, y, classes, sentence):
    for metric in (accuracy, cross_entropy, brier_score):
        with pytest.raises(InputError, match=sentence):
            metric(p, y, classes=classes)


@pytest.mark.parametrize(
    ("log_p", "sentence"),
    [
        ([[0.5, 0.5]], "0.5 in row 0, column 0; log probabilities are not above 0"),
        ([[np.nan, 0.0]], "nan in row 0, column 0"),
        ([0.0], "documents x classes"),
    ],
)
def test_bad_log_probabilities(log_p, sentence):
    with pytest.raises(InputError, match=sentence):
        cross_entropy(log_p, [0], log=True)


def test_scores_by_class_are_scikit_learns():
    from sklearn.metrics import precision_recall_fscore_support

    from docsigma.metrics import scores_by_class

    random = np.random.default_rng(0)
    proba = random.dirichlet(np.ones(4), 100)
    labels = random.integers(0, 4, 100)
    found = scores_by_class(proba, labels)
    theirs = precision_recall_fscore_support(labels, proba.argmax(axis=1))
    for i, scores in enumerate(found["per_class"].values()):
        for name, values in zip(("precision", "recall", "f1"), theirs, strict=False):
            assert scores[name] == pytest.approx(100 * values[i])
        assert scores["n_documents"] == theirs[3][i]
    assert found["macro_f1"] == pytest.approx(100 * theirs[2].mean())
