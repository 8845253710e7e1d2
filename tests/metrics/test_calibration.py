from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from docsigma.exceptions import InputError
from docsigma.metrics.calibration import expected_calibration_error, reliability_curve


def two(top):
    top = np.asarray(top, dtype=float)
    return np.stack([top, 1 - top], axis=1)


def test_by_hand():
    p = two([0.95, 0.95, 0.65, 0.65])
    curve = reliability_curve(p, [0, 0, 0, 1], n_bins=10)
    assert curve.counts.tolist() == [0, 0, 0, 0, 0, 0, 2, 0, 0, 2]
    assert curve.accuracy[[6, 9]].tolist() == [0.5, 1.0]
    np.testing.assert_allclose(curve.confidence[[6, 9]], [0.65, 0.95])
    assert np.isnan(curve.accuracy[0])
    assert curve.expected_calibration_error == pytest.approx((0.05 + 0.15) / 2)
    assert expected_calibration_error(p, [0, 0, 0, 1], 10) == pytest.approx(0.1)


def test_classwise_by_hand():
    p = np.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1]])
    error = expected_calibration_error(p, [0, 2], 10, scope="classwise")
    # Class by class: |0.6 - 0.5|, |0.3 - 0|, |0.1 - 0.5|.
    assert error == pytest.approx((0.1 + 0.3 + 0.4) / 3)


def test_curve_equals_scikit_learn():
    rng = np.random.default_rng(0)
    top = rng.uniform(0.5, 1, size=500)
    correct = rng.uniform(size=500) < top**2
    for strategy in ("uniform", "quantile"):
        curve = reliability_curve(two(top), np.where(correct, 0, 1), 8, strategy)
        observed, promised = calibration_curve(
            correct, top, n_bins=8, strategy=strategy
        )
        used = curve.counts > 0
        np.testing.assert_allclose(curve.accuracy[used], observed)
        np.testing.assert_allclose(curve.confidence[used], promised)


def test_quantile_bins_hold_equally_many():
    p = two(np.linspace(0.5, 0.99, 100))
    curve = reliability_curve(p, np.zeros(100, dtype=int), 5, "quantile")
    np.testing.assert_allclose(curve.counts, 20, atol=1)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("scope", ["top_label", "classwise"])
def test_certain_and_right_is_perfect(strategy, scope):
    p = np.eye(3)[[0, 1, 2, 0]]
    assert expected_calibration_error(p, [0, 1, 2, 0], 15, strategy, scope) == 0
    wrong = expected_calibration_error(p, [1, 2, 0, 1], 15, strategy, scope)
    assert wrong > 0.5


def test_calibrated_probabilities_have_a_small_error():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), size=20_000)
    y = (rng.uniform(size=(20_000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    # About 10 bins of 2000: mean gap 0.8 * 0.5 / sqrt(2000) = 0.009, with a standard
    # deviation of 0.002. A random seed would fail less than one time in 10 000.
    assert expected_calibration_error(p, y) < 0.02
    sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    assert expected_calibration_error(sharp, y) > 0.1


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_bins": 0}, "`n_bins` must be at least 1, got 0"),
        ({"strategy": "odd"}, "'uniform' or 'quantile', got 'odd'"),
        ({"scope": "all"}, "'top_label' or 'classwise', got 'all'"),
    ],
)
def test_bad_parameters(parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        expected_calibration_error(two([0.7]), [0], **parameters)
