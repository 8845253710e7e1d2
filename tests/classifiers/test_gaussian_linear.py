from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma.classifiers import GaussianLinearClassifier
from docsigma.exceptions import InputError
from docsigma.posterior import GaussianPosterior


@parametrize_with_checks([GaussianLinearClassifier()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(3, size=90)]
    X = rng.normal(size=(90, 4)) @ rng.normal(size=(4, 4)) + (y == "b")[:, None]
    return X, y


def test_equals_linear_discriminant_analysis(data):
    X, y = data
    ours = GaussianLinearClassifier().fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_allclose(ours.means_, theirs.means_)
    np.testing.assert_allclose(ours.covariance_, theirs.covariance_)
    np.testing.assert_allclose(
        ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-8
    )


def test_covariance_is_scatter_over_total_weight(data):
    X, y = data
    weights = np.random.default_rng(1).uniform(0.5, 2, size=len(y))
    glc = GaussianLinearClassifier().fit(X, y, weights)
    scatter = np.zeros((4, 4))
    for index, name in enumerate(glc.classes_):
        rows = y == name
        mean = np.average(X[rows], axis=0, weights=weights[rows])
        np.testing.assert_allclose(glc.means_[index], mean)
        scatter += (weights[rows, None] * (X[rows] - mean)).T @ (X[rows] - mean)
    np.testing.assert_allclose(glc.covariance_, scatter / weights.sum())
    np.testing.assert_allclose(glc.covariance_ @ glc.precision_, np.eye(4), atol=1e-9)


def test_log_likelihood_equals_scipy(data):
    X, y = data
    glc = GaussianLinearClassifier().fit(X, y)
    densities = np.stack(
        [multivariate_normal(mean, glc.covariance_).logpdf(X) for mean in glc.means_],
        axis=1,
    )
    codes = np.searchsorted(glc.classes_, y)
    expected = densities[np.arange(len(y)), codes]
    np.testing.assert_allclose(glc.log_likelihood(X, y), expected, rtol=1e-9)
    joint = np.exp(densities) @ glc.class_prior_
    np.testing.assert_allclose(glc.score_samples(X), np.log(joint), rtol=1e-9)


@pytest.mark.parametrize(
    ("priors", "expected"),
    [
        (None, [0.75, 0.25]),
        ("empirical", [0.75, 0.25]),
        ("uniform", [0.5, 0.5]),
        ([0.9, 0.1], [0.9, 0.1]),
    ],
)
def test_priors(priors, expected):
    X = np.array([[0.0], [1.0], [2.0], [9.0]])
    glc = GaussianLinearClassifier(priors=priors).fit(X, [0, 0, 0, 1])
    np.testing.assert_allclose(glc.class_prior_, expected)
    np.testing.assert_allclose(glc.log_prior_, np.log(expected))


@pytest.mark.parametrize(
    ("priors", "sentence"),
    [
        ("flat", "'priors' .* must be a str among .* Got 'flat' instead"),
        ([1.0], r"`priors` has the shape \(1,\), but there are 2 classes"),
        ([0.5, 0.6], "`priors` must add up to 1, got 1.1"),
        ([1.0, 0.0], "`priors` must be positive, got 0.0"),
    ],
)
def test_bad_priors(priors, sentence):
    with pytest.raises(ValueError, match=sentence):
        GaussianLinearClassifier(priors=priors).fit([[0.0], [1.0]], [0, 1])


def test_weights_are_repetitions(data):
    X, y = data
    weights = np.random.default_rng(2).integers(0, 4, size=len(y))
    weighted = GaussianLinearClassifier().fit(X, y, weights)
    repeated = GaussianLinearClassifier().fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_allclose(weighted.covariance_, repeated.covariance_)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X))


def test_fewer_documents_than_dimensions():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 20))
    glc = GaussianLinearClassifier().fit(X, [0, 0, 0, 1, 1, 1])
    assert np.linalg.eigvalsh(glc.covariance_)[0] > 0
    np.testing.assert_array_equal(glc.predict(X), [0, 0, 0, 1, 1, 1])
    assert np.isfinite(glc.predict_log_proba(rng.normal(size=(50, 20)))).all()


def test_constant_and_single_features():
    X = np.array([[0.0, 7.1], [1.0, 7.1], [5.0, 7.1], [6.0, 7.1]])
    y = [0, 0, 1, 1]
    both = GaussianLinearClassifier().fit(X, y)
    one = GaussianLinearClassifier().fit(X[:, :1], y)
    np.testing.assert_allclose(both.predict_proba(X), one.predict_proba(X[:, :1]))
    flat = GaussianLinearClassifier().fit(X[:, 1:], y)
    np.testing.assert_allclose(flat.predict_proba(X[:, 1:]), 0.5)


def test_classes_with_one_document():
    glc = GaussianLinearClassifier().fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    np.testing.assert_array_equal(glc.means_.ravel(), [0.5, 5.0])
    alone = GaussianLinearClassifier().fit([[0.0], [1.0]], ["a", "b"])
    np.testing.assert_array_equal(alone.predict([[0.1], [0.9]]), ["a", "b"])


def test_singular_covariance_without_regularization():
    glc = GaussianLinearClassifier(regularization=0.0)
    with pytest.raises(InputError, match="singular; set `regularization` above 0"):
        glc.fit([[0.0, 7.0], [1.0, 7.0], [5.0, 7.0]], [0, 0, 1])


def test_floor_leaves_regular_covariances_alone(data):
    X, y = data
    a = GaussianLinearClassifier(regularization=0.0).fit(X, y)
    b = GaussianLinearClassifier().fit(X, y)
    np.testing.assert_array_equal(a.covariance_, b.covariance_)


