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


@pytest.mark.parametrize("kind", ["glc", "glcu", "lr"])
def test_loading_gives_the_same_probabilities(setting, tmp_path, kind):
    model, corpus, labels = setting
    topics = CountsClassifier.fit(model, corpus.train.counts, labels, kind=kind)
    topics.save(tmp_path / "clf")
    back = CountsClassifier.load(tmp_path / "clf")
    q = back.model.posterior(corpus.test.counts)
    np.testing.assert_array_equal(back.classes_, topics.classes_)
    np.testing.assert_allclose(
        back.predict_log_proba(q), topics.predict_log_proba(q), rtol=1e-12
    )


def test_counts_and_their_posterior_train_the_same(setting):
    model, corpus, labels = setting
    one = CountsClassifier.fit(model, corpus.train.counts, labels)
    q = model.posterior(corpus.train.counts)
    other = CountsClassifier.fit(model, q, labels)
    np.testing.assert_array_equal(one.classifier.means_, other.classifier.means_)


def test_unknown_kinds_are_refused(setting):
    model, corpus, labels = setting
    with pytest.raises(InputError, match="one of glc, glcu, lr, got 'svm'"):
        CountsClassifier.fit(model, corpus.train.counts, labels, kind="svm")


def test_a_damaged_classifier_is_one_sentence(setting, tmp_path):
    model, corpus, labels = setting
    folder = tmp_path / "clf"
    CountsClassifier.fit(model, corpus.train.counts, labels).save(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["classifier"]["parameters"]["uncertainty"] = "rows"
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(InputError, match="config.json is damaged: .*'uncertainty'"):
        CountsClassifier.load(folder)
