"""Effects of covariates: linear algebra by hand, and sentences for bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from docsigma import BayesianSMM, DocumentEmbedder, InputError
from docsigma.models.effects import word_effects

OLD, NEW = "plough horse barley meadow", "rocket laser robot orbit"
FILLER = "with then over under near from most some"


@pytest.fixture(scope="module")
def corpus():
    """Texts whose words depend on the year, and not on who wrote them."""
    random = np.random.default_rng(0)
    years = random.integers(1900, 2000, 400)
    texts = []
    for year in years:
        new = random.random(12) < (year - 1900) / 100
        own = [random.choice((NEW if one else OLD).split()) for one in new]
        texts.append(" ".join([*own, *random.choice(FILLER.split(), 12)]))
    writers = random.choice(["Ann", "Bob"], 400).tolist()
    return texts, {"year": years.tolist(), "writer": writers}


@pytest.fixture(scope="module")
def fitted(corpus):
    texts, table = corpus
    embedder = DocumentEmbedder(3, random_state=0)
    return embedder.fit(texts, covariates=table, formula="writer + spline(year)")


def test_what_changed_is_found_and_what_did_not_is_not(fitted):
    words = {"old": OLD.split(), "new": NEW.split(), "filler": FILLER.split()}
    found = fitted.effect("year", words=words, values=[1995], reference=1905, level=0.9)
    change = {row.of: row for row in found.rows}
    # The log odds of new and old words change by about 2 log 19.
    assert change["new"].low > 1
    assert change["old"].high < -1
    assert abs(change["filler"].estimate) < 0.5
    # Who wrote it does not matter: beyond 4.5 errors by chance with 1 in 100 000.
    by_writer = fitted.effect("writer", words=words, values=["Ann"], reference="Bob")
    half = norm.ppf(0.95)
    for row in by_writer.rows:
        assert abs(row.estimate) < 4.5 / half * (row.high - row.estimate)


def test_a_change_of_a_word_is_that_of_its_log_odds(fitted):
    """Against the probabilities themselves at both prior means."""
    model = fitted.model_
    design, prior = fitted.design_, model.parts_.prior
    change = design.at(year=[1995]) - design.at(year=[1905])
    estimate, _ = word_effects(model, change, np.eye(model.n_features_in_))
    unigram = np.exp(model.training_log_unigram_)
    logits = [
        model.log_unigram_
        + design.at(year=[year])[0] @ prior.weights_ @ model.components_
        for year in (1905, 1995)
    ]
    log_theta = [x - np.logaddexp.reduce(x) for x in logits]
    apart = log_theta[1] - log_theta[0]
    # Loadings and bias are float32.
    np.testing.assert_allclose(estimate[0], apart - unigram @ apart, atol=1e-4)


def test_errors_are_those_of_draws_of_weights_and_words(fitted):
    """2000 draws: standard deviations have an error of 1.6 %; 8 % is five of them."""
    model, design = fitted.model_, fitted.design_
    change = design.at(year=[1995]) - design.at(year=[1905])
    groups = np.zeros((2, model.n_features_in_))
    groups[0, 0], groups[1, 1:4] = 1.0, 1 / 3
    _, error = word_effects(model, change, groups)
    prior, random = model.parts_.prior, np.random.default_rng(1)
    unigram = np.exp(model.training_log_unigram_)
    mean = model.components_.T - unigram @ model.components_.T
    draws = []
    for _ in range(2000):
        along = np.stack(
            [
                random.multivariate_normal(np.zeros(len(c)), c)
                for c in prior.weight_covariance_
            ],
            axis=1,
        )
        weights = prior.weights_ + along @ prior.axes_.T
        noise = random.standard_normal(mean.shape)
        loadings = mean + noise * np.sqrt(model.components_variance_.T)
        draws.append(groups @ loadings @ (change @ weights)[0])
    np.testing.assert_allclose(error[0], np.std(draws, axis=0), rtol=0.08)


def test_without_words_those_that_change_most_are_shown(fitted):
    found = fitted.effect("year", n_words=4)
    shown = {
        value: {r.of for r in found.rows if r.value == value}
        for value in {row.value for row in found.rows}
    }
    assert shown[min(shown)] <= set(OLD.split())
    assert shown[max(shown)] <= set(NEW.split())
    assert "effect of year against the average document, log odds" in str(found)
    assert found.to_dicts()[0].keys() >= {"column", "of", "estimate", "low", "high"}


def test_topics_and_directions_change_too(fitted, corpus):
    groups = fitted.groups(corpus[0], 2)
    found = fitted.effect("year", topics=groups, values=[1995], reference=1905)
    new = [bool(set(group.words[:4]) & set(NEW.split())) for group in groups.found]
    assert sorted(new) == [False, True]
    for row, is_new in zip(found.rows, new, strict=True):
        assert (row.low > 0) == is_new
        assert (row.high < 0) != is_new
    direction = fitted.posterior([NEW]).mean[0]
    options = {"values": [1995], "reference": 1905}
    found = fitted.effect("year", directions={"new": direction}, **options)
    assert found.rows[0].low > 0


def test_effects_are_drawn(fitted, tmp_path):
    curves = fitted.effect("year", words=["rocket", "plough"])
    assert len(curves) == 2 * 41
    curves.plot(tmp_path / "curves.png")
    fitted.effect("writer", words=["rocket"]).plot(tmp_path / "points.svg")
    assert (tmp_path / "curves.png").stat().st_size > 5000
    assert (tmp_path / "points.svg").stat().st_size > 5000


def test_effects_survive_saving(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = DocumentEmbedder.load(tmp_path / "model")
    options = {"words": ["rocket"], "values": [1995], "reference": 1905}
    assert (
        loaded.effect("year", **options).rows == fitted.effect("year", **options).rows
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"column": "president"}, "no covariate 'president': it has writer, year"),
        ({"column": "year", "words": ["zebra"]}, "'zebra' of 'zebra' is not among the"),
        ({"column": "year", "words": "rocket"}, "must be a list of words, got the str"),
        ({"column": "writer", "reference": "Eve"}, "no level 'Eve': it has Ann, Bob"),
        ({"column": "year", "values": ["soon"]}, "must have numbers or dates"),
        ({"column": "year", "values": 1990}, "`values` must be a list, got 1990"),
        ({"column": "writer", "values": "Ann"}, "`values` must be a list, got 'Ann'"),
        ({"column": "year", "topics": ["war"]}, "`groups` returned, got list"),
        ({"column": "year", "level": 90}, "`level` must be between 0 and 1, got 90"),
        ({"column": "year", "directions": {"a": [1.0]}}, "must have 3 numbers"),
        (
            {"column": "year", "words": ["rocket"], "directions": {}},
            "pass one of `words`, `topics` and `directions`",
        ),
    ],
)
def test_bad_input_gets_one_sentence(fitted, options, sentence):
    with pytest.raises(InputError, match=sentence):
        fitted.effect(**options)


def test_models_without_covariates_have_no_effects(corpus):
    plain = DocumentEmbedder(2, random_state=0).fit(corpus[0])
    with pytest.raises(InputError, match="the model knows no covariates"):
        plain.effect("year")
    model = BayesianSMM(2, max_iter=1, random_state=0).fit(np.eye(5) + 1)
    with pytest.raises(InputError, match="effects need a model fitted with covariates"):
        word_effects(model, np.eye(1), np.eye(5))
