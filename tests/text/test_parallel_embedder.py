"""Texts in several languages of one embedding."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from docsigma import DocumentEmbedder, ParallelEmbedder, TopicClassifier
from docsigma.exceptions import InputError

# Two topics; a word of English, German and a third language for each thing.
THINGS = {
    "weather": [
        ("sun", "sonne", "sol"),
        ("rain", "regen", "pluvia"),
        ("wind", "wind", "ventus"),
        ("snow", "schnee", "nix"),
        ("cloud", "wolke", "nubes"),
    ],
    "food": [
        ("bread", "brot", "panis"),
        ("salt", "salz", "sal"),
        ("wine", "wein", "vinum"),
        ("milk", "milch", "lac"),
        ("fish", "fisch", "piscis"),
    ],
}
LANGUAGES = ("en", "de", "la")


def drawn(n, seed=0):
    """Rows of six things of one topic mostly, in three languages, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(list(THINGS), size=n)
    rows = {name: [] for name in LANGUAGES}
    for label in labels:
        other = "food" if label == "weather" else "weather"
        some = [
            THINGS[label if rng.random() < 0.8 else other][rng.integers(5)]
            for _ in range(6)
        ]
        for place, name in enumerate(LANGUAGES):
            rows[name].append(" ".join(thing[place] for thing in some))
    return rows, labels


def embedder(**settings):
    return ParallelEmbedder(DocumentEmbedder(2, random_state=0), **settings)


@cache
def fitted():
    rows, _ = drawn(300)
    # Every fourth German text is missing.
    rows["de"][::4] = [None] * 75
    return embedder().fit(rows)


def test_a_text_and_its_translation_are_near():
    rows, _ = drawn(60, seed=1)
    parallel = fitted()
    q = {name: parallel.posterior(rows[name], language=name) for name in LANGUAGES}
    apart = np.linalg.norm(q["en"].mean[:, None] - q["la"].mean[None], axis=2)
    scale = np.sqrt(q["en"].total_variance.mean())
    assert np.diag(apart).max() < scale
    assert np.diag(apart).mean() < apart.mean() / 2
    every = parallel.posterior(rows)
    assert (every.total_variance < q["de"].total_variance).all()
    assert every.model_digest == q["la"].model_digest


def test_rows_may_lack_languages_and_blank_rows_get_the_prior():
    rows, _ = drawn(4, seed=2)
    parallel = fitted()
    q = parallel.posterior({"la": [rows["la"][0], "", None, "?"]})
    own = parallel.language("la").posterior([rows["la"][0]])
    np.testing.assert_array_equal(q.mean[:1], own.mean)
    np.testing.assert_array_equal(q.mean[1:], 0)
    assert q.n_tokens.tolist() == [6, 0, 0, 0]


@pytest.mark.parametrize("library", [pd.DataFrame, pa.table, dict])
def test_tables_of_any_library_are_the_same(library):
    rows, _ = drawn(100, seed=3)
    found = embedder().fit(library(rows)).transform(library(rows))
    np.testing.assert_array_equal(found, embedder().fit(rows).transform(rows))


def test_classifier_of_english_texts_knows_latin_ones(tmp_path):
    rows, labels = drawn(200, seed=4)
    english = TopicClassifier(fitted().language("en"), kind="evidence")
    english.fit(rows["en"], labels)
    test, true = drawn(200, seed=5)
    latin = english.in_language("la")
    # Three wrong words of six make a text that nobody could classify: 1.7 % have four.
    assert (latin.predict(test["la"]) == true).mean() > 0.9
    assert (english.predict(test["en"]) == true).mean() > 0.9
    latin.save(tmp_path / "topics")
    loaded = TopicClassifier.load(tmp_path / "topics")
    found = loaded.predict_proba(test["la"])
    np.testing.assert_allclose(found, latin.predict_proba(test["la"]), atol=1e-12)
    again = loaded.in_language("en").predict_proba(test["en"])
    np.testing.assert_allclose(again, english.predict_proba(test["en"]), atol=1e-12)


def test_hybrid_of_words_is_refused_in_another_language():
    rows, labels = drawn(200, seed=4)
    english = TopicClassifier(fitted().language("en")).fit(rows["en"], labels)
    assert english.in_language("en").predict(rows["en"][:3]).shape == (3,)
    with pytest.raises(InputError, match="looks at words of 'en'"):
        english.in_language("la")
    alone = TopicClassifier(DocumentEmbedder(2), kind="lr").fit(rows["en"], labels)
    with pytest.raises(InputError, match="model of one language"):
        alone.in_language("la")


