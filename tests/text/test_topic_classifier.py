from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from docsigma import (
    BayesianSMM,
    DocumentEmbedder,
    InputError,
    TopicClassifier,
    read_documents,
)
from docsigma.classifiers._folds import held_out_share
from running import succeed

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def embedder():
    return DocumentEmbedder(8, random_state=0, device="cpu")


@pytest.fixture(scope="module")
def support():
    return read_documents(EXAMPLES / "support.csv")


@pytest.fixture(scope="module")
def new():
    return read_documents(EXAMPLES / "new.csv")


@pytest.fixture(scope="module")
def topics(support):
    return TopicClassifier(embedder()).fit(support.texts, support.labels)


def test_topics_are_learned_from_texts(topics, new):
    proba = topics.predict_proba(new.texts)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    # Four teams; tickets that say nothing of theirs are a fifth (0.8 is their limit).
    right = topics.predict(new.texts) == np.array(new.labels)
    assert right.mean() > 0.7
    assert topics.score(new.texts, new.labels) == right.mean()
    # What it is surest of it knows better than the rest.
    order = proba.max(axis=1).argsort()
    assert right[order[100:]].mean() > right[order[:100]].mean()
    q = topics.posterior([*new.texts, "zzzz qqqq"])
    unknown = q.total_variance[-1]
    assert (q.total_variance[:-1] < unknown).all()


@pytest.mark.parametrize("missing", [None, np.nan, "", "  ", pd.NA, -1])
def test_texts_without_a_label_teach_the_words_only(support, new, missing):
    few = read_documents(EXAMPLES / "few.csv")
    labels = [missing if label is None else label for label in few.labels]
    made = TopicClassifier(embedder(), kind="glcu").fit(few.texts, labels)
    n_documents = made.embedder_.model_.trained_on_["n_documents"]
    assert n_documents == len(support)
    rows = [row for row, label in enumerate(few.labels) if label is not None]
    assert len(rows) == 20
    alone = TopicClassifier(made.embedder_, kind="glcu")
    alone.fit([few.texts[row] for row in rows], [few.labels[row] for row in rows])
    np.testing.assert_allclose(
        made.predict_proba(new.texts), alone.predict_proba(new.texts), atol=1e-6
    )
    assert made.score(new.texts, new.labels) > 0.6
    # What has no label is not scored.
    assert made.score(few.texts, labels) == alone.score(
        [few.texts[row] for row in rows], [few.labels[row] for row in rows]
    )


@pytest.mark.parametrize("kind", ["hybrid", "evidence"])
def test_some_kinds_learn_from_texts_without_a_label(topics, new, kind):
    few = read_documents(EXAMPLES / "few.csv")
    made = TopicClassifier(topics.embedder_, kind=kind).fit(few.texts, few.labels)
    assert made.classes_.tolist() == topics.classes_.tolist()
    assert made.score(new.texts, new.labels) > 0.6


def test_a_prediction_can_be_explained(topics):
    (why,) = topics.explain(["The router restarts and the line is dead."])
    assert why.label == "internet"
    assert {"router", "line"} & {word for word, _ in why.words[:4]}
    vague, plain = topics.predict_entropy(["Please help.", "The router restarts."])
    assert vague > plain


def test_a_fitted_embedder_is_used_as_it_is(support, new):
    fitted = embedder().fit(support.texts)
    made = TopicClassifier(fitted).fit(support.texts[:100], support.labels[:100])
    assert made.embedder_ is fitted
    assert clone(made).fit(support.texts, support.labels).embedder_ is not fitted


@pytest.mark.parametrize("column", [list, pd.Series, pa.array, np.array])
def test_columns_of_every_kind(topics, support, column):
    made = TopicClassifier(topics.embedder_)
    made.fit(column(support.texts), column(support.labels))
    given = column(support.texts[:3])
    expected = topics.predict_proba(support.texts[:3])
    np.testing.assert_allclose(made.predict_proba(given), expected, atol=1e-9)


def test_labels_may_be_numbers(topics, support):
    codes = pd.Categorical(support.labels).codes
    made = TopicClassifier(topics.embedder_).fit(support.texts, codes)
    assert made.predict(support.texts[:5]).dtype.kind == "i"


