from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from docsigma.corpora import Documents, load_corpus
from docsigma.counts import CountedDocuments, Vocabulary, check_counts
from docsigma.exceptions import InputError

TEXTS = [
    "The sun rose and the rain fell",
    "Rain, rain, go away; the Café is shut",
    "",
    "sun and rain and hail",
]


def assert_canonical(counts: sparse.csr_matrix) -> None:
    assert isinstance(counts, sparse.csr_matrix)
    assert counts.dtype == np.float32
    assert counts.has_sorted_indices


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"min_df": 1, "max_df": 0.5},
        {"min_df": 1, "max_features": 3},
        {"min_df": 1, "ngram_range": (1, 2)},
        {"min_df": 1, "lowercase": False, "strip_accents": "unicode"},
        {"min_df": 1, "stop_words": "english"},
        {"min_df": 1, "stop_words": ["rain", "the"]},
        {"min_df": 1, "token_pattern": r"\b\w+\b"},
    ],
)
def test_fit_count_agrees_with_count_vectorizer(settings):
    peer = CountVectorizer(**{"min_df": 2, **settings})
    expected = peer.fit_transform(TEXTS)
    vocabulary, counted = Vocabulary.fit_count(TEXTS, **settings)
    assert vocabulary.words == tuple(peer.get_feature_names_out())
    assert (counted.counts != expected).nnz == 0
    assert_canonical(counted.counts)
    analyze = peer.build_analyzer()
    total = [len(analyze(text)) for text in TEXTS]
    assert (counted.n_tokens + counted.n_unknown).tolist() == total


def test_counting_again_gives_the_counts_of_fitting():
    vocabulary, fitted = Vocabulary.fit_count(TEXTS)
    counted = vocabulary.count(TEXTS)
    assert (counted.counts != fitted.counts).nnz == 0
    assert counted.n_unknown.tolist() == fitted.n_unknown.tolist()
    assert vocabulary == Vocabulary.from_texts(TEXTS)
    assert len(counted) == len(TEXTS)


def test_unknown_tokens_and_empty_texts_are_counted():
    counted = Vocabulary.from_words(["rain", "sun"]).count(["Rain or snow", "", "sun"])
    assert isinstance(counted, CountedDocuments)
    assert counted.counts.toarray().tolist() == [[1, 0], [0, 0], [0, 1]]
    assert counted.n_tokens.tolist() == [1, 0, 1]
    assert counted.n_unknown.tolist() == [2, 0, 0]
    assert counted.n_tokens.dtype.kind == "i"


def test_no_texts_give_no_rows():
    counted = Vocabulary.from_words(["rain", "sun"]).count([])
    assert counted.counts.shape == (0, 2)
    assert counted.n_unknown.shape == (0,)


def test_texts_may_come_from_a_generator():
    vocabulary, counted = Vocabulary.fit_count(text for text in TEXTS)
    assert vocabulary == Vocabulary.from_texts(TEXTS)
    expected = vocabulary.count(TEXTS).counts
    np.testing.assert_array_equal(counted.counts.toarray(), expected.toarray())


@pytest.mark.parametrize("texts", [["", "!"], ["a b", "c"]])
def test_texts_without_words_are_refused(texts):
    with pytest.raises(InputError, match="none of the 2 texts has a word"):
        Vocabulary.from_texts(texts)


def test_pruning_every_word_is_refused_with_the_settings():
    with pytest.raises(InputError, match=r"2 texts with `min_df`=2, `max_df`=1.0"):
        Vocabulary.from_texts(["sun", "rain"])


def test_no_texts_make_no_vocabulary():
    with pytest.raises(InputError, match="0 texts"):
        Vocabulary.from_texts([])


@pytest.mark.parametrize(
    ("texts", "fact"),
    [
        ("one string", "list or a column of strings, got str"),
        (["sun", None], "row 1 .* a string, got nothing"),
        (["sun", 3.5], "row 1 .* a string, got float"),
        ([b"sun"], "row 0 .* a string, got bytes"),
    ],
)
def test_texts_that_are_not_strings_are_refused(texts, fact):
    with pytest.raises(InputError, match=fact):
        Vocabulary.from_texts(texts)
    with pytest.raises(InputError, match=fact):
        Vocabulary.from_words(["sun"]).count(texts)


