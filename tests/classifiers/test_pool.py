from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.svm import LinearSVC

from docsigma.classifiers._margins import Margins
from docsigma.classifiers._pool import Pool


def draw(rng, parts, weights):
    """Labels drawn from the pool of the parts."""
    proba = np.exp(
        log_softmax(sum(w * p for w, p in zip(weights, parts, strict=True)), 1)
    )
    return (proba.cumsum(axis=1) < rng.uniform(size=(len(proba), 1))).sum(axis=1)


def loss(pool, parts, codes, own, lengths):
    log_proba = pool.log_proba(parts, lengths)
    return -own @ log_proba[np.arange(len(codes)), codes]


def test_one_part_is_a_temperature():
    rng = np.random.default_rng(0)
    part = log_softmax(rng.normal(size=(400, 3)), axis=1)
    codes, own = draw(rng, [part], [2.5]), rng.uniform(0.5, 2, 400)
    lengths = np.full(400, 10.0)
    pool = Pool.fit([part], codes, own, lengths)

    def objective(weight):
        there = Pool.constant([weight])
        return loss(there, [part], codes, own, lengths) + (weight - 1) ** 2 / 2

    best = minimize_scalar(objective, bounds=(0, 10), method="bounded").x
    np.testing.assert_allclose(pool.at(lengths[:1]), best, atol=1e-3)
    # The standard error of 400 labels is 0.15.
    assert abs(best - 2.5) < 0.8


def test_a_part_that_knows_nothing_gets_no_weight():
    rng = np.random.default_rng(1)
    good, noise = (log_softmax(rng.normal(size=(3000, 3)), axis=1) for _ in range(2))
    codes, lengths = draw(rng, [good, noise], [2.0, -1.0]), np.full(3000, 5.0)
    pool = Pool.fit([good, noise], codes, np.ones(3000), lengths)
    assert pool.weights[1].tolist() == [0.0]
    assert pool.weights[0] > 1


def test_weights_by_length_are_those_that_drew_the_labels():
    rng = np.random.default_rng(2)
    n = 20_000
    parts = [log_softmax(rng.normal(size=(n, 4)), axis=1) for _ in range(2)]
    lengths = rng.integers(0, 60, n).astype(float)
    knots = np.unique(np.quantile(np.log1p(lengths[lengths > 0]), [0, 0.5, 1]))
    truth = Pool(knots, np.array([[1.5, 0.8, 0.2], [0.3, 0.5, 1.0]]))
    codes = draw(rng, parts, [w[:, None] for w in truth.at(lengths).T])
    found = Pool.fit(parts, codes, np.ones(n), lengths)
    np.testing.assert_allclose(found.knots, knots)
    # Standard errors are near 0.02, of the shortest near 0.05.
    np.testing.assert_allclose(found.weights, truth.weights, atol=0.2)


def test_no_neighbour_is_better():
    rng = np.random.default_rng(3)
    parts = [log_softmax(rng.normal(size=(200, 3)), axis=1) for _ in range(2)]
    lengths, own = rng.integers(1, 50, 200).astype(float), np.ones(200)
    codes = draw(rng, parts, [1.0, 0.3])
    pool = Pool.fit(parts, codes, own, lengths)

    def objective(weights):
        there = Pool(pool.knots, weights)
        penalty = ((weights - 0.5) ** 2).sum() / 2
        return loss(there, parts, codes, own, lengths) + penalty

    best = objective(pool.weights)
    for index in np.ndindex(*pool.weights.shape):
        for step in (-0.05, 0.05):
            moved = pool.weights.copy()
            moved[index] = max(0.0, moved[index] + step)
            assert objective(moved) >= best - 1e-4


def test_without_evidence_parts_count_alike():
    parts = [np.log([[0.5, 0.5]])] * 2
    pool = Pool.fit(parts, np.array([0]), np.ones(1), np.zeros(1))
    assert pool.at(np.array([7.0])).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_are_the_machines(n_classes):
    rng = np.random.default_rng(4)
    codes = np.arange(60) % n_classes
    features = sparse.csr_matrix(rng.normal(size=(60, 5)) + np.eye(3, 5)[codes])
    machine = LinearSVC(C=0.5, random_state=0).fit(features, codes)
    found = Margins.fit(features, codes, np.ones(60), n_classes, 0.5)
    theirs = machine.decision_function(features)
    ours = found.scores(features)
    if n_classes == 2:
        np.testing.assert_allclose(ours, 2 * np.stack([-theirs, theirs], axis=1))
    else:
        np.testing.assert_allclose(ours, 2 * theirs)
    predicted = found.log_proba(features).argmax(axis=1)
    np.testing.assert_array_equal(predicted, machine.predict(features))


@pytest.mark.parametrize("present", [[0, 2], [0, 1, 3]])
def test_a_class_without_documents_is_outside_all_margins(present):
    rng = np.random.default_rng(5)
    codes = np.resize(present, 40)
    features = sparse.csr_matrix(rng.normal(size=(40, 4)))
    found = Margins.fit(features, codes, np.ones(40), 4, 1.0)
    absent = [code for code in range(4) if code not in present]
    np.testing.assert_array_equal(found.scores(features)[:, absent], -2.0)
    assert (found.coefficients[:, present] != 0).all()