def test_it_works_with_cross_validation(support):
    quick = DocumentEmbedder(3, model=BayesianSMM(max_iter=5), random_state=0)
    made = TopicClassifier(quick, kind="lr")
    scores = cross_val_score(made, support.texts, support.labels, cv=2)
    assert scores.min() > 0.3


def test_what_is_saved_is_loaded_here_and_by_the_command_line(
    topics, new, tmp_path, capsys
):
    topics.save(tmp_path / "clf")
    again = TopicClassifier.load(tmp_path / "clf")
    expected = topics.predict_proba(new.texts)
    np.testing.assert_allclose(again.predict_proba(new.texts), expected, atol=1e-9)
    args = ("classifier", "predict", tmp_path / "clf", EXAMPLES / "new.csv")
    succeed(capsys, *args, "--out", tmp_path / "p.csv")
    table = pd.read_csv(tmp_path / "p.csv")
    assert table["predicted"].tolist() == topics.predict(new.texts).tolist()


def test_folders_of_the_command_line_are_loaded(support, tmp_path, capsys):
    model, clf = tmp_path / "m", tmp_path / "c"
    file = EXAMPLES / "support.csv"
    succeed(capsys, "fit", file, "--out", model, "--components", 3, "--max-iter", 3)
    succeed(capsys, "classifier", "fit", model, file, "--out", clf)
    assert TopicClassifier.load(clf).predict(support.texts[:2]).shape == (2,)


def test_counts_and_gaussians_are_refused(topics, support):
    model = topics.embedder_.model_
    counts = model.vocabulary_.count(support.texts).counts
    with pytest.raises(InputError, match="column of strings"):
        topics.predict_proba(counts)
    with pytest.raises(InputError, match="column of strings"):
        topics.predict_proba(model.posterior(counts))


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["a"], "400 texts but 1 labels"),
        ("internet", "list or a column of labels, got str"),
        ([None] * 400, "none of the 400 texts has a label"),
        (["a"] * 400, "2 classes"),
        ([("a", "b")] * 400, "row 0 of `y` must be one label, .*, got tuple"),
        (["a"] * 399 + [{"b"}], "row 399 of `y` must be one label, .*, got set"),
        (["a", 1] * 200, "strings and numbers as labels"),
    ],
)
def test_labels_that_do_not_fit_are_refused(topics, support, labels, sentence):
    with pytest.raises(InputError, match=sentence):
        TopicClassifier(topics.embedder_).fit(support.texts, labels)


def test_one_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        TopicClassifier().predict(["sun"])


def test_a_text_without_known_words_may_be_anything(topics, support):
    topics.calibrate(support.texts, support.labels)
    assert topics.predict_sets(["", "zzz qqq"]) == [list(topics.classes_)] * 2


def test_cut_copies_of_calibration_texts_stand_for_short_ones(topics, support):
    held_out = topics.calibrate(support.texts, support.labels).classifier_.guarantees
    assert len(held_out) == len(support.texts)
    assert held_out.is_cut.sum() > 0
    cut, whole = held_out.is_cut == 1, held_out.is_cut == 0
    assert held_out.lengths[cut].mean() < held_out.lengths[whole].mean()
    # They say less, so that sets of short texts are larger.
    assert held_out.true[cut].mean() < held_out.true[whole].mean()


def test_triage_shows_the_doubtful_with_a_reason(topics, support, tmp_path):
    topics.calibrate(support.texts, support.labels)
    texts = [*support.texts[:30], "", "zzz"]
    found = topics.triage(texts, top=5)
    assert len(found.rows) == 5
    assert found.n_rest == 27
    # Of equal texts one stands for all.
    twice = topics.triage(texts + texts, top=5)
    assert [(one.text, one.n_equal) for one in twice.rows] == [
        (one.text, 2 * one.n_equal) for one in found.rows
    ]
    assert twice.n_rest == 2 * found.n_rest
    proba = topics.predict_proba(texts)
    rest = np.setdiff1d(np.arange(32), [one.row for one in found.rows])
    expected = (1 - proba.max(axis=1))[rest].sum()
    assert found.expected_wrong == pytest.approx(expected)
    for one in found.rows:
        assert one.text == texts[one.row]
        order = np.argsort(-proba[one.row], kind="stable")
        assert [one.predicted, one.second] == list(topics.classes_[order[:2]])
        assert one.probability == pytest.approx(proba[one.row].max())
        assert one.reason in ("unknown", "says too little", "torn between")
    reasons = {one.row: one.reason for one in topics.triage(texts, top=32).rows}
    assert reasons[30] == "says too little"
    assert reasons[31] == "unknown"
    # Nothing that is left is less certain than the threshold of the risk.
    safe = topics.triage(texts, risk=0.3)
    left = np.setdiff1d(np.arange(32), [one.row for one in safe.rows])
    assert (proba[left].max(axis=1) >= topics.reject(0.3)).all()
    for wrong in ({}, {"top": 1, "risk": 0.1}):
        with pytest.raises(InputError, match="one of `top` and `risk`, not both"):
            topics.triage(texts, **wrong)
    for top in (0, 1.5):
        with pytest.raises(InputError, match=f"whole number, at least 1, got {top}"):
            topics.triage(texts, top=top)


