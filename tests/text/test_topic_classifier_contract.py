"""Scikit-learn's contract, for the estimators of texts that its checks leave out."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import docsigma
from docsigma import BayesianSMM, DocumentEmbedder, InputError, TopicClassifier
from docsigma.classifiers import EvidenceClassifier
from docsigma_paper import SMM
from showing import without_delay

KINDS = ["hybrid", "evidence", "glcu", "glc", "lr"]
TOPICS = {
    "pets": "cats purr dogs bark mice run",
    "money": "stocks rise bonds fall banks lend",
    "food": "bread butter cheese wine cook salt",
}
COMMON = "and the of a with"
# An embedding is inferred in single precision, by Newton steps whose last one changes
# it by that; a text's neighbours may change the order of sums over its words.
ROUNDING = 1e3 * np.finfo(np.float32).eps


def draw(n, seed):
    """Return texts of two to nine words, of their class or of any, and their labels."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.resize(list(TOPICS), n))
    words = [f"{TOPICS[label]} {COMMON}".split() for label in labels]
    texts = [" ".join(random.choice(w, random.integers(2, 10))) for w in words]
    return texts, labels


def small(**settings):
    return DocumentEmbedder(2, random_state=0, device="cpu", **settings)


@pytest.fixture(scope="module")
def train():
    return draw(60, 0)


@pytest.fixture(scope="module")
def new():
    return draw(40, 1)


@pytest.fixture(scope="module")
def embedder(train):
    return small().fit(train[0])


@pytest.fixture(scope="module")
def fitted(train, embedder):
    return {kind: TopicClassifier(embedder, kind=kind).fit(*train) for kind in KINDS}


def some_of(values, rows):
    return [values[row] for row in rows]


# ------------------------------------------------------------------------ parameters


@pytest.mark.parametrize("made", [DocumentEmbedder(), TopicClassifier()])
def test_clones_have_the_parameters_of_the_original(made):
    assert clone(made).get_params() == made.get_params()
    assert repr(made) == f"{type(made).__name__}()"
    made = clone(made).set_params(verbose=True)
    assert clone(made).verbose


@pytest.mark.parametrize("given", [None, DocumentEmbedder(min_df=1)])
def test_parameters_inside_are_set_and_listed(given):
    made = clone(TopicClassifier(given))
    made.set_params(
        embedder__n_components=3,
        embedder__model__max_iter=4,
        embedder__model__l1=0.1,
        kind="glc",
    )
    params = made.get_params()
    assert params["embedder__n_components"] == 3
    assert params["embedder__model__max_iter"] == 4
    again = clone(made)
    assert again.embedder.model.l1 == 0.1
    assert again.embedder.min_df == (2 if given is None else 1)
    assert again.get_params()["embedder__model__max_iter"] == 4
    with pytest.raises(ValueError, match="Invalid parameter 'size'"):
        made.set_params(embedder__size=3)


def test_parameters_of_a_default_are_those_that_are_fitted(train):
    made = TopicClassifier(kind="glc", verbose=False).set_params(
        embedder__n_components=3, embedder__model__max_iter=2, embedder__random_state=0
    )
    made.fit(*train)
    assert made.embedder_.model_.n_components == 3
    assert made.embedder_.model_.max_iter == 2
    alone = DocumentEmbedder().set_params(model__max_iter=2, n_components=3)
    assert alone.fit(train[0]).model_.max_iter == 2


def test_fitting_changes_no_parameter(train):
    made = TopicClassifier(small(), verbose=True)
    before = {k: v for k, v in made.get_params().items() if k != "embedder"}
    made.fit(*train)
    after = {k: v for k, v in made.get_params().items() if k != "embedder"}
    assert after == before
    assert not hasattr(made.embedder, "model_")


@pytest.mark.parametrize("kind", ["svm", None, "pets"])
def test_kinds_that_there_are_not(train, embedder, kind):
    with pytest.raises(ValueError, match="kind"):
        TopicClassifier(embedder, kind=kind).fit(*train)


def test_tags_say_that_it_takes_texts(fitted):
    assert is_classifier(fitted["hybrid"])
    tags = fitted["hybrid"].__sklearn_tags__()
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array


# ----------------------------------------------------------- the same, fitted or loaded


