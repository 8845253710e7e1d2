"""Tables as matrices of covariates."""

from __future__ import annotations

import datetime
import json
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import CubicSpline

from docsigma import InputError
from docsigma.design import Design

N = 300


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    parties = random.choice(["Whig", "Democratic", "Republican"], N, p=[0.1, 0.5, 0.4])
    years = random.integers(1850, 2000, N)
    return {"party": parties.tolist(), "year": years.tolist()}


@pytest.mark.parametrize(
    ("formula", "n_covariates"),
    [
        (None, 4),
        ("party", 3),
        ("party + year", 4),
        ("party + spline(year)", 13),
        ("spline(year, 4)", 4),
        ("party:year", 3),
        ("party * spline(year, 2)", 3 + 2 + 6),
        ("0 + party", 3),
        ("1 + party", 3),
    ],
)
def test_formulas(table, formula, n_covariates):
    design, matrix = Design.learn(table, formula)
    assert matrix.shape == (N, n_covariates)
    assert len(design.names) == n_covariates
    np.testing.assert_allclose(matrix.mean(axis=0), 0, atol=1e-12)
    again = Design.from_dict(json.loads(json.dumps(design.to_dict())))
    np.testing.assert_array_equal(again.matrix(table), matrix)


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, lambda t: pd.DataFrame(t).to_dict("records"), dict]
)
def test_tables_of_any_kind_are_the_same(table, kind):
    expected = Design.learn(table)[1]
    np.testing.assert_allclose(Design.learn(kind(table))[1], expected, atol=1e-12)


def test_numbers_may_be_strings_and_dates(table):
    as_text = {"year": [f"{year}" for year in table["year"]]}
    plain = {"year": table["year"]}
    np.testing.assert_array_equal(Design.learn(as_text)[1], Design.learn(plain)[1])
    dates = {"year": [datetime.date(year, 1, 1) for year in table["year"]]}
    np.testing.assert_allclose(Design.learn(dates)[1], Design.learn(plain)[1])
    iso = {"year": [f"{year}-01-01" for year in table["year"]]}
    np.testing.assert_allclose(Design.learn(iso)[1], Design.learn(plain)[1])


def test_splines_contain_every_natural_cubic_spline_of_their_knots(table):
    design, matrix = Design.learn(table, "spline(year, 5)")
    x = np.array(table["year"], dtype=float)
    knots = np.quantile(np.unique(x), np.linspace(0, 1, 6))
    curve = CubicSpline(knots, np.random.default_rng(1).random(6), bc_type="natural")
    y = curve(x) - curve(x).mean()
    fitted = matrix @ np.linalg.lstsq(matrix, y, rcond=None)[0]
    np.testing.assert_allclose(fitted, y, atol=1e-10)
    # Orthogonal, with the standard deviation of a random walk's functions.
    gram = matrix.T @ matrix / N
    np.testing.assert_allclose(gram, np.diag(1 / np.arange(1, 6) ** 2.0), atol=1e-10)
    # From smooth to rough: the second derivatives grow.
    grid = np.linspace(x.min(), x.max(), 1000)
    bends = np.diff(design.at(year=grid), 2, axis=0) * np.arange(1, 6)
    assert (np.diff(np.square(bends).sum(axis=0)) > 0).all()
    # The first is about a line, and rises.
    assert np.corrcoef(matrix[:, 0], x)[0, 1] > 0.98


def test_a_spline_of_few_numbers_has_few_functions():
    assert Design.learn({"x": [1, 2, 2, 3]}, "spline(x)")[1].shape == (4, 2)


def test_beyond_the_training_numbers_a_spline_stays(table):
    design, _ = Design.learn(table, "spline(year)")
    low, high = min(table["year"]), max(table["year"])
    found = design.at(year=[low - 100, low, high, high + 100])
    np.testing.assert_array_equal(found[[0, 3]], found[[1, 2]])


def test_missing_cells_count_as_the_average(table):
    some = {name: list(column) for name, column in table.items()}
    some["party"][3], some["year"][4], some["year"][5] = None, float("nan"), ""
    with pytest.warns(UserWarning, match="documents without") as warned:
        matrix = Design.learn(some, "party + year")[1]
    sentences = [str(warning.message) for warning in warned]
    assert sentences == [
        "documents without `party`: 1 of 300; they count as the average there",
        "documents without `year`: 2 of 300; they count as the average there",
    ]
    np.testing.assert_array_equal(matrix[3, :3], 0)
    np.testing.assert_array_equal(matrix[4:6, 3], 0)
    np.testing.assert_allclose(matrix.mean(axis=0), 0, atol=1e-12)


def test_levels_that_were_not_in_training_count_as_the_average(table):
    design, _ = Design.learn(table, "party + year")
    with pytest.warns(UserWarning, match="a `party` .* such as 'Green': 1 of 2;"):
        found = design.matrix({"party": ["Green", "Whig"], "year": [1900, 1900]})
    np.testing.assert_array_equal(found[0, :3], 0)
    assert found[1, :3].any()


def test_values_of_some_columns_leave_the_rest_at_the_average(table):
    design, _ = Design.learn(table, "party * year")
    rows = design.at(party=["Whig", "Democratic"])
    known = design.matrix({"party": ["Whig", "Democratic"], "year": [1900, 1900]})
    np.testing.assert_allclose(rows[:, :3], known[:, :3])
    np.testing.assert_array_equal(rows[:, 3], 0)


@pytest.mark.parametrize(
    ("formula", "sentence"),
    [
        ("party +", "the formula 'party \\+' cannot be read"),
        ("year ~ party", "must only name covariates, without `~`"),
        ("log(year)", "has 'log\\(year\\)', and a term must be a column"),
        ("president", "need a column `president`, and the columns are party, year"),
        ("spline(party)", "`party` of the covariates must have numbers or dates"),
        ("spline(year, 0)", "functions of 'spline\\(year, 0\\)' must be 1 or more"),
        ("1", "names no column"),
    ],
)
def test_bad_formulas_get_one_sentence(table, formula, sentence):
    with pytest.raises(InputError, match=sentence):
        Design.learn(table, formula)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"x": ["a"] * 3}, "column `x` of the covariates is always 'a'"),
        ({"x": [2, 2, None]}, "column `x` of the covariates is always 2.0"),
        ({"x": [None] * 3}, "column `x` of the covariates is empty in all"),
        ({"x": [1, 2], "y": [1]}, "equally long: `x` has 2 cells, `y` has 1"),
        ({"x": [1.0, float("inf")]}, "must be finite, got inf"),
        ({}, "`covariates` has no columns"),
        ([1, 2], "row 0 of `covariates` must be a dictionary"),
        (7, "`covariates` must be a table"),
        ({"x": [f"id {i}" for i in range(400)]}, "400 covariates, and at most 300"),
    ],
)
def test_bad_tables_get_one_sentence(bad, sentence):
    with pytest.raises(InputError, match=sentence):
        Design.learn(bad)


def test_without_formulaic_a_sentence_says_what_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(InputError, match=r"pip install 'docsigma\[covariates\]'"):
        Design.learn(table, "party")
    assert Design.learn(table)[1].shape == (N, 4)
