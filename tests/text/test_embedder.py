from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from docsigma import BayesianSMM, DocumentEmbedder, InputError, load_corpus, load_model
from docsigma.text import as_texts
from docsigma_paper import SMM

QUICK = {"random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def documents(docstrings):
    return docstrings.train[np.arange(0, 892, 2)]


@pytest.fixture(scope="module")
def embedder(documents):
    model = BayesianSMM(max_iter=10)
    return DocumentEmbedder(5, model=model, **QUICK).fit(documents.texts)


@pytest.mark.parametrize(
    "column",
    [list, tuple, np.array, pd.Series, pa.array, lambda x: pa.chunked_array([x])],
    ids=["list", "tuple", "numpy", "pandas", "Arrow", "chunked"],
)
def test_columns_of_every_kind_are_texts(column):
    assert as_texts(column(["sun", "rain"])) == ["sun", "rain"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("one text", "must be a list or a column of strings, got str"),
        (7, "must be a list or a column of strings, got int"),
        (["sun", None], "row 1 of `texts` must be a string, got nothing"),
        (pd.Series(["sun", np.nan]), "row 1 .* got nothing"),
        (["sun", 3], "row 1 .* got int"),
        (pd.DataFrame({"text": ["sun"]}), r"table\[\"text\"\]"),
        (np.array([["sun", "rain"]]), "one column of strings"),
        (pa.table({"text": ["sun"]}), "one column of strings"),
    ],
)
def test_what_is_no_column_of_texts_is_refused(given, sentence):
    with pytest.raises(InputError, match=sentence):
        as_texts(given)


def test_texts_give_what_their_counts_give(embedder, documents):
    texts = documents.texts[:20]
    model = embedder.model_
    counts = model.vocabulary_.count(texts).counts
    q = embedder.posterior(texts)
    np.testing.assert_array_equal(q.mean, model.posterior(counts).mean)
    np.testing.assert_array_equal(embedder.transform(texts), q.mean)
    assert embedder.get_feature_names_out()[0] == "bayesiansmm0"


def test_fitting_is_a_vocabulary_and_a_fit(documents):
    made = DocumentEmbedder(3, min_df=4, max_features=50, **QUICK)
    made.fit(documents.texts)
    assert len(made.model_.vocabulary_) == 50
    assert made.model_.n_components == 3
    again = clone(made).fit(pd.Series(documents.texts))
    np.testing.assert_array_equal(again.model_.components_, made.model_.components_)


def test_it_works_in_a_pipeline(documents):
    made = make_pipeline(
        DocumentEmbedder(5, output="mean_variance", **QUICK), LogisticRegression()
    )
    made.fit(documents.texts, documents.labels)
    largest = np.unique(documents.labels, return_counts=True)[1].max() / len(documents)
    # Naming the largest class each time comes as far once in three million draws.
    noise = 5 * np.sqrt(largest * (1 - largest) / len(documents))
    assert made.score(documents.texts, documents.labels) > largest + noise


def test_a_document_without_known_words_gets_the_prior(embedder):
    q = embedder.posterior(["zzzz qqqq", ""])
    np.testing.assert_array_equal(q.mean, np.zeros((2, 5)))
    assert (q.n_tokens == 0).all()


def test_topics_and_clusters_agree(embedder, documents):
    topics = embedder.topics(documents.texts, n_topics=4, n_words=6)
    labels = embedder.clusters(documents.texts, n_clusters=4)
    sizes = np.bincount(labels, minlength=4)
    assert [topic.size for topic in topics] == sizes.tolist()
    assert sizes.tolist() == sorted(sizes, reverse=True)
    table = pd.DataFrame(topics)
    assert list(table.columns) == ["topic", "size", "words", "documents"]
    assert all(len(words) == 6 for words in table["words"])
    for topic in topics:
        for text in topic.documents:
            assert labels[documents.texts.index(text)] == topic.topic


def test_folders_are_those_of_the_command_line(embedder, documents, tmp_path):
    embedder.save(tmp_path / "model")
    assert isinstance(load_model(tmp_path / "model"), BayesianSMM)
    back = DocumentEmbedder.load(tmp_path / "model")
    texts = documents.texts[:5]
    np.testing.assert_array_equal(back.transform(texts), embedder.transform(texts))


def test_a_model_without_words_is_refused(tmp_path):
    counts = load_corpus("synthetic").train.counts
    BayesianSMM(2, max_iter=2, **QUICK).fit(counts).save(tmp_path / "model")
    with pytest.raises(InputError, match="does not know its words"):
        DocumentEmbedder.load(tmp_path / "model")


def test_models_that_give_points_have_topics_too(documents):
    made = DocumentEmbedder(3, model=SMM(max_iter=5), **QUICK).fit(documents.texts)
    assert made.transform(documents.texts[:4]).shape == (4, 3)
    assert len(made.topics(documents.texts, n_topics=2)) == 2


def test_counts_are_refused_as_texts_and_texts_as_counts(documents):
    for model in (BayesianSMM(2), SMM(2)):
        for texts in (documents.texts[:5], pd.Series(documents.texts[:5])):
            with pytest.raises(InputError, match="got texts: .* DocumentEmbedder"):
                model.fit(texts)


def test_a_table_of_counts_is_not_taken_for_texts():
    counts = np.random.default_rng(0).poisson(1.0, (30, 4))
    table = pd.DataFrame(counts, columns=["sun", "rain", "wind", "hail"])
    model = BayesianSMM(2, max_iter=2, **QUICK).fit(table)
    assert model.feature_names_in_.tolist() == list(table.columns)
    model.fit(counts.tolist())


@pytest.mark.parametrize("method", ["posterior", "transform", "topics", "clusters"])
def test_an_embedder_that_is_not_fitted_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(DocumentEmbedder(2), method)(["sun"])


@pytest.mark.parametrize("n", [1, 3])
def test_too_few_documents_for_min_df_are_told_in_words(n):
    texts = ["sun and rain", "wind", "hail"][:n]
    with pytest.raises(InputError, match=f"`min_df`=5 documents: there .*{n}"):
        DocumentEmbedder(2, min_df=5).fit(texts)


def test_more_components_than_memory_or_documents():
    counts = load_corpus("synthetic").train.counts
    with pytest.raises(InputError, match=r"`n_components`=100000000 for 400 .* GiB"):
        BayesianSMM(100_000_000, device="cpu").fit(counts)
    with pytest.warns(UserWarning, match="`n_components`=9 is more than the 4 docum"):
        BayesianSMM(9, max_iter=1, **QUICK).fit(counts[:4])


def test_counts_of_texts_make_the_same_model_and_without_words_no_texts_are_taken():
    texts = ["sun and rain", "rain and wind", "bread and salt", "salt and butter"] * 5
    whole, parts = (DocumentEmbedder(2, random_state=0) for _ in range(2))
    words, counts = parts.learn_words(texts)
    parts.fit_counts(counts, vocabulary=words, callback=lambda _: False)
    assert whole.fit(texts).model_.digest == parts.model_.digest
    assert whole.model_.vocabulary_ == parts.model_.vocabulary_
    with pytest.raises(InputError, match=f"has 3 columns.* {len(words)} words"):
        parts.fit_counts(counts[:, :3], vocabulary=words)
    # The model fitted before is still there.
    assert parts.transform(["rain"]).shape[0] == 1
    parts.fit_counts(counts)
    with pytest.raises(InputError, match="does not know its words"):
        parts.transform(texts)
