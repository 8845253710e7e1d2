from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, kstest

from docsigma import InputError
from docsigma.classifiers.guarantees import Guarantees, band_of
from docsigma.classifiers.settings import MANY


def draw(n, seed, lengths=None, spread=2):
    """Probabilities that are too sure, of short documents more than of long ones."""
    random = np.random.default_rng(seed)
    scores = spread * random.normal(size=(n, 5))
    truth = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1) < random.uniform(size=(n, 1))).sum(axis=1)
    if lengths is None:
        lengths = random.choice([3, 20, 50], n)
    scores *= np.where(lengths < 10, 5.0, 1.5)[:, None]
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return proba, labels, np.asarray(lengths)


def promise(proba, labels, lengths, familiarity=None, is_cut=None):
    rows = np.arange(len(labels))
    if familiarity is None:
        familiarity = proba.max(axis=1)
    if is_cut is None:
        is_cut = np.zeros(len(labels))
    columns = proba[rows, labels], proba.max(axis=1), lengths, familiarity, is_cut
    return Guarantees(*(np.asarray(column, dtype=float) for column in columns))


def covered(chosen, labels):
    return chosen[np.arange(len(labels)), labels]


@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_sets_have_the_true_class_as_often_as_asked_at_each_length(coverage):
    held_out = promise(*draw(30_000, 0))
    proba, labels, lengths = draw(30_000, 1)
    found = covered(held_out.sets(proba, lengths, coverage), labels)
    top = proba.argmax(axis=1) == labels
    for n in (3, 20, 50):
        own = lengths == n
        # Twice the variance of 10 000 documents, four deviations: each of six
        # comparisons fails once in 16 000.
        deviation = np.sqrt(2 * coverage * (1 - coverage) / own.sum())
        assert found[own].mean() > coverage - 4 * deviation
        assert found[own].mean() < max(coverage, top[own].mean()) + 4 * deviation


def test_the_threshold_is_the_quantile_of_the_formula():
    true, one = np.arange(1, 10) / 10, np.ones(9)
    held_out = Guarantees(true, true, one, one, 0 * one)
    proba = [[0.19, 0.2, 0.61]]
    # ceil(10 * 0.8) = 8: the eighth largest of nine is 0.2.
    assert held_out.sets(proba, [1], 0.8).tolist() == [[False, True, True]]
    # Nine documents cannot promise more than nine tenths.
    assert held_out.sets(proba, [1], 0.95).all()
    back = Guarantees.of_array(held_out.to_array())
    np.testing.assert_array_equal(back.to_array(), held_out.to_array())
    with pytest.raises(InputError, match="between 0 and 1, got 1"):
        held_out.sets(proba, [1], 1.0)


def test_a_set_has_the_most_probable_class():
    proba, labels, lengths = draw(2000, 3)
    chosen = promise(proba, labels, lengths).sets(proba, lengths, 0.1)
    assert covered(chosen, proba.argmax(axis=1)).all()


def test_cut_copies_stand_in_where_whole_documents_are_few():
    long, labels, _ = draw(500, 4, np.full(500, 50))
    short, truth, _ = draw(500, 5, np.full(500, 3))
    held_out = promise(
        np.concatenate([long, short]),
        np.concatenate([labels, truth]),
        np.repeat([50, 3], 500),
        is_cut=np.repeat([0, 1], 500),
    )
    assert len(held_out) == 500
    # Each length has its own documents, and no whole one is compared with cut ones.
    (_, like), (_, others) = held_out.rows_like([3, 50])
    assert set(like) == set(range(500, 1000))
    assert set(others) == set(range(500))
    # Lengths of neither go to the nearest whole ones.
    ((_, far),) = held_out.rows_like([400])
    assert set(far) == set(range(500))


def test_lengths_with_few_documents_take_the_nearest():
    lengths = np.array([1] * 20 + [2] * 90 + [500] * 300)
    proba, labels, _ = draw(len(lengths), 6, lengths)
    ((_, like),) = promise(proba, labels, lengths).rows_like([1])
    assert set(like) == set(range(110))
    assert len(like) >= MANY
    assert band_of([1, 2, 3, 4, 7, 8]).tolist() == [0, 1, 1, 2, 2, 3]