def test_scale_of_features_does_not_matter():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(5, 8)), [0, 0, 1, 1, 1]
    scale = np.logspace(-6, 6, 8)
    a = GaussianLinearClassifier().fit(X, y).predict_log_proba(X)
    b = GaussianLinearClassifier().fit(X * scale, y).predict_log_proba(X * scale)
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def test_log_probabilities_of_outliers_are_finite_and_exact(data):
    X, y = data
    glc = GaussianLinearClassifier(priors="uniform").fit(X, y)
    far = X[:5] * 1e12
    log_proba = glc.predict_log_proba(far)
    assert np.isfinite(log_proba).all()
    assert log_proba.min() < -1e6
    # Log odds are linear: 1e12 times as far is 1e12 times as certain, but the offset.
    slope = (glc.means_[1] - glc.means_[0]) @ glc.precision_
    odds = log_proba[:, 1] - log_proba[:, 0]
    np.testing.assert_allclose(odds, far @ slope, rtol=1e-6)


def test_add_classes_leaves_the_old_ones_alone(data):
    X, y = data
    glc = GaussianLinearClassifier().fit(X, y)
    means, covariance = glc.means_.copy(), glc.covariance_.copy()
    precision = glc.precision_.copy()
    glc.add_classes(X[:4] + 10, ["zebra", "zebra", "ape", "ape"])
    assert glc.classes_.tolist() == ["a", "b", "c", "ape", "zebra"]
    np.testing.assert_array_equal(glc.means_[:3], means)
    np.testing.assert_array_equal(glc.covariance_, covariance)
    np.testing.assert_array_equal(glc.precision_, precision)
    np.testing.assert_allclose(glc.means_[3], X[2:4].mean(axis=0) + 10)
    np.testing.assert_allclose(glc.class_prior_[3:], 2 / 94)
    assert glc.class_prior_.sum() == pytest.approx(1)
    assert glc.predict(X[:1] + 10).tolist() == ["zebra"]
    assert glc.log_likelihood(X[:2] + 10, ["zebra", "ape"]).shape == (2,)


@pytest.mark.parametrize(
    ("rule", "given", "expected"),
    [
        ("empirical", None, [0.4, 0.4, 0.2]),
        ("uniform", None, [1 / 3, 1 / 3, 1 / 3]),
        ([0.9, 0.1], None, [0.6, 0.2 / 3, 1 / 3]),
        ("empirical", [0.5], [0.25, 0.25, 0.5]),
    ],
)
def test_priors_of_added_classes(rule, given, expected):
    glc = GaussianLinearClassifier(priors=rule)
    glc.fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    glc.add_classes([[9.0]], [2], priors=given)
    np.testing.assert_allclose(glc.class_prior_, expected)


@pytest.mark.parametrize(
    ("y", "priors", "sentence"),
    [
        ([1], None, "class 1, which the model already knows"),
        (["x"], None, "strings as labels, but the model's are numbers"),
        ([2], [0.2, 0.3], r"shape \(2,\), but there are 1 new classes"),
        ([2], [1.0], "add up to less than 1, got the sum 1.0"),
        ([2, 3], None, "`y` has 2 labels, but `X` has 1 documents"),
    ],
)
def test_bad_added_classes(y, priors, sentence):
    glc = GaussianLinearClassifier().fit([[0.0], [1.0], [5.0]], [0, 0, 1])
    with pytest.raises(InputError, match=sentence):
        glc.add_classes([[9.0]], y, priors=priors)
    assert len(glc.classes_) == len(glc.means_) == len(glc.class_prior_) == 2


@pytest.mark.parametrize(
    ("y", "weights", "sentence"),
    [
        ([0, 0], None, "at least 2 classes, got 1 class: 0"),
        ([0, 1], [1.0, 0.0], "at least 2 classes, got 1 class: 0"),
        ([0, 1], [1.0, -1.0], "Negative values in data passed to `sample_weight`"),
        ([0, 1], [1.0, np.nan], "Input sample_weight contains NaN"),
        ([0, 1], [1.0], r"sample_weight.shape == \(1,\), expected \(2,\)"),
        ([0, 1], [0.0, 0.0], "Sample weights must contain at least one non-zero"),
        (np.array(["a", None], dtype=object), None, "`y` has no label in row 1"),
    ],
)
def test_bad_labels_and_weights(y, weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        GaussianLinearClassifier().fit([[0.0], [1.0]], y, weights)


def test_unknown_label_has_no_likelihood():
    glc = GaussianLinearClassifier().fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(InputError, match="'c', which is none of the 2 classes"):
        glc.log_likelihood([[0.0]], ["c"])


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "much"])
def test_bad_regularization(value):
    sentence = r"'regularization' .* must be a float in the range \[0.0, inf\). Got"
    with pytest.raises(InvalidParameterError, match=sentence):
        GaussianLinearClassifier(regularization=value).fit([[0.0], [1.0]], [0, 1])


def test_gaussians_are_refused_and_their_means_named():
    X = np.random.default_rng(0).standard_normal((8, 2))
    q, y = GaussianPosterior(X, np.ones((8, 2))), ["a", "b"] * 4
    sentence = "must be an array, got GaussianPosterior: its attribute `mean` is one"
    with pytest.raises(InputError, match=sentence):
        GaussianLinearClassifier().fit(q, y)
    made = GaussianLinearClassifier().fit(q.mean, y)
    with pytest.raises(InputError, match=sentence):
        made.predict(q)
