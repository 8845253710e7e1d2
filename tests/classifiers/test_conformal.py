from __future__ import annotations

import numpy as np
import pytest

from docsigma import InputError
from docsigma.classifiers.conformal import PredictionSets, length_bands


def draw(n, seed):
    """Probabilities that are too sure, for long documents more than for short ones."""
    random = np.random.default_rng(seed)
    n_tokens = random.integers(1, 200, n)
    scores = random.normal(size=(n, 5))
    truth = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1) < random.uniform(size=(n, 1))).sum(axis=1)
    scores *= np.where(n_tokens > 100, 4.0, 2.0)[:, None]
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), labels, n_tokens


def covered(chosen, labels):
    return chosen[np.arange(len(labels)), labels]


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_sets_hold_the_true_class_as_often_as_asked(coverage):
    proba, labels, _ = draw(20_000, 0)
    sets = PredictionSets.calibrate(proba[:10_000], labels[:10_000])
    chosen = sets.contains(proba[10_000:], coverage)
    # Twice the variance of 10 000 documents, four deviations: fails once in 16 000.
    deviation = np.sqrt(2 * coverage * (1 - coverage) / 10_000)
    assert abs(covered(chosen, labels[10_000:]).mean() - coverage) < 4 * deviation


def test_bands_keep_the_coverage_in_each():
    proba, labels, n_tokens = draw(40_000, 1)
    half = slice(20_000), slice(20_000, None)
    sets = PredictionSets.calibrate(
        proba[half[0]], labels[half[0]], n_tokens=n_tokens[half[0]]
    )
    hit = {
        edges: covered(
            sets.contains(proba[half[1]], 0.9, n_tokens=n_tokens[half[1]], edges=edges),
            labels[half[1]],
        )
        for edges in [(), (101,)]
    }
    long = n_tokens[half[1]] > 100
    deviation = np.sqrt(2 * 0.09 / 10_000)
    for band in (long, ~long):
        assert abs(hit[(101,)][band].mean() - 0.9) < 4.5 * deviation
        assert abs(hit[()][band].mean() - 0.9) > 4.5 * deviation


def test_the_threshold_is_the_quantile_of_the_formula():
    true = np.arange(1, 10) / 10
    sets = PredictionSets(true, true)
    # ceil(10 * 0.8) = 8: the eighth largest of nine.
    assert sets.thresholds(0.8) == pytest.approx([0.2])
    assert sets.thresholds(0.9) == pytest.approx([0.1])
    # Nine documents cannot promise more than nine tenths.
    assert sets.thresholds(0.95) == [0.0]
    assert sets.contains([[0.0, 1.0]], 0.95).all()


def test_a_threshold_keeps_the_risk_or_the_coverage():
    proba, labels, _ = draw(5000, 2)
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


def test_bands_deal_documents_evenly():
    edges = length_bands(np.arange(90), 3)
    band = np.searchsorted(edges, np.arange(90), side="right")
    assert np.bincount(band).tolist() == [30, 30, 30]


def test_bad_input_is_one_sentence():
    sets = PredictionSets.calibrate([[0.5, 0.5]], [0])
    with pytest.raises(InputError, match="`coverage` must be between 0 and 1, got 90"):
        sets.contains([[0.5, 0.5]], 90)
    with pytest.raises(InputError, match="`n_tokens` is missing"):
        sets.contains([[0.5, 0.5]], 0.9, edges=[3])
    with pytest.raises(InputError, match=r"shape \(2,\), but there are 1"):
        sets.contains([[0.5, 0.5]], 0.9, n_tokens=[1, 2], edges=[3])
