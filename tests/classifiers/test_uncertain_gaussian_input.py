"""What UncertainGaussianClassifier refuses, and in which words."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.utils._param_validation import InvalidParameterError

from docsigma.classifiers import UncertainGaussianClassifier
from docsigma.exceptions import InputError
from uncertain_draws import draw


@pytest.fixture
def data():
    X, y, _, _ = draw(np.random.default_rng(0), 150, 4, 3)
    return X, np.array(["ape", "bee", "cat"])[y]


def columns(**changes):
    X = np.arange(1.0, 25.0).reshape(4, 6)
    for cell, value in changes.items():
        row, column = map(int, cell[1:].split("_"))
        X[row, column] = value
    return X


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (columns(c1_4=-0.5), "no negative variances, got -0.5 in row 1, column 4"),
        (columns(c2_5=np.nan), "be finite, .* got nan in row 2, column 5"),
        (columns(c0_3=np.inf), "be finite, .* got inf in row 0, column 3"),
        (columns(c3_0=np.nan), "be finite, .* got nan in row 3, column 0"),
        (columns()[:, :5], "an even number of features, .* got n_features = 5; means"),
    ],
)
def test_bad_arrays(X, sentence):
    glcu = UncertainGaussianClassifier(layout="mean_variance")
    with pytest.raises(InputError, match=sentence):
        glcu.fit(X, [0, 0, 1, 1])


def test_every_column_of_exact_means_is_a_mean():
    glcu = UncertainGaussianClassifier()
    with pytest.raises(InputError, match="finite, .* got nan in row 2, column 5"):
        glcu.fit(columns(c2_5=np.nan), [0, 0, 1, 1])
    assert glcu.fit(columns(c1_4=-0.5)[:, :5], [0, 0, 1, 1]).n_features_in_ == 5


@pytest.mark.parametrize(
    ("posterior", "sentence"),
    [
        ({"mean": np.zeros((4, 2))}, "but no `variance` and no `covariance`"),
        ({"mean": np.zeros(4)}, "`X.mean` must have 2 dimensions, got 1"),
        (
            {"mean": np.zeros((4, 2)), "variance": np.ones((4, 3))},
            r"`X.variance` must have the shape \(4, 2\), got \(4, 3\)",
        ),
        (
            {"mean": np.zeros((4, 2)), "variance": -np.ones((4, 2))},
            "`X.variance` must .* not negative, got -1 in row 0, column 0",
        ),
        (
            {"mean": np.full((4, 2), np.nan), "variance": np.ones((4, 2))},
            "`X.mean` must be finite, got nan at",
        ),
        (
            {"mean": np.zeros((4, 2)), "covariance": np.full((4, 2, 2), np.inf)},
            "`X.covariance` must have finite variances, .* got inf in row 0",
        ),
        (
            {
                "mean": np.zeros((4, 2)),
                "covariance": np.tile([[1.0, np.nan], [np.nan, 1.0]], (4, 1, 1)),
            },
            "a covariance of `X` is not positive semi-definite",
        ),
        (
            {"mean": np.zeros((4, 2)), "covariance": np.full((4, 2, 2), -9.0)},
            "`X.covariance` must .* got -9 in row 0, column 0",
        ),
        (
            {
                "mean": np.arange(8.0).reshape(4, 2),
                "covariance": np.tile([[1.0, 90.0], [90.0, 1.0]], (4, 1, 1)),
            },
            "a covariance of `X` is not positive semi-definite",
        ),
    ],
)
def test_bad_posteriors(posterior, sentence):
    with pytest.raises(InputError, match=sentence):
        UncertainGaussianClassifier().fit(SimpleNamespace(**posterior), [0, 0, 1, 1])


def test_bad_labels(data):
    X, y = data
    posterior = SimpleNamespace(mean=X[:, :4], variance=X[:, 4:])
    glcu = UncertainGaussianClassifier()
    with pytest.raises(ValueError, match="requires y to be passed"):
        glcu.fit(X, None)
    with pytest.raises(ValueError, match="requires y to be passed"):
        glcu.fit(posterior, None)
    with pytest.raises(ValueError, match=r"\[150, 149\]"):
        glcu.fit(X, y[:-1])
    with pytest.raises(InputError, match="149 labels, but `X` has 150 documents"):
        glcu.fit(posterior, y[:-1])
    with pytest.raises(InputError, match="at least 2 classes, got 1 class: ape"):
        glcu.fit(X, ["ape"] * 150)


def test_bad_width_at_prediction(data):
    X, y = data
    glcu = UncertainGaussianClassifier(layout="mean_variance").fit(X, y)
    with pytest.raises(ValueError, match="has 6 features, but .* expecting 8"):
        glcu.predict(X[:, :6])
    posterior = SimpleNamespace(mean=X[:, :3], variance=X[:, 4:7])
    with pytest.raises(
        InputError, match="has 3 features, but .* expecting 4 features as input$"
    ):
        glcu.predict(posterior)


def test_a_width_of_the_other_layout_names_it(data):
    X, y = data
    posterior = SimpleNamespace(mean=X[:, :4], variance=X[:, 4:])
    glcu = UncertainGaussianClassifier().fit(posterior, y)
    sentence = (
        "X has 8 features, but UncertainGaussianClassifier is expecting 4 features as "
        'input; means and variances side by side need `layout="mean_variance"`'
    )
    with pytest.raises(InputError, match=f"^{sentence}$"):
        glcu.predict(X)
    with pytest.raises(InputError, match="has 5 features, .* 4 features as input$"):
        glcu.predict(X[:, :5])
    glcu = UncertainGaussianClassifier(layout="mean_variance").fit(posterior, y)
    with pytest.raises(InputError, match='4 .* 8 .*; means alone need `layout="mean"`'):
        glcu.predict(X[:, :4])


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"layout": "rows"}, "'layout' .*'mean_variance'.* Got 'rows' instead"),
        ({"tol": -1.0}, r"'tol' .* in the range \[0.0, inf\). Got -1.0 instead"),
        ({"max_iter": 0}, r"'max_iter' .* in the range \[1, inf\). Got 0 instead"),
        ({"regularization": -1.0}, r"'regularization' .* range \[0.0, inf\). Got -1"),
    ],
)
def test_bad_parameters(parameters, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        UncertainGaussianClassifier(**parameters).fit(columns(), [0, 0, 1, 1])
