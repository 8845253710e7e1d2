"""Shares of groups over time."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from scipy.stats import beta

from docsigma import DocumentEmbedder, InputError
from docsigma.groups.over_time import shares_over_time


class Known:
    """Groups whose probabilities are given."""

    def __init__(self, proba):
        self.given = np.asarray(proba, dtype=float)
        self.found = [Named(f"group {i}") for i in range(self.given.shape[1])]

    def proba(self, documents):  # noqa: ARG002
        return self.given


class Named:
    def __init__(self, name):
        self.name = name


def test_shares_and_intervals_are_those_of_a_binomial():
    proba = [[1, 0]] * 3 + [[0, 1]] + [[0.25, 0.75]] * 2
    found = shares_over_time(
        Known(proba), range(6), [1990, 1990, 1990, 1990, 1993, 1993]
    )
    assert found.periods == ["1990", "1993"]
    assert found.sizes.tolist() == [4, 2]
    np.testing.assert_allclose(found.shares, [[0.75, 0.25], [0.25, 0.75]])
    ends = beta.ppf([0.05, 0.95], 3.5, 1.5)
    np.testing.assert_allclose([found.low[0, 0], found.high[0, 0]], ends)


def test_a_share_is_in_its_interval_even_next_to_nothing():
    proba = np.repeat([[1 - 1e-6, 1e-6]], 50, axis=0)
    found = shares_over_time(Known(proba), range(50), [2000] * 50)
    assert (found.low <= found.shares).all()
    assert (found.shares <= found.high).all()
    assert found.high[0, 1] > 0.01


def test_intervals_of_units_cover_where_independent_ones_do_not():
    """Units of ten documents that agree: 200 corpora of 30 units.

    Coverage of 90 % has a standard error of 2 %; 82 % is four of them.
    """
    random = np.random.default_rng(0)
    inside = {"units": 0, "alone": 0}
    for _ in range(200):
        of_unit = random.random(30) < 0.3
        proba = np.repeat(np.stack([of_unit, ~of_unit], axis=1), 10, axis=0)
        units = np.repeat(np.arange(30), 10).tolist()
        for name, given in (("units", units), ("alone", None)):
            found = shares_over_time(Known(proba), range(300), [2000] * 300, given)
            inside[name] += bool(found.low[0, 0] < 0.3 < found.high[0, 0])
    assert inside["units"] > 0.82 * 200
    assert inside["alone"] < 0.6 * 200


@pytest.mark.parametrize(
    ("times", "periods"),
    [
        (["1790", "1800", "2021"], ["1790-1799", "1800-1809", "2020-2029"]),
        ([1.0, 2.0, 3.0], ["1", "2", "3"]),
        (
            [datetime.date(2020, 1, 5), "2020-03-31", "2020-12-31"],
            ["2020-01", "2020-03", "2020-12"],
        ),
        (["2019-01-01", "2022-02-01", "2022-08-30"], ["2019 Q1", "2022 Q1", "2022 Q3"]),
    ],
)
def test_periods_are_as_short_as_few_allow(times, periods):
    found = shares_over_time(Known(np.eye(3)), range(3), times)
    assert found.periods == periods


def test_documents_without_a_time_are_left_out():
    found = shares_over_time(Known(np.eye(3)), range(3), [1990, None, ""])
    assert found.sizes.tolist() == [1]


@pytest.mark.parametrize(
    ("times", "options", "sentence"),
    [
        ([1990], {}, "`times` has 1 entries, and there are 3 documents"),
        (["a", 1, 2], {}, "`times` must be numbers or dates, got 'a'"),
        ([None] * 3, {}, "no time of any document"),
        ([1, 2, 3], {"units": [1]}, "`units` has 1 entries, and there are 3"),
        ([1, 2, 3], {"level": 2}, "`level` must be between 0 and 1"),
    ],
)
def test_bad_input_gets_one_sentence(times, options, sentence):
    with pytest.raises(InputError, match=sentence):
        shares_over_time(Known(np.eye(3)), range(3), times, **options)


def test_an_embedder_gives_topics_their_shares(tmp_path):
    texts = ["sun and rain", "rain and wind", "wind and sun"] * 20
    texts += ["bread and salt", "salt and butter", "butter and bread"] * 20
    years = [1990] * 60 + [1991] * 60
    embedder = DocumentEmbedder(2, random_state=0).fit(texts)
    topics = embedder.topics(texts, 2, times=years)
    weather = next(topic for topic in topics if "rain" in topic.words)
    shares = {row["period"]: row for row in weather.shares}
    assert shares["1990"]["share"] > 0.9
    assert shares["1991"]["share"] < 0.1
    assert shares["1991"]["low"] < shares["1991"]["share"] < shares["1991"]["high"]
    groups = embedder.groups(texts, 2)
    found = shares_over_time(groups, groups.posterior, years)
    found.plot(tmp_path / "shares.png")
    assert (tmp_path / "shares.png").stat().st_size > 5000
