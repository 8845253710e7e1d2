from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import docsigma
from docsigma import BayesianSMM, DocumentEmbedder, InputError, load_corpus, load_model
from docsigma.counts.texts import as_list, is_nothing
from docsigma.covariances import Full
from docsigma.priors import IsotropicPrior
from docsigma.text import as_texts
from docsigma_paper import NVDM, SMM
from showing import without_delay

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
    [
        list,
        tuple,
        np.array,
        pd.Series,
        pa.array,
        lambda x: pa.chunked_array([x]),
        lambda x: np.array(x)[:, None],
        lambda x: pd.DataFrame({"text": x}),
        lambda x: pd.DataFrame({3: x}, index=[7, 8], dtype="string"),
        lambda x: pa.table({"text": x}),
        lambda x: pa.record_batch({"text": x}),
    ],
    ids=[
        *("list", "tuple", "numpy", "pandas", "Arrow", "chunked", "numpy (n, 1)"),
        *("DataFrame (n, 1)", "its column a number", "Table (n, 1)", "batch (n, 1)"),
    ],
)
def test_columns_of_every_kind_are_texts(column):
    assert as_texts(column(["sun", "rain"])) == ["sun", "rain"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("one text", "`texts` must be a list or a column of strings, got str"),
        (7, "`texts` must be a list or a column of strings, got int"),
        (np.array("sun"), r"one column of strings, got a ndarray of shape \(\)"),
        (["sun", None], "row 1 of `texts` must be a string, got nothing"),
        (pd.Series(["sun", np.nan]), "row 1 .* got nothing"),
        (["sun", pd.NA], "row 1 .* got nothing: fill it"),
        (pd.Series(["sun", None], dtype="string"), "row 1 .* got nothing: fill it"),
        (pa.array(["sun", None]), "row 1 .* got nothing: fill it"),
        (["sun", 3], "row 1 .* got int"),
        (
            pd.DataFrame({"text": ["sun"], "id": 1}),
            r"shape \(1, 2\): .* table\[\"text\"\]",
        ),
        (
            np.array([["sun", "rain"]]),
            r"one column of strings, got a ndarray of shape \(1, 2\)",
        ),
        (
            pa.table({"text": ["sun"], "id": [1]}),
            r"one column of strings, got a Table of shape \(1, 2\)",
        ),
    ],
)
def test_what_is_no_column_of_texts_is_refused(given, sentence):
    with pytest.raises(InputError, match=sentence):
        as_texts(given)


@pytest.mark.parametrize("table", [pd.DataFrame, pa.table])
def test_labels_may_be_a_table_of_one_column(table):
    first, second = as_list(table({"label": ["a", None]}))
    assert first == "a"
    assert is_nothing(second)
    with pytest.raises(
        InputError, match=r"`y` must be one column of labels, got a .* \(1, 2\)"
    ):
        as_list(table({"label": ["a"], "id": [1]}))


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
    with pytest.raises(InputError, match="model exists already: pass `overwrite=True`"):
        embedder.save(tmp_path / "model")
    embedder.save(tmp_path / "model", overwrite=True)
    (tmp_path / "empty").mkdir()
    embedder.save(tmp_path / "empty")
    assert isinstance(load_model(tmp_path / "model"), BayesianSMM)
    back = DocumentEmbedder.load(tmp_path / "model")
    texts = documents.texts[:5]
    np.testing.assert_array_equal(back.transform(texts), embedder.transform(texts))