@pytest.mark.parametrize(
    "settings",
    [
        {"lowercase": False, "ngram_range": (1, 2)},
        {"stop_words": ["rain", "the"], "strip_accents": "ascii"},
        {"analyzer": "char_wb", "ngram_range": (2, 3)},
    ],
)
def test_a_fitted_vectorizer_round_trips(settings):
    peer = CountVectorizer(min_df=1, **settings).fit(TEXTS)
    vocabulary = Vocabulary.from_vectorizer(peer)
    expected = peer.transform(TEXTS)
    assert (vocabulary.count(TEXTS).counts != expected).nnz == 0
    assert (vocabulary.vectorizer().transform(TEXTS) != expected).nnz == 0
    saved = json.loads(json.dumps(vocabulary.to_dict()))
    assert Vocabulary.from_dict(saved) == vocabulary


@pytest.mark.parametrize(
    ("vectorizer", "fact"),
    [
        (CountVectorizer(analyzer=str.split), "`analyzer`, which cannot be saved"),
        (
            CountVectorizer(tokenizer=str.split, token_pattern=None),
            "`tokenizer`, which cannot be saved",
        ),
        (CountVectorizer(preprocessor=str.lower), "`preprocessor`"),
        (CountVectorizer(strip_accents=str.lower), "`strip_accents`"),
        (CountVectorizer(binary=True), "binary=True"),
    ],
)
def test_vectorizers_that_cannot_be_saved_are_refused(vectorizer, fact):
    with pytest.raises(InputError, match=fact):
        Vocabulary.from_vectorizer(vectorizer.fit(TEXTS))


def test_other_things_than_a_fitted_count_vectorizer_are_refused():
    with pytest.raises(InputError, match="not fitted"):
        Vocabulary.from_vectorizer(CountVectorizer())
    with pytest.raises(InputError, match="got HashingVectorizer"):
        Vocabulary.from_vectorizer(HashingVectorizer())

    class Odd(CountVectorizer):
        def build_analyzer(self):
            return str.split

    with pytest.raises(InputError, match="build_analyzer"):
        Vocabulary.from_vectorizer(Odd().fit(TEXTS))


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        ([], "no words"),
        (["sun", "rain", "sun"], "'sun' twice, as words 1 and 3"),
        (["sun", ""], "'' as word 2"),
        (["sun", 7], "7 as word 2"),
        ("sun", "one str"),
    ],
)
def test_bad_words_are_refused(words, fact):
    with pytest.raises(InputError, match=fact):
        Vocabulary.from_words(words)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"words": None}, "word"),
        ({"words": ["sun", "sun"]}, "twice"),
        ({"lowercase": "yes"}, "'lowercase'"),
        ({"token_pattern": "("}, "settings are not valid"),
        ({"token_pattern": "(a)(b)"}, "settings are not valid"),
        ({"ngram_range": [2, 1]}, "settings are not valid: .*ngram_range"),
        ({"ngram_range": [1]}, "settings are not valid"),
        ({"stop_words": "klingon"}, "`stop_words` must be `english`"),
        ({"analyzer": "guess"}, "settings are not valid"),
        ({"strip_accents": "all"}, "settings are not valid"),
        ({"extra": 1}, "entries"),
    ],
)
def test_a_damaged_saved_vocabulary_is_refused(change, fact):
    state = {**Vocabulary.from_words(["sun", "rain"]).to_dict(), **change}
    with pytest.raises(InputError, match=fact):
        Vocabulary.from_dict(state)


def test_a_saved_vocabulary_that_is_no_dictionary_is_refused():
    with pytest.raises(InputError, match="entries"):
        Vocabulary.from_dict(["sun"])
    with pytest.raises(InputError, match="entries"):
        Vocabulary.from_dict({"words": ["sun"]})


def test_digest_and_equality_tell_vocabularies_apart():
    one = Vocabulary.from_words(["sun", "rain"])
    assert one == Vocabulary.from_words(("sun", "rain"))
    assert one != Vocabulary.from_words(["rain", "sun"])
    assert one != Vocabulary(("sun", "rain"), lowercase=False)
    assert one.digest == Vocabulary(("sun", "rain"), lowercase=False).digest
    assert one.digest != Vocabulary.from_words(["rain", "sun"]).digest
    assert len(one.digest) == 64


def test_a_vocabulary_cannot_be_changed():
    vocabulary = Vocabulary.from_words(["sun"])
    with pytest.raises(AttributeError):
        vocabulary.words = ("rain",)


