from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils._param_validation import InvalidParameterError

from docsigma import BayesianSMM, InputError, load_corpus
from docsigma.classifiers import (
    CountsClassifier,
    EvidenceClassifier,
    GaussianLinearClassifier,
    UncertainGaussianClassifier,
)
from docsigma_paper import SMM

KINDS = ["hybrid", "evidence", "glcu", "glc", "lr"]
EPS = np.finfo(np.float64).eps


@pytest.fixture(scope="module")
def setting():
    corpus = load_corpus("synthetic", n_train=200)
    labels = np.where(corpus.truth.train_embeddings[:, 0] > 0, "up", "down")
    model = BayesianSMM(4, max_iter=60, learning_rate=0.05, random_state=0)
    return model.fit(corpus.train.counts), corpus, labels


@pytest.fixture(scope="module")
def fitted(setting):
    """A fitted classifier of each kind."""
    model, corpus, labels = setting
    return {
        kind: CountsClassifier(model, kind).fit(corpus.train.counts, labels)
        for kind in KINDS
    }


@pytest.mark.parametrize("kind", KINDS)
def test_loading_gives_the_same_probabilities(fitted, setting, tmp_path, kind):
    _, corpus, _ = setting
    fitted[kind].save(tmp_path / "clf")
    back = CountsClassifier.load(tmp_path / "clf")
    counts = corpus.test.counts
    np.testing.assert_array_equal(back.classes_, fitted[kind].classes_)
    assert back.kind == kind
    for method in ("predict_log_proba", "predict", "predict_entropy"):
        expected = getattr(fitted[kind], method)(counts)
        np.testing.assert_array_equal(getattr(back, method)(counts), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_pickles_give_the_same_probabilities(fitted, setting, kind):
    counts = setting[1].test.counts
    again = pickle.loads(pickle.dumps(fitted[kind]))
    expected = fitted[kind].predict_proba(counts)
    np.testing.assert_array_equal(again.predict_proba(counts), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_promises_are_kept_with_the_classifier(fitted, setting, tmp_path, kind):
    _, corpus, labels = setting
    made, counts = pickle.loads(pickle.dumps(fitted[kind])), corpus.train.counts
    assert not made.is_calibrated
    for work in (made.predict_sets, made.unknown_p_value):
        with pytest.raises(InputError, match=f"{kind}.* promises nothing yet"):
            work(counts)
    made.calibrate(counts, labels).save(tmp_path / "clf")
    back = CountsClassifier.load(tmp_path / "clf")
    test = corpus.test.counts
    np.testing.assert_array_equal(back.predict_sets(test), made.predict_sets(test))
    np.testing.assert_array_equal(
        back.unknown_p_value(test), made.unknown_p_value(test)
    )
    assert back.reject(0.3, 0.8) == made.reject(0.3, 0.8)
    # Documents of the calibration have the true label in that share, and no less.
    own = made.predict_sets(counts)
    codes = np.searchsorted(made.classes_, labels)
    assert own[np.arange(len(codes)), codes].mean() >= 0.9
    p_values = made.unknown_p_value(counts)
    assert p_values.min() > 0
    for level in (0.1, 0.5):
        assert (p_values <= level).mean() <= level
    named = made.predict(counts, unknown="none of them", level=0.5)
    np.testing.assert_array_equal(named == "none of them", p_values <= 0.5)
    with pytest.raises(InputError, match="`level` must be between 0 and 1, got 2"):
        made.predict(counts, unknown="none of them", level=2)
    with pytest.raises(InputError, match="'elsewhere'"):
        made.calibrate(counts, ["elsewhere"] * len(labels))


def test_a_folder_that_exists_is_overwritten_on_request_only(fitted, tmp_path):
    folder = tmp_path / "clf"
    fitted["glc"].save(folder)
    with pytest.raises(InputError, match="clf exists already"):
        fitted["lr"].save(folder)
    assert CountsClassifier.load(folder).kind == "glc"
    fitted["lr"].save(folder, overwrite=True)
    assert CountsClassifier.load(folder).kind == "lr"


def test_a_classifier_with_its_own_settings_is_saved_with_them(setting, tmp_path):
    model, corpus, labels = setting
    own = EvidenceClassifier(priors=[0.3, 0.7], temperature=False)
    made = CountsClassifier(model, own).fit(corpus.train.counts, labels)
    made.save(tmp_path / "clf")
    back = CountsClassifier.load(tmp_path / "clf")
    assert back.classifier_.priors == [0.3, 0.7]
    assert not back.classifier_.temperature
    counts = corpus.test.counts
    np.testing.assert_array_equal(
        back.predict_proba(counts), made.predict_proba(counts)
    )


def test_embedded_documents_are_taken_for_their_counts(fitted, setting):
    counts = setting[1].test.counts
    for made in fitted.values():
        documents = made.embed(counts)
        expected = made.predict_proba(counts)
        np.testing.assert_array_equal(made.predict_proba(documents), expected)


def test_it_is_the_classifier_on_what_the_model_gives(fitted, setting):
    model, corpus, labels = setting
    q = model.posterior(corpus.train.counts)
    alone = UncertainGaussianClassifier().fit(q, labels)
    # The documents come in the order of their classes.
    np.testing.assert_allclose(fitted["glcu"].classifier_.means_, alone.means_)
    by_means = GaussianLinearClassifier().fit(q.mean, labels)
    np.testing.assert_allclose(fitted["glc"].classifier_.means_, by_means.means_)


def test_unknown_kinds_are_refused(setting):
    model, corpus, labels = setting
    with pytest.raises(InputError, match="hybrid, evidence, glcu, glc, lr, got 'svm'"):
        CountsClassifier(model, "svm").fit(corpus.train.counts, labels)


@pytest.mark.parametrize("damage", ["parameter", "class", "kind", "part"])
def test_a_damaged_folder_is_one_sentence(fitted, tmp_path, damage):
    folder = tmp_path / "clf"
    fitted["glcu"].save(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    if damage == "parameter":
        config["classifier"]["parameters"]["uncertainty"] = "rows"
    elif damage == "kind":
        config["classifier"]["kind"] = "svm"
    elif damage == "class":
        del config["classifier"]["classes"]
    else:
        del config["embedding"]
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(InputError, match="config.json is damaged: "):
        CountsClassifier.load(folder)


@pytest.mark.parametrize("kind", ["hybrid", "evidence"])
def test_documents_without_label_take_part(setting, fitted, kind):
    model, corpus, labels = setting
    some = labels.astype(object)
    some[40:] = None
    made = CountsClassifier(model, kind).fit(corpus.train.counts, some)
    assert made.classes_.tolist() == ["down", "up"]
    # Naming the larger class comes as far once in a million.
    assert np.mean(made.predict(corpus.train.counts[40:]) == labels[40:]) > 0.7
    # Class priors are those of the labels.
    shares = [np.mean(labels[:40] == name) for name in made.classes_]
    np.testing.assert_allclose(made.classifier_.class_prior_, shares)


@pytest.mark.parametrize("kind", ["glcu", "glc", "lr"])
def test_other_kinds_leave_documents_without_label_out(setting, kind):
    model, corpus, labels = setting
    some = labels.astype(object)
    some[40:] = None
    one = CountsClassifier(model, kind).fit(corpus.train.counts, some)
    other = CountsClassifier(model, kind).fit(corpus.train.counts[:40], labels[:40])
    counts = corpus.test.counts
    np.testing.assert_array_equal(
        one.predict_proba(counts), other.predict_proba(counts)
    )


@pytest.mark.parametrize("column", [list, np.array, pd.Series])
@pytest.mark.parametrize("missing", [-1, None, np.nan, pd.NA])
def test_labels_may_be_integers_some_of_which_are_missing(setting, column, missing):
    model, corpus, labels = setting
    codes = (labels == "up").astype(int)
    rows = np.arange(0, 200, 2)
    alone = CountsClassifier(model, "glc").fit(corpus.train.counts[rows], codes[rows])
    some = [int(code) if row % 2 == 0 else missing for row, code in enumerate(codes)]
    made = CountsClassifier(model, "glc").fit(corpus.train.counts, column(some))
    assert [int(label) for label in made.classes_] == [0, 1]
    counts = corpus.test.counts
    assert made.predict(counts).dtype.kind in "if"
    np.testing.assert_array_equal(
        made.predict_proba(counts), alone.predict_proba(counts)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_minus_one_is_a_class_where_it_is_declared_one(setting, kind):
    model, corpus, labels = setting
    codes = np.arange(200) % 2 + (labels == "up") - 1
    made = CountsClassifier(model, kind, missing_label=None)
    made.fit(corpus.train.counts, codes)
    assert made.classes_.tolist() == [-1, 0, 1]
    usual = CountsClassifier(model, kind).fit(corpus.train.counts, codes)
    assert usual.classes_.tolist() == [0, 1]
    strings = CountsClassifier(model, kind, missing_label="-1")
    strings.fit(corpus.train.counts, codes.astype(str))
    assert strings.classes_.tolist() == ["0", "1"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_that_stands_for_none_is_kept_in_the_folder(setting, tmp_path, kind):
    model, corpus, labels = setting
    names = np.where(np.arange(200) % 3, labels, "?")
    made = CountsClassifier(model, kind, missing_label="?")
    made.fit(corpus.train.counts, names).save(tmp_path / "clf")
    back = CountsClassifier.load(tmp_path / "clf")
    assert back.classes_.tolist() == ["down", "up"]
    assert back.missing_label == "?"


def test_no_label_of_any_library_is_no_label_and_minus_one_a_class(setting, tmp_path):
    model, corpus, labels = setting
    names = np.where(labels == "up", -1, 1)
    for nothing in (np.nan, pd.NA):
        made = CountsClassifier(model, "glc", missing_label=nothing)
        made.fit(corpus.train.counts, pd.array([pd.NA, *names[1:]], dtype="Int64"))
        made.save(tmp_path / "clf", overwrite=True)
        back = CountsClassifier.load(tmp_path / "clf")
        assert back.classes_.tolist() == [-1, 1]
        assert back.missing_label is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_is_the_accuracy(fitted, setting, kind):
    _, corpus, labels = setting
    made, counts = fitted[kind], corpus.train.counts
    right = accuracy_score(labels, made.predict(counts))
    assert made.score(counts, labels) == right
    documents = made.embed(counts)
    assert made.classifier_.score(made._input(documents), labels) == right


@pytest.mark.parametrize("kind", KINDS)
def test_the_entropy_is_that_of_the_probabilities(fitted, setting, kind):
    made, counts = fitted[kind], setting[1].test.counts
    log_proba = made.predict_log_proba(counts)
    entropy = -(np.exp(log_proba) * log_proba).sum(axis=1)
    np.testing.assert_allclose(made.predict_entropy(counts), entropy, atol=10 * EPS)


@pytest.mark.parametrize("kind", KINDS)
def test_documents_without_words_may_be_anything(fitted, setting, kind):
    _, corpus, labels = setting
    made = fitted[kind]
    empty = sp.csr_matrix((2, corpus.test.counts.shape[1]), dtype=np.float32)
    made = pickle.loads(pickle.dumps(made)).calibrate(corpus.train.counts, labels)
    assert made.predict_sets(empty).all()
    np.testing.assert_array_equal(made.unknown_p_value(empty), 1.0)


def test_rejected_documents_have_no_label(fitted, setting):
    made, counts = fitted["hybrid"], setting[1].test.counts
    top = made.predict_proba(counts).max(axis=1)
    threshold = np.median(top)
    labels = made.predict(counts, reject=threshold)
    np.testing.assert_array_equal([one is None for one in labels], top < threshold)
    assert None not in made.predict(counts)


def test_only_the_hybrid_explains_itself(fitted, setting):
    counts = setting[1].test.counts
    assert len(fitted["hybrid"].explain(counts)) == 100
    with pytest.raises(InputError, match="only the hybrid explains .* this is glc"):
        fitted["glc"].explain(counts)


@pytest.mark.parametrize("covariance", ["SMM", "point"])
@pytest.mark.parametrize("kind", KINDS)
def test_models_of_points(setting, tmp_path, kind, covariance):
    _, corpus, labels = setting
    model = BayesianSMM(4, max_iter=20, random_state=0, covariance="point")
    if covariance == "SMM":
        model = SMM(4, max_iter=20, random_state=0)
    made, counts = CountsClassifier(model, kind), corpus.test.counts
    if kind in ("evidence", "glcu"):
        with pytest.raises(
            InputError, match=f"{kind} needs Gaussians.*: use hybrid, glc or lr"
        ):
            made.fit(corpus.train.counts, labels)
        return
    made.fit(corpus.train.counts, labels)
    made.save(tmp_path / "clf")
    back = CountsClassifier.load(tmp_path / "clf")
    np.testing.assert_array_equal(
        back.predict_proba(counts), made.predict_proba(counts)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_two_is_two_copies_and_one_of_zero_is_absence(setting, kind):
    model, corpus, labels = setting
    some = labels.astype(object)
    some[100:] = None
    weights = np.random.default_rng(0).integers(0, 3, 200)
    copies = np.repeat(np.arange(200), weights)
    counts = corpus.train.counts
    one = CountsClassifier(model, kind).fit(counts, some, weights)
    other = CountsClassifier(model, kind).fit(counts[copies], some[copies])
    # Sums over documents in another order, through 20 steps of EM or 300 of L-BFGS.
    np.testing.assert_allclose(
        one.predict_proba(corpus.test.counts),
        other.predict_proba(corpus.test.counts),
        atol=1e-9,
    )


@pytest.mark.parametrize("kind", ["hybrid", "evidence"])
def test_documents_of_weight_zero_are_absent_and_not_unlabelled(setting, kind):
    model, corpus, labels = setting
    counts, weights = corpus.train.counts, np.ones(200)
    weights[30:] = 0
    one = CountsClassifier(model, kind).fit(counts, labels, weights)
    alone = CountsClassifier(model, kind).fit(counts[:30], labels[:30])
    hidden = np.where(weights > 0, labels, "")
    unlabelled = CountsClassifier(model, kind).fit(counts, hidden)
    new = corpus.test.counts
    np.testing.assert_array_equal(one.predict_proba(new), alone.predict_proba(new))
    assert np.abs(one.predict_proba(new) - unlabelled.predict_proba(new)).max() > 1e-3


def test_a_model_that_is_to_be_fitted_does_not_see_documents_of_weight_zero(setting):
    _, corpus, labels = setting
    model = BayesianSMM(2, max_iter=5, random_state=0)
    weights = np.arange(200) % 2
    made = CountsClassifier(model, "glc").fit(corpus.train.counts, labels, weights)
    assert made.model_.trained_on_["n_documents"] == 100
    assert not hasattr(model, "components_")


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_documents_does_not_matter(fitted, setting, kind):
    model, corpus, labels = setting
    order = np.random.default_rng(1).permutation(200)
    other = CountsClassifier(model, kind)
    other.fit(corpus.train.counts[order], labels[order])
    counts = corpus.test.counts
    np.testing.assert_allclose(
        other.predict_proba(counts), fitted[kind].predict_proba(counts), atol=1e-9
    )


def test_groups_that_do_not_fit_get_one_sentence(setting):
    model, corpus, labels = setting
    some = [None, *labels[1:]]

    def fit(groups):
        made = CountsClassifier(model)
        return made.fit(corpus.train.counts, some, groups=groups)

    with pytest.raises(InputError, match=r"shape \(200,\), got \(3,\)"):
        fit(["a", "b", "c"])
    names = ["a", "b"] * 100
    with pytest.raises(InputError, match="`groups` has no value in row 7"):
        fit([*names[:7], None, *names[8:]])
    # Of a document without label nothing is asked.
    fit([None, *names[1:]])
    # One group leaves nothing to hold out, and so to choose by.
    alone = fit(["a"] * 200)
    assert np.isfinite(alone.predict_log_proba(corpus.test.counts)).all()


def test_groups_are_kept_apart_among_unlabelled_documents(setting):
    model, corpus, labels = setting
    some = labels.astype(object)
    some[::2] = None
    # The labelled documents are one group; what the rest is says nothing.
    groups = np.where(np.arange(200) % 2, "one", np.arange(200).astype(str))
    made = CountsClassifier(model).fit(corpus.train.counts, some, groups=groups)
    assert made.classifier_.cross_entropy_ is None


def test_the_device_and_the_progress_bar_reach_the_classifier(setting):
    _, corpus, labels = setting
    model = BayesianSMM(2, max_iter=2, random_state=0, device="cpu")
    for kind in ("hybrid", "evidence", "glcu"):
        made = CountsClassifier(model, kind).fit(corpus.train.counts, labels)
        assert made.classifier_.device == "cpu"
    made = CountsClassifier(model, verbose=True).fit(corpus.train.counts, labels)
    assert made.classifier_.verbose
    # One that has its own settings keeps them.
    own = EvidenceClassifier(device="auto")
    made = CountsClassifier(model, own).fit(corpus.train.counts, labels)
    assert made.classifier_.device == "auto"


def test_parameters_of_a_default_model_can_be_set(setting):
    _, corpus, labels = setting
    made = CountsClassifier(kind="glc")
    made.set_params(model__n_components=2, model__max_iter=3, model__random_state=0)
    made.fit(corpus.train.counts, labels)
    assert made.model_.n_components == 2
    assert clone(made).get_params()["model__max_iter"] == 3


def test_a_search_calibration_and_cross_validation_of_scikit_learn(setting):
    model, corpus, labels = setting
    counts, new = corpus.train.counts, corpus.test.counts
    made = CountsClassifier(FrozenEstimator(model), "glc")
    # Naming the larger class comes as far once in ten million.
    assert cross_val_score(made, counts, labels, cv=3).mean() > 0.7
    grid = {"kind": ["hybrid", "glc"], "model__n_components": [1, 3]}
    small = CountsClassifier(BayesianSMM(max_iter=5, random_state=0))
    search = GridSearchCV(small, grid, cv=2).fit(counts, labels)
    assert search.best_estimator_.model_.n_components in (1, 3)
    assert search.best_score_ > 0.7
    frozen = FrozenEstimator(made.fit(counts, labels))
    for base in (made, frozen):
        calibrated = CalibratedClassifierCV(base, cv=2).fit(counts, labels)
        proba = calibrated.predict_proba(new)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(frozen.predict_proba(new), made.predict_proba(new))
    again = clone(frozen).fit(counts[:3], labels[:3])
    assert again.score(counts, labels) == made.score(counts, labels)


def test_bad_input_is_one_sentence(setting, fitted):
    model, corpus, labels = setting
    counts = corpus.train.counts
    with pytest.raises(InputError, match="the target y is None: it needs labels"):
        CountsClassifier(model).fit(counts, None)
    with pytest.raises(InputError, match="3 labels, but `X` has 200 documents"):
        CountsClassifier(model).fit(counts, labels[:3])
    with pytest.raises(InputError, match="no label in any of 200 rows: -1, None, NaN"):
        CountsClassifier(model).fit(counts, [None] * 200)
    with pytest.raises(InputError, match="at least 2 classes, got 1 class: a"):
        CountsClassifier(model).fit(counts, ["a"] * 200)
    with pytest.raises(InputError, match="for the hybrid, not for Cross"):
        CountsClassifier(model, "lr").fit(counts, labels, groups=labels)
    with pytest.raises(InputError, match="`times` are for the hybrid, not for Evid"):
        CountsClassifier(model, "evidence").fit(counts, labels, times=labels)
    with pytest.raises(InputError, match="n_features = 1: documents of one word"):
        CountsClassifier().fit(counts[:, :1], labels)
    with pytest.raises(InputError, match="is -1, but that of `kind` is '\\?': give"):
        CountsClassifier(model, EvidenceClassifier(missing_label="?")).fit(
            counts, labels
        )
    for kind in (LogisticRegression(), None):
        with pytest.raises(InvalidParameterError, match="'kind' parameter"):
            CountsClassifier(model, kind).fit(counts, labels)
    with pytest.raises(NotFittedError):
        CountsClassifier(model).predict(counts)
    for made in fitted.values():
        with pytest.raises(ValueError, match="30 features, .* expecting"):
            made.predict(counts[:, :30])