def test_extend_adds_a_language_and_leaves_the_rest(tmp_path):
    rows, labels = drawn(300, seed=6)
    test, true = drawn(100, seed=7)
    parallel = embedder().fit({name: rows[name] for name in ("en", "de")})
    topics = TopicClassifier(parallel.language("en"), kind="evidence")
    topics.fit(rows["en"], labels)
    before = parallel.posterior(test["en"], language="en")
    more = [*rows["la"][:250], *[None] * 50]
    parallel.extend("la", more, {"de": rows["de"]})
    after = parallel.posterior(test["en"], language="en")
    np.testing.assert_array_equal(before.mean, after.mean)
    assert after.model_digest == before.model_digest
    parallel.save(tmp_path / "model")
    loaded = ParallelEmbedder.load(tmp_path / "model")
    assert loaded.languages_ == ["en", "de", "la"]
    np.testing.assert_array_equal(loaded.transform(test), parallel.transform(test))
    latin = loaded.posterior(test["la"], language="la")
    assert latin.model_digest == before.model_digest
    apart = np.linalg.norm(latin.mean - after.mean, axis=1)
    assert apart.mean() < np.sqrt(after.total_variance.mean())
    assert (topics.classifier_.classifier_.predict(latin) == true).mean() > 0.9


def test_saved_embedder_is_the_same_with_its_tokenizers(tmp_path):
    rows, _ = drawn(60, seed=8)
    rows["zh"] = ["今天 天气 非常 好" if i % 2 else "我们 去 公园" for i in range(60)]
    settings = {"zh": {"tokenizer": "jieba"}, "la": {"min_df": 3}}
    parallel = embedder(settings=settings).fit(rows)
    parallel.save(tmp_path / "model")
    loaded = ParallelEmbedder.load(tmp_path / "model")
    assert loaded.settings == {"zh": {"tokenizer": "jieba"}}
    assert loaded.embedder.n_components == 2
    np.testing.assert_array_equal(loaded.transform(rows), parallel.transform(rows))
    np.testing.assert_array_equal(
        loaded.transform(["公园"], language="zh"),
        parallel.transform(["公园"], language="zh"),
    )


def test_characters_are_a_view_too(tmp_path):
    rows, _ = drawn(80, seed=9)
    views = {"words": rows["en"], "characters": rows["en"]}
    settings = {"characters": {"analyzer": "char_wb", "ngram_range": (2, 3)}}
    parallel = embedder(settings=settings).fit(views)
    words = parallel.language("characters").model_.vocabulary_.words
    assert {" s", "ain"} <= set(words)
    # A word that was never seen has characters that were.
    assert parallel.posterior({"characters": ["rainy"]}).n_tokens[0] > 0
    parallel.save(tmp_path / "model")
    loaded = ParallelEmbedder.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(views), parallel.transform(views))


def test_topics_are_described_in_the_language_asked_for():
    rows, _ = drawn(200, seed=10)
    english = fitted().topics(rows, 2, 5)
    latin = fitted().topics(rows, 2, 5, language="la")
    assert [topic.size for topic in english] == [topic.size for topic in latin]
    assert {topic.words[0] for topic in latin} < {
        thing[2] for things in THINGS.values() for thing in things
    }
    assert latin[0].documents[0] in rows["la"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e, r: e.posterior(r["en"]), "must be a dict or a table"),
        (lambda e, r: e.posterior({"fr": r["en"]}), "'fr'; it has en, de, la"),
        (lambda e, r: e.posterior(r["en"], language="fr"), "'fr'; it has en, de, la"),
        (lambda e, _: e.posterior({"en": ["a"], "de": []}), "'de' of `X` has 0 texts"),
        (lambda e, _: e.posterior({"en": ["a", 3]}), "row 1 of column 'en'"),
        (lambda e, r: e.topics({"en": r["en"]}, language="de"), "no column 'de'"),
        (lambda e, r: e.extend("de", r["de"], {"en": r["en"]}), "known already"),
        (lambda e, r: e.extend("fr", r["de"][:9], {"en": r["en"]}), "has 9 texts"),
        (lambda e, r: e.extend("fr", ["a", ""], {"en": r["en"][:2]}), "1 texts"),
        (lambda e, r: e.language("en")._counts({"en": r["en"]}), "must be a list"),
    ],
)
def test_wrong_input_is_one_sentence(call, message):
    rows, _ = drawn(30, seed=11)
    with pytest.raises(InputError, match=message):
        call(fitted(), rows)


def test_languages_with_too_few_texts_are_refused():
    rows, _ = drawn(30, seed=12)
    rows["la"] = ["sol", *[""] * 29]
    with pytest.raises(InputError, match="'la' has 1 texts, .* components, 2"):
        embedder().fit(rows)
    with pytest.raises(InputError, match="`settings` has 'fr'"):
        embedder(settings={"fr": {}}).fit(rows)
    with pytest.raises(InputError, match="got 'device'"):
        embedder(settings={"en": {"device": "cpu"}}).fit(rows)


def test_folder_of_one_language_is_refused(tmp_path):
    rows, _ = drawn(30, seed=13)
    DocumentEmbedder(2, random_state=0).fit(rows["en"]).save(tmp_path / "model")
    with pytest.raises(InputError, match="one language"):
        ParallelEmbedder.load(tmp_path / "model")
    fitted().save(tmp_path / "several")
    with pytest.raises(InputError, match="the views en, de, la"):
        DocumentEmbedder.load(tmp_path / "several")


def test_the_card_says_how_to_load_it(tmp_path):
    fitted().save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert "model = ParallelEmbedder.load(folder)" in card
    assert "posterior(texts, language='en')" in card
    assert "| languages | en, de, la |" in card
