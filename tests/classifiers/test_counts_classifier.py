from __future__ import annotations

import json

import numpy as np
import pytest

from docsigma import BayesianSMM, InputError, load_corpus
from docsigma.classifiers import CountsClassifier


@pytest.fixture(scope="module")
def setting():
    corpus = load_corpus("synthetic", n_train=200)
    labels = np.where(corpus.truth.train_embeddings[:, 0] > 0, "up", "down")
    model = BayesianSMM(4, max_iter=60, learning_rate=0.05, random_state=0)
    return model.fit(corpus.train.counts), corpus, labels


@pytest.mark.parametrize("kind", ["hybrid", "evidence", "glc", "glcu", "lr"])
def test_loading_gives_the_same_probabilities(setting, tmp_path, kind):
    model, corpus, labels = setting
    topics = CountsClassifier.fit(model, corpus.train.counts, labels, kind=kind)
    topics.save(tmp_path / "clf")
    back = CountsClassifier.load(tmp_path / "clf")
    counts = corpus.test.counts
    q = back.embed(counts)
    np.testing.assert_array_equal(back.classes_, topics.classes_)
    expected = topics.predict_log_proba(q, counts)
    np.testing.assert_allclose(back.predict_log_proba(q, counts), expected, rtol=1e-12)
    np.testing.assert_allclose(
        back.predict_uncertainty(q, counts).typicality,
        topics.predict_uncertainty(q, counts).typicality,
        rtol=1e-12,
    )


def test_prediction_sets_are_kept(setting, tmp_path):
    model, corpus, labels = setting
    for kind in ("hybrid", "glc"):
        topics = CountsClassifier.fit(model, corpus.train.counts, labels, kind=kind)
        if kind == "glc":
            assert len(topics.calibration) == 0
            topics.calibrate(corpus.train.counts, labels)
        topics.save(tmp_path / kind)
        back = CountsClassifier.load(tmp_path / kind)
        thresholds = topics.calibration.thresholds(0.9)
        np.testing.assert_array_equal(back.calibration.thresholds(0.9), thresholds)


def test_counts_and_their_posterior_train_the_same(setting):
    model, corpus, labels = setting
    one = CountsClassifier.fit(model, corpus.train.counts, labels, kind="glcu")
    q = model.posterior(corpus.train.counts)
    other = CountsClassifier.fit(model, q, labels, kind="glcu")
    np.testing.assert_array_equal(one.classifier.means_, other.classifier.means_)


def test_unknown_kinds_are_refused(setting):
    model, corpus, labels = setting
    with pytest.raises(InputError, match="hybrid, evidence, glcu, glc, lr, got 'svm'"):
        CountsClassifier.fit(model, corpus.train.counts, labels, kind="svm")


def test_a_damaged_classifier_is_one_sentence(setting, tmp_path):
    model, corpus, labels = setting
    folder = tmp_path / "clf"
    CountsClassifier.fit(model, corpus.train.counts, labels, kind="glcu").save(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["classifier"]["parameters"]["uncertainty"] = "rows"
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(InputError, match="config.json is damaged: .*'uncertainty'"):
        CountsClassifier.load(folder)


def test_the_turned_model_scores_as_the_full_covariance_does(setting):
    model, corpus, labels = setting
    counts, new = corpus.train.counts, corpus.test.counts
    turned = CountsClassifier.fit(model, counts, labels, kind="evidence")
    q = model.posterior(counts)
    full = CountsClassifier.fit(model, q, labels, kind="evidence")
    np.testing.assert_allclose(turned.axes @ turned.axes.T, np.eye(4), atol=1e-12)
    assert full.axes is None
    one = turned.predict_log_proba(turned.embed(new))
    other = full.predict_log_proba(full.embed(new))
    truth = corpus.truth.test_embeddings[:, 0] > 0
    codes = np.searchsorted(["down", "up"], np.where(truth, "up", "down"))
    losses = [-log[np.arange(len(codes)), codes] for log in (one, other)]
    # Two approximations of one likelihood: alike within two standard errors.
    difference = losses[0] - losses[1]
    assert abs(difference.mean()) < 0.02 + 2 * difference.std() / len(codes) ** 0.5


def test_documents_without_label_take_part(setting):
    model, corpus, labels = setting
    some = labels.astype(object)
    some[40:] = None
    topics = CountsClassifier.fit(model, corpus.train.counts, some, kind="evidence")
    assert topics.classes_.tolist() == ["down", "up"]
    assert topics.classifier.unlabelled_weight_ in (0.0, 0.03, 0.1, 0.3, 1.0)
