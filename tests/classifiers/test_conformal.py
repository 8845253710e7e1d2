from __future__ import annotations

import numpy as np
import pytest

from docsigma import InputError
from docsigma.classifiers.conformal import PredictionSets


def draw(n, seed):
    """Probabilities that are too sure, of some documents more than of the rest."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=(n, 5))
    truth = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1) < random.uniform(size=(n, 1))).sum(axis=1)
    scores *= random.choice([2.0, 4.0], (n, 1))
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), labels


def covered(chosen, labels):
    return chosen[np.arange(len(labels)), labels]


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_sets_hold_the_true_class_as_often_as_asked(coverage):
    proba, labels = draw(20_000, 0)
    sets = PredictionSets.calibrate(proba[:10_000], labels[:10_000])
    chosen = sets.contains(proba[10_000:], coverage)
    # Twice the variance of 10 000 documents, four deviations: fails once in 16 000.
    deviation = np.sqrt(2 * coverage * (1 - coverage) / 10_000)
    assert abs(covered(chosen, labels[10_000:]).mean() - coverage) < 4 * deviation


def test_the_threshold_is_the_quantile_of_the_formula():
    true = np.arange(1, 10) / 10
    sets = PredictionSets(true, true)
    # ceil(10 * 0.8) = 8: the eighth largest of nine.
    assert sets.threshold(0.8) == pytest.approx(0.2)
    assert sets.threshold(0.9) == pytest.approx(0.1)
    # Nine documents cannot promise more than nine tenths.
    assert sets.threshold(0.95) == 0.0
    assert sets.contains([[0.0, 1.0]], 0.95).all()
    # Folders of version 0.1 have a third row, of lengths.
    older = PredictionSets.of_array(np.vstack([sets.to_array(), true]))
    assert older.threshold(0.8) == pytest.approx(0.2)


def test_a_threshold_keeps_the_risk_or_the_coverage():
    proba, labels = draw(5000, 2)
    sets = PredictionSets.calibrate(proba, labels)
    top, wrong = proba.max(axis=1), proba.argmax(axis=1) != labels
    at = sets.reject_threshold(risk=0.2)
    assert wrong[top >= at].mean() <= 0.2
    lower = np.sort(top[top < at])[-1]
    more = wrong[top >= lower]
    assert (more.sum() + 1) / (len(more) + 1) > 0.2
    assert (top >= sets.reject_threshold(coverage=0.3)).mean() == pytest.approx(0.3)
    assert sets.reject_threshold(coverage=1.0) == top.min()
    never = PredictionSets(np.array([0.1]), np.array([0.9]))
    assert never.reject_threshold(risk=0.5) == np.inf
    for risk in (0, 2):
        with pytest.raises(InputError, match=f"`risk` must be above 0.*got {risk}"):
            sets.reject_threshold(risk=risk)
    with pytest.raises(InputError, match="not both"):
        sets.reject_threshold(risk=0.1, coverage=0.5)


def test_a_small_risk_takes_many_documents():
    # All answers right, and one wrong allowed for: 1 / (n + 1).
    for n, holds in ((98, False), (99, True)):
        sets = PredictionSets(np.full(n, 0.9), np.full(n, 0.9))
        assert (sets.reject_threshold(risk=0.01) == 0.9) == holds


def test_bad_input_is_one_sentence():
    sets = PredictionSets.calibrate([[0.5, 0.5]], [0])
    with pytest.raises(InputError, match="`coverage` must be between 0 and 1, got 90"):
        sets.contains([[0.5, 0.5]], 90)