@pytest.mark.parametrize(
    "made",
    [
        DocumentEmbedder(3, min_df=3, stop_words=["a", "the"], max_df=0.9, **QUICK),
        DocumentEmbedder(
            model=BayesianSMM(
                4, prior=IsotropicPrior(2.0), max_iter=3, random_state=np.int64(3)
            ),
            max_features=np.int64(90),
            ngram_range=(1, 2),
            stop_words="english",
            output="mean_variance",
        ),
        DocumentEmbedder(
            3,
            lowercase=False,
            token_pattern=r"\w+",
            strip_accents="ascii",
            model=BayesianSMM(l1=0.1, max_iter=3, device="cpu"),
            random_state=5,
            verbose=False,
        ),
        DocumentEmbedder(tokenizer=str.split, model=SMM(3, max_iter=3), **QUICK),
    ],
    ids=["plain", "of the model", "of both", "function"],
)
def test_a_loaded_embedder_has_its_parameters_and_fits_the_same(
    made, documents, tmp_path
):
    made.fit(documents.texts).save(tmp_path / "model")
    again = {"tokenizer": str.split} if made.tokenizer else {}
    loaded = DocumentEmbedder.load(tmp_path / "model", **again)
    theirs, own = loaded.get_params(deep=False), made.get_params(deep=False)
    assert theirs.pop("verbose") is None
    assert type(theirs.pop("model")) is type(own.pop("model"))
    assert own | {"verbose": False} == theirs | {"verbose": False}
    fitted = clone(loaded).fit(documents.texts)
    assert fitted.model_.digest == made.model_.digest
    assert fitted.model_.vocabulary_ == made.model_.vocabulary_
    assert str(fitted.model_.parts_) == str(made.model_.parts_)
    for name in ("n_components", "random_state", "output", "max_iter"):
        assert getattr(fitted.model_, name) == getattr(made.model_, name)
    texts = documents.texts[:5]
    np.testing.assert_array_equal(loaded.transform(texts), fitted.transform(texts))


def test_the_parameters_of_a_loaded_embedder_can_be_set(documents, tmp_path):
    model = BayesianSMM(max_iter=3)
    DocumentEmbedder(2, model=model, **QUICK).fit(documents.texts).save(tmp_path / "m")
    loaded = DocumentEmbedder.load(tmp_path / "m")
    assert loaded.model.max_iter == 3
    loaded = clone(loaded).set_params(n_components=4).fit(documents.texts)
    assert loaded.transform(["sun"]).shape == (1, 4)


def test_a_function_that_split_texts_must_be_passed_again(documents, tmp_path):
    made = DocumentEmbedder(2, tokenizer=str.split, **QUICK).fit(documents.texts)
    made.save(tmp_path / "m")
    loaded = clone(DocumentEmbedder.load(tmp_path / "m"))
    with pytest.raises(InputError, match="function `str.split`, .* pass it again"):
        loaded.fit(documents.texts)


def test_a_model_saved_alone_is_an_embedder_with_its_parameters(embedder, tmp_path):
    words = embedder.model_.vocabulary_
    alone = BayesianSMM(3, max_iter=2, random_state=7)
    counts = words.count(["sun and rain"] * 3 + ["the wind"]).counts
    alone.fit(counts).set_vocabulary(words).save(tmp_path / "m")
    loaded = DocumentEmbedder.load(tmp_path / "m")
    assert (loaded.model.n_components, loaded.model.random_state) == (3, 7)
    assert loaded.n_components is None


def test_parameters_are_those_of_the_model_or_the_embedder_but_not_both(documents):
    texts = documents.texts[:100]
    own = BayesianSMM(4, random_state=3, device="cpu", output="mean_variance")
    made = DocumentEmbedder(model=own.set_params(max_iter=2)).fit(texts).model_
    assert made.get_params() == own.get_params()
    for name, value in [
        *(("n_components", 7), ("random_state", 0), ("device", "auto")),
        *(("output", "mean"), ("n_components", 100)),
    ]:
        sentence = f"`{name}` is {value!r}, but that of `model` is "
        with pytest.raises(InputError, match=sentence):
            DocumentEmbedder(model=own, **{name: value}).fit(texts)
    assert DocumentEmbedder(4, model=own).fit(texts).model_.n_components == 4
    # The default of a model's class is no choice.
    made = DocumentEmbedder(3, model=BayesianSMM(max_iter=2), **QUICK).fit(texts)
    assert made.model_.n_components == 3
    with pytest.raises(InputError, match="`output` is 'mean_variance', but"):
        DocumentEmbedder(output="mean_variance", model=SMM(2)).fit(texts)


def test_defaults_are_those_of_the_model():
    model = DocumentEmbedder()._unfitted_model()
    assert model.get_params() == BayesianSMM(100).get_params()
    assert (model.device, model.output, model.verbose) == ("auto", "mean", False)


def test_parameters_of_the_model_can_be_set_through_the_embedder(documents):
    made = DocumentEmbedder(model=BayesianSMM(max_iter=2, **QUICK))
    made.set_params(model__n_components=7).fit(documents.texts)
    assert made.model_.n_components == 7