@pytest.mark.parametrize("kind", KINDS)
def test_pickles_and_folders_give_the_same(fitted, new, tmp_path, kind):
    made = fitted[kind]
    made.save(tmp_path / "clf")
    expected = made.predict_log_proba(new[0])
    for again in (
        pickle.loads(pickle.dumps(made)),
        TopicClassifier.load(tmp_path / "clf"),
    ):
        np.testing.assert_array_equal(again.predict_log_proba(new[0]), expected)
        np.testing.assert_array_equal(again.predict(new[0]), made.predict(new[0]))
        assert again.kind == kind


def test_an_embedder_is_pickled(embedder, new):
    again = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(again.transform(new[0]), embedder.transform(new[0]))


def test_a_folder_that_exists_is_overwritten_on_request_only(fitted, tmp_path):
    fitted["lr"].save(tmp_path / "clf")
    with pytest.raises(InputError, match="clf exists already: pass `overwrite=True`"):
        fitted["glc"].save(tmp_path / "clf")
    assert TopicClassifier.load(tmp_path / "clf").kind == "lr"
    fitted["glc"].save(tmp_path / "clf", overwrite=True)
    assert TopicClassifier.load(tmp_path / "clf").kind == "glc"


@pytest.mark.parametrize("kind", ["hybrid", "glcu"])
def test_a_clone_of_a_loaded_one_is_fitted_the_same(train, new, tmp_path, kind):
    made = TopicClassifier(small(min_df=3, stop_words=["the"]), kind=kind).fit(*train)
    made.save(tmp_path / "clf")
    loaded = TopicClassifier.load(tmp_path / "clf")
    assert loaded.embedder.get_params(deep=False) | {"model": None} == {
        **made.embedder.get_params(deep=False),
        "verbose": None,
    }
    again = clone(loaded).fit(*train)
    expected = made.predict_proba(new[0])
    np.testing.assert_array_equal(again.predict_proba(new[0]), expected)


def test_a_second_fit_is_like_the_first(train, new, embedder):
    other = draw(45, 2)
    one = small().fit(other[0]).fit(train[0])
    np.testing.assert_array_equal(one.transform(new[0]), embedder.transform(new[0]))
    made = TopicClassifier(small()).fit(*other).fit(*train)
    fresh = TopicClassifier(small()).fit(*train)
    expected = fresh.predict_proba(new[0])
    np.testing.assert_array_equal(made.predict_proba(new[0]), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_calibrated_before_is_forgotten(fitted, train, new, embedder, kind):
    made = TopicClassifier(embedder, kind=kind).fit(*draw(45, 2))
    assert len(made.calibrate(*new).classifier_.guarantees) == 40
    made.fit(*train)
    assert not made.classifier_.is_calibrated
    expected = fitted[kind].predict_proba(new[0])
    np.testing.assert_array_equal(made.predict_proba(new[0]), expected)


# ---------------------------------------------------------------- rows and their order


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_of_a_subset_are_those_of_the_whole(fitted, new, kind):
    made, rows = fitted[kind], np.array([31, 2, 3, 17])
    texts = some_of(new[0], rows)
    methods = ("predict_log_proba", "predict_proba", "decision_function")
    for method in (*methods, "predict_entropy"):
        whole = getattr(made, method)(new[0])[rows]
        found = getattr(made, method)(texts)
        # Log odds here are no larger than some 10.
        np.testing.assert_allclose(found, whole, atol=10 * ROUNDING)


def test_embeddings_of_a_subset_are_those_of_the_whole(embedder, new):
    rows = np.array([31, 2, 3, 17])
    whole, q = embedder.posterior(new[0]), embedder.posterior(some_of(new[0], rows))
    np.testing.assert_allclose(q.mean, whole.mean[rows], atol=ROUNDING)
    np.testing.assert_allclose(q.variance, whole.variance[rows], atol=ROUNDING)
    np.testing.assert_array_equal(q.n_tokens, whole.n_tokens[rows])


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_texts_does_not_matter(fitted, train, new, embedder, kind):
    order = np.random.default_rng(0).permutation(len(train[0]))
    other = TopicClassifier(embedder, kind=kind)
    other.fit(some_of(train[0], order), train[1][order])
    np.testing.assert_allclose(
        other.predict_proba(new[0]), fitted[kind].predict_proba(new[0]), atol=ROUNDING
    )
    assert other.classifier_.pairs_ == fitted[kind].classifier_.pairs_


# ------------------------------------------------------------------------------ weights


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_two_is_two_copies_and_one_of_zero_is_absence(
    train, new, embedder, kind
):
    weights = np.random.default_rng(3).integers(0, 3, len(train[0]))
    copies = np.repeat(np.arange(len(weights)), weights)
    labels = np.where(np.arange(len(weights)) % 3, train[1], "")
    one = TopicClassifier(embedder, kind=kind)
    one.fit(train[0], labels, sample_weight=weights)
    other = TopicClassifier(embedder, kind=kind)
    other.fit(some_of(train[0], copies), labels[copies])
    # Embeddings differ by rounding, and so do the minima that they lead to.
    np.testing.assert_allclose(
        one.predict_proba(new[0]), other.predict_proba(new[0]), atol=ROUNDING
    )
    assert one.classifier_.pairs_ == other.classifier_.pairs_


@pytest.mark.parametrize("kind", ["hybrid", "evidence"])
def test_texts_of_weight_zero_are_absent_and_not_unlabelled(train, new, embedder, kind):
    weights = (np.arange(len(train[0])) < 12).astype(float)

    def proba(texts, labels, weights=None):
        made = TopicClassifier(embedder, kind=kind).fit(texts, labels, weights)
        return made.predict_proba(new[0])

    absent = proba(*train, weights)
    alone = proba(train[0][:12], train[1][:12])
    np.testing.assert_allclose(absent, alone, atol=ROUNDING)
    hidden = proba(train[0], np.where(weights > 0, train[1], None))
    assert np.abs(hidden - absent).max() > 1e-3


def test_weights_that_do_not_fit_are_refused(train, embedder):
    made = TopicClassifier(embedder, kind="glc")
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\)"):
        made.fit(*train, sample_weight=[1, 2, 3])
    with pytest.raises(ValueError, match="Negative values in data .*sample_weight"):
        made.fit(*train, sample_weight=-np.ones(60))


