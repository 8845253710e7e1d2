"""A vocabulary learned in blocks is the one learned at once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from docsigma import InputError, Vocabulary
from docsigma.counts import WordFrequencies


def texts(n=300, seed=0):
    random = np.random.default_rng(seed)
    ranks = [random.zipf(1.4, random.integers(0, 30)) for _ in range(n)]
    return [" ".join(f"Word{min(r, 999)}" for r in one) for one in ranks]


def learn(documents, **settings):
    frequencies = WordFrequencies(**settings)
    for start in range(0, len(documents), 7):
        frequencies.add(documents[start : start + 7])
    return frequencies.vocabulary()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"min_df": 1},
        {"min_df": 5, "max_df": 0.5},
        {"min_df": 0.02, "max_df": 40},
        {"max_features": 20},
        {"min_df": 1, "max_features": 150},
        {"min_df": 1, "max_features": 10**6},
        {"lowercase": False, "ngram_range": (1, 2), "max_features": 60},
        {"stop_words": ["word1", "word2"], "token_pattern": r"\w+"},
    ],
)
def test_blocks_give_the_vocabulary_of_all_texts(settings):
    found = learn(texts(), **settings)
    assert found == Vocabulary.from_texts(texts(), **settings)
    peer = CountVectorizer(**{"min_df": 2, **settings}).fit(texts())
    assert found == Vocabulary.from_vectorizer(peer)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"min_df": -1}, "'min_df' parameter"),
        ({"max_df": 1.5}, "'max_df' parameter"),
        ({"max_features": 0}, "'max_features' parameter"),
        ({"ngram_range": (2, 1)}, "settings are not valid: .*ngram_range"),
        ({"stop_words": "klingon"}, "`stop_words` must be"),
    ],
)
def test_bad_settings_are_told_before_any_text(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        WordFrequencies(**settings)


def test_no_word_left_is_told_with_the_numbers():
    with pytest.raises(InputError, match="none of the 2 texts has a word"):
        learn(["", "!"])
    with pytest.raises(InputError, match="can be in `min_df`=3 documents: there are 2"):
        learn(["sun", "sun"], min_df=3)