def test_the_risk_is_kept_with_the_confidence():
    # The risk above a threshold is known: 20 000 documents more.
    proba, labels, _ = draw(20_000, 7, np.full(20_000, 20), 4)
    top, wrong = proba.max(axis=1), proba.argmax(axis=1) != labels
    broken, answered = 0, []
    for seed in range(300):
        at = promise(*draw(500, 100 + seed, np.full(500, 20), 4)).reject(0.1, 0.9)
        broken += wrong[top >= at].mean() > 0.1 if (top >= at).any() else 0
        answered.append((top >= at).mean())
    # At most 0.1 of 300: more than `most` once in ten thousand runs.
    most = binom.ppf(1 - 1e-4, 300, 0.1)
    assert broken <= most
    # And it is no empty promise: it could answer about this share.
    order = np.argsort(-top)
    share = np.cumsum(wrong[order]) / np.arange(1, len(order) + 1)
    best = np.flatnonzero(share <= 0.1)[-1] / len(order)
    assert np.mean(answered) > best / 2


@pytest.mark.parametrize(("n", "holds"), [(44, False), (45, True)])
def test_so_few_documents_can_show_no_risk(n, holds):
    # 0.95 ** 45 = 0.0994.
    top = np.linspace(0.5, 0.9, n)
    held_out = Guarantees(top, top, np.ones(n), top, np.zeros(n))
    assert (held_out.reject(0.05, 0.9) == 0.5) == holds
    assert np.isfinite(held_out.reject(0.05, 0.9)) == holds
    with pytest.raises(InputError, match=r"`risk` must be between 0 and 1, got 2"):
        held_out.reject(2.0)
    with pytest.raises(InputError, match=r"`confidence` must be between 0 and 1"):
        held_out.reject(0.1, 1.0)


def test_p_values_of_known_documents_are_uniform_at_each_length():
    random = np.random.default_rng(8)
    lengths = random.choice([3, 20], 4000)
    familiarity = random.normal(lengths, 1 + lengths / 10)
    proba, labels, _ = draw(4000, 9, lengths)
    held_out = promise(proba, labels, lengths, familiarity)
    n_new = random.choice([3, 20], 1000)
    new = random.normal(n_new, 1 + n_new / 10)
    p = held_out.p_values(new, n_new)
    for n in (3, 20):
        # Both samples vary, which the test does not know: a level of 1e-5.
        assert kstest(p[n_new == n], "uniform").pvalue > 1e-5
    # The rank of the formula.
    ranked = np.sort(familiarity[lengths == 3])
    expected = (1 + (ranked <= 3.0).sum()) / (1 + len(ranked))
    assert held_out.p_values(np.array([3.0]), [3])[0] == pytest.approx(expected)
    every = held_out.p_values(new)
    expected = (1 + (familiarity[:, None] <= new).sum(axis=0)) / (1 + len(familiarity))
    np.testing.assert_allclose(every, expected, rtol=1e-12)


def test_p_values_prefer_short_documents_to_cut_copies():
    # Short documents that were written so say more than copies cut from long ones.
    lengths = np.r_[np.full(30, 4), np.full(200, 50), np.full(200, 4)]
    familiarity = np.r_[np.arange(30.0) + 1, np.arange(200.0) + 50, np.zeros(200)]
    proba = np.tile([0.9, 0.1], (430, 1))
    labels, is_cut = np.zeros(430, dtype=int), np.arange(430) >= 230
    held_out = promise(proba, labels, lengths, familiarity, is_cut)
    assert held_out.p_values([0.5], [4])[0] == 1 / 31
    few = np.r_[np.arange(12, 30), np.arange(30, 430)]
    rare = promise(proba[few], labels[few], lengths[few], familiarity[few], is_cut[few])
    assert rare.p_values([0.5], [4])[0] > 0.9