# ------------------------------------------------------------------ labels and columns


@pytest.mark.parametrize("missing", [-1, None, np.nan, pd.NA])
@pytest.mark.parametrize("column", [list, np.array, pd.Series])
def test_labels_may_be_integers_some_of_which_are_missing(
    train, new, embedder, missing, column
):
    codes = np.searchsorted(sorted(TOPICS), train[1])
    some = [int(c) if row % 2 else missing for row, c in enumerate(codes)]
    made = TopicClassifier(embedder, kind="glc").fit(train[0], column(some))
    alone = TopicClassifier(embedder, kind="glc").fit(train[0][1::2], codes[1::2])
    assert [int(label) for label in made.classes_] == [0, 1, 2]
    found, expected = made.predict(new[0]), alone.predict(new[0])
    assert found.dtype.kind in "if"
    np.testing.assert_array_equal(found, expected)
    # What has no label is not scored.
    score = made.score(train[0], column(some))
    assert score == alone.score(train[0][1::2], codes[1::2])


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_minus_one_is_a_class_where_it_is_declared_one(
    train, embedder, kind
):
    codes = np.searchsorted(sorted(TOPICS), train[1]) - 1
    made = TopicClassifier(embedder, kind=kind, missing_label=None)
    assert made.fit(train[0], codes).classes_.tolist() == [-1, 0, 1]
    accuracy = accuracy_score(codes, made.predict(train[0]))
    assert made.score(train[0], codes) == accuracy
    usual = TopicClassifier(embedder, kind=kind).fit(train[0], codes)
    assert usual.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_is_the_accuracy(fitted, new, kind):
    right = fitted[kind].predict(new[0]) == new[1]
    assert fitted[kind].score(*new) == right.mean()
    weights = np.arange(len(right))
    weighted = fitted[kind].score(*new, sample_weight=weights)
    assert weighted == pytest.approx(np.average(right, weights=weights))
    # Naming one of three classes comes as far once in ten thousand.
    assert right.mean() > 0.65
    with pytest.raises(ValueError, match=r"\(3,\), expected \(40,\)"):
        fitted[kind].score(*new, sample_weight=[1.0] * 3)
    for nothing in ([], [None] * len(right)):
        with pytest.raises(InputError, match="none of the .* texts has a label"):
            fitted[kind].score(new[0][: len(nothing)], nothing)