def test_labels_and_options_that_do_not_fit_get_one_sentence(topics, support):
    texts = support.texts[:3]
    with pytest.raises(InputError, match="`y` has the label 'z', which is none of the"):
        topics.calibrate(texts, ["z"] * 3)
    for reject in ("x", -1):
        with pytest.raises(InputError, match="`reject` must be a probability"):
            topics.predict(texts, reject=reject)
    name = topics.classes_[0]
    with pytest.raises(InputError, match=f"`unknown` is {name}, which is one of the"):
        topics.predict(texts, unknown=name)


def test_the_next_to_label_are_those_without_a_label(topics, support):
    texts = [*support.texts[:60], "", "zzz"]
    labels = [*support.labels[:20], *[None] * 42]
    rows = topics.next_to_label(texts, 5, labels)
    assert len(set(rows)) == 5
    # Not those that have a label or no known word.
    assert rows.min() >= 20
    assert rows.max() < 60
    assert len(topics.next_to_label(texts, 3)) == 3
    with pytest.raises(InputError, match="`n` must be at least 1, got 0"):
        topics.next_to_label(texts, 0)
    with pytest.raises(InputError, match="`n` is 63, but there are 62 texts"):
        topics.next_to_label(texts, 63)
    with pytest.raises(InputError, match="62 texts but 1 labels"):
        topics.next_to_label(texts, 1, ["internet"])


def held_out_of(topics):
    return len(topics.classifier_.guarantees)


def test_fit_holds_out_the_texts_that_it_calibrates_on(support):
    embedder = DocumentEmbedder(5, random_state=0, device="cpu")
    texts, labels = support.texts[:200], support.labels[:200]
    topics = TopicClassifier(embedder, calibration=0.2)
    # Copies, with a label or without one, are on one side.
    topics.fit([*texts, *texts[:50]], [*labels, *labels[:25], *[None] * 25])
    n_rest = topics.embedder_.model_.trained_on_["n_documents"]
    assert 30 <= held_out_of(topics) <= 45
    assert held_out_of(topics) < 250 - n_rest <= held_out_of(topics) + 25
    assert not hasattr(embedder, "model_")
    assert len(topics.predict_sets(texts[:3])) == 3
    again = clone(topics).fit(texts, labels)
    assert held_out_of(again) == 40
    groups = np.arange(200) // 20
    assert held_out_of(clone(topics).fit(texts, labels, groups=groups)) == 40
    with pytest.raises(InputError, match="needs an `embedder` that is not fitted"):
        TopicClassifier(topics.embedder_, calibration=0.2).fit(texts, labels)
    with pytest.raises(
        InputError, match="`calibration`=0.001 holds out none of the 20"
    ):
        TopicClassifier(embedder, calibration=0.001).fit(texts, labels)


def test_groups_and_classes_decide_what_can_be_held_out():
    codes = np.array([0, 0, 0, 0, 1, 1, 1, 2, -1, -1])
    groups = np.array(list("aabbccddab"))
    for share in (0.3, 0.5, 0.99):
        held = held_out_share(codes, share, groups)
        assert 0 < held[codes >= 0].sum() <= 8 * share
        for group in "abcd":
            assert len(set(held[groups == group])) == 1
        assert set(codes[(codes >= 0) & ~held]) == {0, 1, 2}
    held = held_out_share(codes, 0.25, np.arange(10), np.arange(10))
    # The latest labelled ones, but not the only one of its class.
    assert np.flatnonzero(held).tolist() == [6]
