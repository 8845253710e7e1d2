from __future__ import annotations

import numpy as np
import pytest

from docsigma.exceptions import InputError
from docsigma.metrics.selective import accuracy_at_coverage, risk_coverage_curve


def two(top):
    top = np.asarray(top, dtype=float)
    return np.stack([top, 1 - top], axis=1)


def test_by_hand():
    curve = risk_coverage_curve(two([0.6, 0.9, 0.8, 0.7]), [1, 0, 1, 0])
    np.testing.assert_allclose(curve.coverage, [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(curve.risk, [0, 1 / 2, 1 / 3, 1 / 2])
    assert curve.area == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 4)


def test_order_of_ties_does_not_matter():
    p, y = two([0.9, 0.7, 0.7, 0.7]), np.array([0, 1, 0, 0])
    curve = risk_coverage_curve(p, y)
    np.testing.assert_allclose(curve.risk, [0, 1 / 6, 2 / 9, 1 / 4])
    for order in ([3, 2, 1, 0], [0, 2, 1, 3]):
        again = risk_coverage_curve(p[order], y[order])
        np.testing.assert_array_equal(again.risk, curve.risk)


def test_last_risk_is_the_error_rate():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), size=100), rng.integers(3, size=100)
    curve = risk_coverage_curve(p, y)
    assert curve.risk[-1] == pytest.approx(np.mean(p.argmax(axis=1) != y))


def test_other_confidences():
    p, y = two([0.9, 0.8, 0.7]), [1, 0, 0]
    curve = risk_coverage_curve(p, y, confidence=[-3.0, -2.0, -1.0])
    np.testing.assert_allclose(curve.risk, [0, 0, 1 / 3])


@pytest.mark.parametrize(
    ("coverage", "expected"),
    [(0.1, 1.0), (0.3, 1.0), (0.4, 0.75), (0.41, 0.8), (1.0, 0.9)],
)
def test_accuracy_at_coverage(coverage, expected):
    p = two(np.linspace(0.95, 0.55, 10))
    y = np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    assert accuracy_at_coverage(p, y, coverage) == pytest.approx(expected)


@pytest.mark.parametrize("coverage", [0.0, -1.0, 1.1, np.nan])
def test_bad_coverage(coverage):
    with pytest.raises(InputError, match="`coverage` must be above 0 and at most 1"):
        accuracy_at_coverage(two([0.9]), [0], coverage)


def test_bad_confidence():
    with pytest.raises(InputError, match=r"shape \(2,\), but there are 1 documents"):
        risk_coverage_curve(two([0.9]), [0], confidence=[1.0, 2.0])
    with pytest.raises(InputError, match="`confidence` is NaN in row 0"):
        risk_coverage_curve(two([0.9]), [0], confidence=[np.nan])


def test_error_detection_area_is_scikit_learns():
    from sklearn.metrics import roc_auc_score

    from docsigma.metrics import error_detection_area

    random = np.random.default_rng(0)
    doubt, wrong = random.integers(0, 9, 200), random.uniform(size=200) < 0.3
    expected = roc_auc_score(wrong, doubt)
    assert error_detection_area(doubt, wrong) == pytest.approx(expected, rel=1e-12)
    assert np.isnan(error_detection_area(doubt, np.zeros(200, dtype=bool)))