@pytest.mark.parametrize(
    "column",
    [
        lambda x: np.array(x)[:, None],
        lambda x: pd.DataFrame({"column": x}),
        lambda x: pd.Series(x, index=range(7, 7 + len(x))),
        lambda x: np.array(x, dtype=object),
    ],
    ids=["(n, 1)", "DataFrame", "Series", "objects"],
)
def test_a_table_of_one_column_is_a_column(train, new, embedder, fitted, column):
    made = TopicClassifier(embedder, kind="glc")
    made.fit(column(train[0]), column(train[1]))
    expected = fitted["glc"].predict_proba(new[0])
    np.testing.assert_array_equal(made.predict_proba(column(new[0])), expected)
    score = fitted["glc"].score(*new)
    assert made.score(column(new[0]), column(new[1])) == score


@pytest.mark.parametrize("of", [set, dict.fromkeys], ids=["set", "dict"])
def test_texts_without_an_order_are_refused(train, of):
    with pytest.raises(InputError, match="a column of strings, got"):
        TopicClassifier(small()).fit(of(train[0]), train[1])


def test_a_missing_text_is_refused_in_one_sentence(train, fitted):
    for texts in (["sun", pd.NA], pd.Series(["sun", pd.NA], dtype="string")):
        with pytest.raises(InputError, match="row 1 of `texts` .* got nothing: fill"):
            fitted["glc"].predict(texts)
        with pytest.raises(InputError, match="row 1 of `texts` .* got nothing: fill"):
            TopicClassifier(small()).fit(texts, ["a", "b"])


# ------------------------------------------------------------------- nothing to go by


@pytest.mark.parametrize("kind", KINDS)
def test_no_texts_get_no_labels(fitted, kind):
    made = fitted[kind]
    assert made.predict([]).shape == (0,)
    assert made.predict([]).dtype == made.classes_.dtype
    assert made.predict([], reject=0.5).shape == (0,)
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        assert getattr(made, method)([]).shape == (0, 3)
    assert made.predict_sets([]) == made.explain([]) == []
    assert made.unknown_p_value([]).shape == (0,)
    assert made.triage([], top=3).rows == []


@pytest.mark.parametrize("kind", KINDS)
def test_texts_without_known_words_get_the_most_frequent_class(embedder, kind, train):
    # A rare class lies where the prior's mean does: it has none but common words.
    plain = ["and the of", "a with the", "of and a", "with a of the", "the and with"]
    texts = [*train[0], *(text for text in train[0] if set(text.split()) & {"cats"})]
    labels = [*train[1], *["pets"] * (len(texts) - len(train[1])), *["none"] * 5]
    made = TopicClassifier(embedder, kind=kind).fit([*texts, *plain], labels)
    assert max(set(labels), key=labels.count) == "pets"
    unknown = ["zzz", "", "qqq zzz"]
    assert made.predict(unknown).tolist() == ["pets"] * 3
    shares = [labels.count(name) / len(labels) for name in made.classes_]
    np.testing.assert_allclose(made.predict_proba(unknown), [shares] * 3)
    assert made.predict(unknown, reject=max(shares) + 0.01).tolist() == [None] * 3
    entropy = made.predict_entropy(unknown)
    np.testing.assert_allclose(entropy, -np.log(shares) @ shares)


@pytest.mark.parametrize(
    "method",
    ["predict", "predict_proba", "decision_function", "embed", "posterior", "explain"],
)
def test_one_that_is_not_fitted_says_so(method):
    with pytest.raises(NotFittedError, match="TopicClassifier"):
        getattr(TopicClassifier(), method)(["sun"])


# ------------------------------------------------------ in the tools of scikit-learn


def test_cross_validation_and_a_search(train):
    made = TopicClassifier(small(), kind="glc")
    # Naming one of three classes comes as far once in a thousand million.
    assert cross_val_score(made, *train, cv=3).mean() > 0.7
    grid = {"embedder__n_components": [1, 2], "kind": ["glc", "hybrid"]}
    quick = TopicClassifier().set_params(
        embedder__random_state=0, embedder__model__max_iter=20
    )
    search = GridSearchCV(quick, grid, cv=2).fit(*train)
    best = search.best_estimator_
    assert best.kind == search.best_params_["kind"]
    n_components = search.best_params_["embedder__n_components"]
    assert best.embedder_.model_.n_components == n_components
    assert search.score(*train) == best.score(*train)


