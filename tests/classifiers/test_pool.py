from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from docsigma.classifiers._linear import LinearScores
from docsigma.classifiers._pool import fit_pool, pooled


def targets(codes, own, n_classes):
    return own[:, None] * np.eye(n_classes)[codes]


def draw(rng, parts, weights):
    """Labels drawn from the pool of the parts."""
    proba = np.exp(pooled(weights, parts))
    return (proba.cumsum(axis=1) < rng.uniform(size=(len(proba), 1))).sum(axis=1)


def loss(weights, parts, codes, own):
    return -own @ pooled(weights, parts)[np.arange(len(codes)), codes]


def test_one_part_is_a_temperature():
    rng = np.random.default_rng(0)
    part = log_softmax(rng.normal(size=(400, 3)), axis=1)
    codes, own = draw(rng, [part], [2.5]), rng.uniform(0.5, 2, 400)
    weight = fit_pool([part], targets(codes, own, 3))

    def objective(weight):
        return loss([weight], [part], codes, own) + (weight - 1) ** 2 / 2

    best = minimize_scalar(objective, bounds=(0, 10), method="bounded").x
    np.testing.assert_allclose(weight, best, atol=1e-3)
    # The standard error of 400 labels is 0.15.
    assert abs(best - 2.5) < 0.8


def test_a_part_that_knows_nothing_gets_no_weight():
    rng = np.random.default_rng(1)
    good, noise = (log_softmax(rng.normal(size=(3000, 3)), axis=1) for _ in range(2))
    codes = draw(rng, [good, noise], [2.0, -1.0])
    weights = fit_pool([good, noise], np.eye(3)[codes])
    assert weights[1] == 0.0
    assert weights[0] > 1


def test_the_weights_are_those_that_drew_the_labels():
    rng = np.random.default_rng(2)
    parts = [log_softmax(rng.normal(size=(20_000, 4)), axis=1) for _ in range(3)]
    codes = draw(rng, parts, [1.5, 0.3, 0.8])
    found = fit_pool(parts, np.eye(4)[codes])
    # Standard errors are near 0.01.
    np.testing.assert_allclose(found, [1.5, 0.3, 0.8], atol=0.06)


def test_no_neighbour_is_better():
    rng = np.random.default_rng(3)
    parts = [log_softmax(rng.normal(size=(200, 3)), axis=1) for _ in range(2)]
    codes, own = draw(rng, parts, [1.0, 0.3]), np.ones(200)
    found = fit_pool(parts, targets(codes, own, 3))

    def objective(weights):
        return loss(weights, parts, codes, own) + ((weights - 0.5) ** 2).sum() / 2

    for index in range(2):
        for step in (-0.05, 0.05):
            moved = found.copy()
            moved[index] = max(0.0, moved[index] + step)
            assert objective(moved) >= objective(found) - 1e-4


def test_probabilities_are_as_good_as_labels_drawn_from_them():
    rng = np.random.default_rng(4)
    parts = [log_softmax(rng.normal(size=(20_000, 3)), axis=1) for _ in range(2)]
    proba = np.exp(pooled([1.2, 0.4], parts))
    found = fit_pool(parts, proba)
    # The least cross-entropy is where the pool is the target; the prior is of weight 1.
    np.testing.assert_allclose(found, [1.2, 0.4], atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [LinearSVC, LogisticRegression])
def test_scores_are_the_machines(kind, n_classes):
    rng = np.random.default_rng(4)
    codes = np.arange(60) % n_classes
    features = sparse.csr_matrix(rng.normal(size=(60, 5)) + np.eye(3, 5)[codes])
    weights = rng.uniform(0.5, 1.5, 60)
    machine = kind(random_state=0).fit(features, codes, weights)
    targets = np.eye(n_classes)[codes] * weights[:, None]
    # A document trains its heaviest class only.
    targets = targets + 0.1 * np.roll(targets, 1, axis=1)
    found = LinearScores.fit(kind(random_state=0), features, targets)
    theirs, ours = machine.decision_function(features), found.scores(features)
    if n_classes == 2:
        ours = ours[:, 1] - ours[:, 0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)
    predicted = found.log_proba(features).argmax(axis=1)
    np.testing.assert_array_equal(predicted, machine.predict(features))


@pytest.mark.parametrize("present", [[0, 2], [0, 1, 3]])
def test_a_class_without_documents_is_improbable(present):
    rng = np.random.default_rng(5)
    codes = np.resize(present, 40)
    features = sparse.csr_matrix(rng.normal(size=(40, 4)))
    found = LinearScores.fit(LinearSVC(random_state=0), features, np.eye(4)[codes])
    absent = [code for code in range(4) if code not in present]
    np.testing.assert_allclose(found.scores(features)[:, absent], -np.log(41))
    assert (found.coefficients[:, present] != 0).all()