def test_counts_with_words_are_matched_by_word():
    documents = Documents(
        ["a", "b"],
        counts=sparse.csr_matrix([[1, 2, 3], [0, 4, 0]], dtype=np.float32),
        words=["hail", "sun", "rain"],
    )
    counted = Vocabulary.from_words(["rain", "snow", "sun"]).count_documents(documents)
    assert counted.counts.toarray().tolist() == [[3, 0, 2], [0, 0, 4]]
    assert counted.n_tokens.tolist() == [5, 4]
    assert counted.n_unknown.tolist() == [1, 0]
    assert_canonical(counted.counts)


def test_counts_with_no_known_word_are_all_unknown():
    documents = Documents(["a"], counts=sparse.csr_matrix([[5]]), words=["hail"])
    counted = Vocabulary.from_words(["rain", "sun"]).count_documents(documents)
    assert counted.counts.shape == (1, 2)
    assert counted.n_unknown.tolist() == [5]


def test_counts_without_words_need_as_many_columns_as_words():
    documents = Documents(["a"], counts=sparse.csr_matrix([[5, 0, 1]]), source="x.npz")
    with pytest.raises(InputError, match=r"x.npz have 3 columns .* has 2 words"):
        Vocabulary.from_words(["rain", "sun"]).count_documents(documents)
    counted = Vocabulary.from_words(["rain", "sun", "hail"]).count_documents(documents)
    assert counted.n_tokens.tolist() == [6]


def test_documents_of_text_are_counted():
    documents = Documents(["a"], texts=["rain or shine"])
    counted = Vocabulary.from_words(["rain"]).count_documents(documents)
    assert (counted.n_tokens[0], counted.n_unknown[0]) == (1, 2)


@pytest.mark.parametrize(
    "container",
    [
        np.array,
        list,
        sparse.csr_matrix,
        sparse.csc_matrix,
        sparse.coo_array,
        sparse.csr_array,
    ],
)
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float64, bool])
def test_every_container_of_whole_numbers_is_accepted(container, dtype):
    given = container(np.array([[1, 0, 1], [0, 1, 0]], dtype=dtype))
    counts = check_counts(given)
    assert_canonical(counts)
    assert counts.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]


def test_checking_sums_duplicates_and_leaves_the_given_matrix_alone():
    given = sparse.csr_matrix(
        (np.array([1.0, 2.0, 0.0, 3.0]), np.array([2, 0, 1, 2]), np.array([0, 4])),
        shape=(1, 3),
    )
    counts = check_counts(given)
    assert counts.toarray().tolist() == [[2, 0, 4]]
    assert counts.nnz == 2
    assert given.data.tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize("container", [np.array, sparse.csr_matrix, sparse.coo_matrix])
@pytest.mark.parametrize(
    ("value", "fact"),
    [
        (-1.0, "has -1.0 in row 2, column 3, which is negative"),
        (np.nan, "has nan in row 2, column 3, which is not finite"),
        (np.inf, "has inf in row 2, column 3, which is not finite"),
        (0.5, "has 0.5 in row 2, column 3, which is not a whole number"),
        (2.0**25, "row 2, column 3, which is above the largest count, 16777216"),
    ],
)
def test_values_that_are_no_counts_are_refused(container, value, fact):
    with pytest.raises(InputError, match=f"my counts.*{fact}"):
        check_counts(container([[1, 0, 2], [0, 0, value]]), name="my counts")


@pytest.mark.parametrize(
    ("counts", "fact"),
    [
        ([1, 2], "2 dimensions.*got 1"),
        ([["a"]], "must be numbers"),
        ([[1j]], "must be numbers"),
        ([[1], [1, 2]], "not a matrix"),
        (None, "2 dimensions.*got 0"),
    ],
)
def test_things_that_are_no_matrix_are_refused(counts, fact):
    with pytest.raises(InputError, match=fact):
        check_counts(counts)


def test_indices_out_of_range_are_refused():
    broken = sparse.csr_matrix([[1, 2]])
    broken.indices[1] = 9
    with pytest.raises(InputError, match="not a matrix of counts"):
        check_counts(broken)


@pytest.mark.data
def test_newsgroups_have_the_known_vocabulary(data_folder):
    corpus = load_corpus("20newsgroups")
    vocabulary, counted = Vocabulary.fit_count(corpus.train.texts, min_df=2)
    assert len(vocabulary) == 56438
    assert counted.counts.shape == (11314, 56438)
    assert (counted.n_tokens > 0).all()