@pytest.mark.parametrize("kind", ["hybrid", "lr"])
def test_calibration_and_frozen_estimators(train, new, fitted, embedder, kind):
    frozen = FrozenEstimator(fitted[kind])
    expected = fitted[kind].predict_proba(new[0])
    np.testing.assert_array_equal(frozen.predict_proba(new[0]), expected)
    again = clone(frozen).fit(train[0][:2], train[1][:2])
    np.testing.assert_array_equal(again.predict_proba(new[0]), expected)
    for base in (frozen, TopicClassifier(small(), kind="glc")):
        calibrated = CalibratedClassifierCV(base, cv=2).fit(*train)
        proba = calibrated.predict_proba(new[0])
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        assert accuracy_score(new[1], calibrated.predict(new[0])) > 0.65


def test_an_embedder_is_a_transformer(train, new, embedder):
    pipeline = make_pipeline(small(), EvidenceClassifier()).fit(*train)
    assert pipeline.predict(new[0]).shape == (40,)
    names = embedder.get_feature_names_out()
    table = clone(embedder).set_output(transform="pandas").fit(train[0])
    assert table.transform(new[0]).columns.tolist() == names.tolist()
    both = clone(embedder).fit_transform(train[0])
    np.testing.assert_allclose(both, embedder.transform(train[0]), atol=ROUNDING)


# ------------------------------------------------------------------ models and settings


def test_the_size_and_the_seed_are_those_of_the_model(train):
    model = BayesianSMM(3, max_iter=3, random_state=7)
    made = TopicClassifier(DocumentEmbedder(model=model), kind="glc").fit(*train)
    assert made.posterior(["cats"]).n_components == 3
    assert made.embedder_.model_.random_state == 7
    conflict = DocumentEmbedder(5, model=model)
    with pytest.raises(InputError, match="`n_components` is 5, but that of `model` is"):
        TopicClassifier(conflict, kind="glc").fit(*train)
    assert DocumentEmbedder(model=BayesianSMM(50))._unfitted_model().n_components == 50


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_points(train, new, tmp_path, kind):
    made = TopicClassifier(small(model=SMM(max_iter=20)), kind=kind)
    if kind in ("evidence", "glcu"):
        with pytest.raises(
            InputError, match=f"{kind} needs Gaussians.* use hybrid, glc or lr"
        ):
            made.fit(*train)
        return
    made.fit(*train).save(tmp_path / "clf")
    assert made.score(*new) > 0.65
    back = TopicClassifier.load(tmp_path / "clf")
    expected = made.predict_proba(new[0])
    np.testing.assert_array_equal(back.predict_proba(new[0]), expected)
    assert len(made.embedder_.topics(train[0], n_topics=3)) == 3


@pytest.mark.parametrize("kind", ["hybrid", "evidence", "glcu"])
def test_the_device_reaches_the_classifier(fitted, kind):
    assert fitted[kind].classifier_.classifier_.device == "cpu"


def test_every_step_that_takes_long_shows_a_bar(train, monkeypatch, capsys):
    for module in (
        docsigma.counts.vocabulary,
        docsigma.models._subspace_model,
        docsigma.classifiers.hybrid,
    ):
        monkeypatch.setattr(module, "tqdm", without_delay)
    TopicClassifier(small(), verbose=True).fit(*train)
    shown = capsys.readouterr().err
    for step in ("counting", "training", "embedding", "choosing: 100%"):
        assert step in shown
    TopicClassifier(small()).fit(*train)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", KINDS)
def test_documents_are_inferred_once_in_a_fit(train, embedder, monkeypatch, kind):
    inferred = []
    whole = BayesianSMM.posterior

    def posterior(self, X):
        inferred.append(X.shape[0])
        return whole(self, X)

    monkeypatch.setattr(BayesianSMM, "posterior", posterior)
    TopicClassifier(embedder, kind=kind).fit(*train)
    (n,) = inferred
    # Texts of the same words and label are one document.
    assert 50 <= n <= 60
