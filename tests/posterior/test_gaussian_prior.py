from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from docsigma import GaussianPrior, InputError

MEAN = [0.5, -1.0]
# The same diagonal matrix in the forms that can hold it.
SAME = [3.0, [3.0, 3.0], [[3.0, 0.0], [0.0, 3.0]]]
EVERY = [3.0, [1.0, 4.0], [[2.0, 0.7], [0.7, 1.0]]]
FORMS = ["isotropic", "diagonal", "full"]


@pytest.mark.parametrize(("precision", "form"), list(zip(EVERY, FORMS, strict=True)))
def test_the_precision_keeps_the_form_it_was_given_in(precision, form):
    prior = GaussianPrior(MEAN, precision)
    assert prior.form == form
    assert prior.precision.tolist() == precision
    assert prior.mean.dtype == prior.precision.dtype == np.float64


@pytest.mark.parametrize("precision", EVERY, ids=FORMS)
def test_every_form_agrees_with_its_matrix(precision):
    prior = GaussianPrior(MEAN, precision)
    matrix = prior.precision_matrix()
    rows = np.random.default_rng(0).standard_normal((5, 2))
    np.testing.assert_allclose(prior.times_precision(rows), rows @ matrix)
    np.testing.assert_allclose(prior.times_precision(rows[0]), matrix @ rows[0])
    np.testing.assert_array_equal(prior.precision_diagonal(), np.diag(matrix))
    assert prior.log_determinant() == pytest.approx(np.log(np.linalg.det(matrix)))


@pytest.mark.parametrize("precision", EVERY, ids=FORMS)
def test_the_density_of_the_parts_is_scipys(precision):
    prior = GaussianPrior(MEAN, precision)
    w = np.array([0.3, 2.0])
    away = w - prior.mean
    ours = 0.5 * (prior.log_determinant() - away @ prior.times_precision(away))
    covariance = np.linalg.inv(prior.precision_matrix())
    expected = multivariate_normal(prior.mean, covariance).logpdf(w)
    assert ours - np.log(2 * np.pi) == pytest.approx(expected)


@pytest.mark.parametrize("one", SAME, ids=FORMS)
@pytest.mark.parametrize("other", SAME, ids=FORMS)
def test_equal_values_are_equal_in_every_form(one, other):
    first, second = GaussianPrior(MEAN, one), GaussianPrior(MEAN, other)
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize(
    ("mean", "precision", "sentence"),
    [
        ([0.5, 1.0], 3.0, "mean -1.0 and 1.0 at [1]"),
        (MEAN, 2.0, "precision 3.0 and 2.0 at [0]"),
        (MEAN, [3.0, 1.0], "precision 3.0 and 1.0 at [1]"),
        (MEAN, [[3.0, 0.1], [0.1, 3.0]], "precision 0.0 and 0.1 at [0, 1]"),
        ([0.5, -1.0, 0.0], 3.0, "2 and 3 components"),
    ],
)
def test_differences_are_named_with_both_numbers(mean, precision, sentence):
    prior, other = GaussianPrior(MEAN, 3.0), GaussianPrior(mean, precision)
    assert prior != other
    assert prior.difference(other) == sentence


def test_other_things_are_not_equal():
    assert GaussianPrior(MEAN, 3.0) != 3.0


def test_the_isotropic_prior_has_mean_zero():
    prior = GaussianPrior.isotropic(10, n_components=4)
    assert prior == GaussianPrior(np.zeros(4), 10.0)
    assert prior.form == "isotropic"


@pytest.mark.parametrize("precision", EVERY, ids=FORMS)
def test_a_prior_cannot_be_changed(precision):
    given = np.array(precision)
    prior = GaussianPrior(MEAN, given)
    with pytest.raises(dataclasses.FrozenInstanceError):
        prior.mean = np.zeros(2)
    for array in (prior.mean, prior.precision):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0
    given[...] = 7.0
    prior.precision_matrix()[...] = 7.0
    prior.precision_diagonal()[...] = 7.0
    assert prior == GaussianPrior(MEAN, precision)


@pytest.mark.parametrize("precision", EVERY, ids=FORMS)
def test_copies_are_equal(precision):
    prior = GaussianPrior(MEAN, precision)
    assert copy.deepcopy(prior) == prior
    assert pickle.loads(pickle.dumps(prior)) == prior


def test_rounding_errors_of_float32_are_evened_out():
    matrix = np.array([[2.0, 0.7], [0.7 * (1 + 1e-6), 1.0]], dtype=np.float32)
    assert matrix[0, 1] != matrix[1, 0]
    prior = GaussianPrior(MEAN, matrix)
    np.testing.assert_array_equal(prior.precision, prior.precision.T)
    np.testing.assert_allclose(prior.precision, matrix, rtol=1e-6)


@pytest.mark.parametrize(
    ("mean", "precision", "sentence"),
    [
        (0.0, 1.0, r"`mean` .* shape \(n_components,\) or .*, got \(\)"),
        ([], 1.0, r"`mean` .* shape \(n_components,\) or .*, got \(0,\)"),
        ([0.0, np.nan], 1.0, r"`mean` .* finite, got nan at \[1\]"),
        (MEAN, [1.0] * 3, r"shape \(2,\) or \(2, 2\), got \(3,\)"),
        (MEAN, np.ones((2, 3)), r"shape \(2,\) or \(2, 2\), got \(2, 3\)"),
        (MEAN, np.inf, "`precision` .* finite, got inf$"),
        (MEAN, [1.0, np.nan], r"`precision` .* finite, got nan at \[1\]"),
        (MEAN, 0.0, "`precision` .* positive, got 0$"),
        (MEAN, [1.0, -2.0], r"`precision` .* positive, got -2 at \[1\]"),
        (MEAN, [[1, 0], [0, 0]], r"`precision` .* positive, got 0 at \[1, 1\]"),
        (MEAN, [[1, 0.2], [0.1, 1]], r"symmetric, got 0.2 at \[0, 1\] and 0.1 at \["),
        (MEAN, [[1, 2], [2, 1]], "positive definite, its smallest eigenvalue is -1"),
    ],
)
def test_bad_arguments_get_one_sentence(mean, precision, sentence):
    with pytest.raises(InputError, match=sentence):
        GaussianPrior(mean, precision)
