from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma.classifiers import CrossValidatedLogisticRegression
from docsigma.exceptions import InputError
from docsigma.posterior import GaussianPosterior


@parametrize_with_checks(
    [CrossValidatedLogisticRegression()],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": (
            "repeated documents fall into several folds, one of weight 2 does not"
        )
    },
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    X = rng.normal(size=(200, 4)) + np.eye(3, 4)[y]
    return X, np.array(["a", "b", "c"])[y]


def test_is_logistic_regression_with_the_chosen_weight(data):
    X, y = data
    lr = CrossValidatedLogisticRegression().fit(X, y)
    assert np.logspace(-4, 2, 13)[lr.cross_entropies_.argmin()] == lr.C_
    scaled = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).mean())
    plain = LogisticRegression(C=lr.C_, max_iter=1000).fit(scaled, y)
    np.testing.assert_allclose(
        lr.predict_proba(X), plain.predict_proba(scaled), atol=1e-6
    )
    np.testing.assert_array_equal(lr.predict(X), plain.predict(scaled))


def test_the_search_ends_when_two_weights_in_a_row_are_worse(data):
    X, y = data
    Cs = np.logspace(-4, 6, 11)
    lr = CrossValidatedLogisticRegression(Cs=Cs, max_iter=5000).fit(X, y)
    alone = [
        CrossValidatedLogisticRegression(Cs=[C], max_iter=5000)
        .fit(X, y)
        .cross_entropies_[0]
        for C in Cs
    ]
    best = int(np.argmin(alone))
    assert Cs[best] == lr.C_
    assert best + 3 < len(Cs)
    np.testing.assert_allclose(
        lr.cross_entropies_[: best + 3], alone[: best + 3], rtol=1e-3
    )
    assert np.isinf(lr.cross_entropies_[best + 3 :]).all()


def test_scale_does_not_matter(data):
    X, y = data
    a = CrossValidatedLogisticRegression().fit(X, y)
    b = CrossValidatedLogisticRegression().fit(1e-3 * X + 5, y)
    assert a.C_ == b.C_
    np.testing.assert_allclose(
        a.predict_proba(X), b.predict_proba(1e-3 * X + 5), atol=1e-5
    )


def test_variances_are_left_out(data):
    X, y = data
    a = CrossValidatedLogisticRegression().fit(X, y)
    both = np.hstack([X, np.random.default_rng(1).uniform(size=X.shape)])
    b = CrossValidatedLogisticRegression(uncertainty="columns").fit(both, y)
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(both))


def test_noise_gets_a_heavy_penalty(data):
    X, _ = data
    y = np.random.default_rng(2).integers(2, size=len(X))
    assert CrossValidatedLogisticRegression().fit(X, y).C_ <= 0.01


def test_rare_classes_do_not_warn(data):
    X, y = data
    y = np.array(["rare", "rarer", *y[2:]])
    lr = CrossValidatedLogisticRegression().fit(X, y)
    assert lr.predict_proba(X).shape == (200, 5)
    two = CrossValidatedLogisticRegression().fit(X[:2], y[:2])
    assert two.C_ == 1.0


def test_two_classes_in_log_space(data):
    X, y = data
    lr = CrossValidatedLogisticRegression(Cs=[1.0]).fit(X, y == "a")
    log_proba = lr.predict_log_proba(1e6 * X)
    assert np.isfinite(log_proba).all()
    np.testing.assert_allclose(np.exp(log_proba).sum(axis=1), 1)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"uncertainty": "rows"}, "'uncertainty' .*'none'.* Got 'rows' instead"),
        ({"n_folds": 1}, r"'n_folds' .* an int in the range \[2, inf\). Got 1 instead"),
    ],
)
def test_bad_parameters(data, parameters, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        CrossValidatedLogisticRegression(**parameters).fit(*data)


def test_bad_input(data):
    X, y = data
    lr = CrossValidatedLogisticRegression(uncertainty="columns")
    with pytest.raises(InputError, match="even number of features, .* got 3"):
        lr.fit(X[:, :3], y)
    with pytest.raises(InputError, match="at least 2 classes, got 1 class: a"):
        lr.fit(X, ["a"] * 200)


def test_gaussians_are_refused_and_their_means_named():
    X = np.random.default_rng(0).standard_normal((8, 2))
    q, y = GaussianPosterior(X, np.ones((8, 2))), ["a", "b"] * 4
    sentence = "must be an array, got GaussianPosterior: its attribute `mean` is one"
    with pytest.raises(InputError, match=sentence):
        CrossValidatedLogisticRegression().fit(q, y)
    made = CrossValidatedLogisticRegression().fit(q.mean, y)
    with pytest.raises(InputError, match=sentence):
        made.predict(q)