@pytest.mark.parametrize(
    "model",
    [
        BayesianSMM(covariance="point", max_iter=3),
        BayesianSMM(covariance=Full(), max_iter=3),
        BayesianSMM(likelihood="polya", max_iter=3),
        SMM(max_iter=3),
        NVDM(hidden_units=5, max_iter=1),
    ],
    ids=["points", "full", "polya", "SMM", "NVDM"],
)
def test_models_of_every_kind_are_fitted_saved_and_loaded(model, documents, tmp_path):
    texts = documents.texts[:100]
    made = DocumentEmbedder(2, model=model, **QUICK).fit(texts)
    made.save(tmp_path / "m")
    loaded = DocumentEmbedder.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.transform(texts), made.transform(texts))
    assert clone(loaded).fit(texts).model_.digest == made.model_.digest
    assert type(loaded.model_) is type(model)


def test_every_step_that_takes_long_shows_a_bar(documents, monkeypatch, capsys):
    monkeypatch.setattr(docsigma.counts.vocabulary, "tqdm", without_delay)
    monkeypatch.setattr(docsigma.models._subspace_model, "tqdm", without_delay)
    model = BayesianSMM(3, max_iter=2, **QUICK)
    made = DocumentEmbedder(model=model, verbose=True).fit(documents.texts)
    shown = capsys.readouterr().err
    for step in ("counting: 100%", "training: 100%"):
        assert step in shown
    made.transform(documents.texts)
    shown = capsys.readouterr().err
    for step in ("counting: 100%", "embedding: 100%"):
        assert step in shown
    made.set_params(verbose=False).transform(documents.texts)
    DocumentEmbedder(model=model).fit(documents.texts).posterior(documents.texts)
    assert capsys.readouterr().err == ""


def test_quick_steps_show_no_bar_and_a_loaded_embedder_none(
    embedder, documents, tmp_path, capsys
):
    made = clone(embedder).set_params(verbose=True).fit(documents.texts[:50])
    assert "counting" not in capsys.readouterr().err
    made.save(tmp_path / "m")
    assert not DocumentEmbedder.load(tmp_path / "m").model_.verbose


def test_the_size_is_chosen_without_labels():
    rng = np.random.default_rng(0)
    # Three groups of words, so that one dimension is too few.
    words = np.array([f"word{i}" for i in range(60)]).reshape(3, 20)
    texts = [" ".join(rng.choice(words[i % 3], 30)) for i in range(150)]
    made = DocumentEmbedder(**QUICK)
    search = GridSearchCV(made, {"n_components": [1, 3]}, cv=2).fit(texts)
    assert search.best_params_ == {"n_components": 3}
    assert search.best_estimator_.model_.n_components == 3
    best = search.best_estimator_
    counts = best.model_.vocabulary_.count(texts).counts
    assert best.score(texts) == search.score(texts) == best.model_.score(counts)
    assert search.cv_results_["mean_test_score"][0] < search.best_score_ < 0


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


def test_p_values_without_labels_know_what_is_like_the_calibration(
    embedder, docstrings, tmp_path
):
    held_out = docstrings.train[np.arange(1, 892, 2)].texts
    with pytest.raises(InputError, match="`calibrate` the embedder on texts"):
        embedder.unknown_p_value(held_out)
    with pytest.raises(InputError, match="needs texts, and there are none"):
        embedder.calibrate([])
    embedder.calibrate(held_out[::2])
    known = embedder.unknown_p_value(held_out[1::2])
    assert abs(known.mean() - 0.5) < 0.1
    assert (known <= 0.1).mean() < 0.2
    strange = embedder.unknown_p_value(["zzz qqq " * 30, "", "sonnets " * 50])
    assert strange[0] < 0.05
    assert strange[1] == 1
    assert strange[2] < 0.05
    assert len(embedder.unknown_p_value([])) == 0
    embedder.save(tmp_path / "model")
    loaded = DocumentEmbedder.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.unknown_p_value(held_out[:9]), embedder.unknown_p_value(held_out[:9])
    )
    points = DocumentEmbedder(2, model=SMM(max_iter=2), **QUICK).fit(held_out[:50])
    with pytest.raises(InputError, match="p-values need Gaussians"):
        points.calibrate(held_out)
