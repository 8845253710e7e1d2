from __future__ import annotations

import numpy as np
import pytest

from docsigma import (
    BayesianSMM,
    GaussianLinearClassifier,
    InputError,
    UncertainGaussianClassifier,
    load_corpus,
)
from docsigma_paper.early_stopping import EarlyStopping, cross_validate


@pytest.fixture(scope="module")
def setting():
    corpus = load_corpus("synthetic", n_train=200)
    labels = np.where(corpus.truth.train_embeddings[:, 0] > 0, "up", "down")
    return corpus.train.counts, labels


def model(max_iter):
    # Stopping early looks at many passes, and at models of shorter trainings.
    return BayesianSMM(
        3, solver="paper", max_iter=max_iter, learning_rate=0.05, random_state=0
    )


def test_the_curve_is_kept_and_the_best_model_is_its_best_point(setting):
    counts, labels = setting
    stop = EarlyStopping(counts, labels, every=20)
    model(80).fit(counts, callback=stop)
    assert [point.epoch for point in stop.curve] == [20, 40, 60, 80]
    least = min(stop.curve, key=lambda point: point.cross_entropy)
    assert stop.best == least
    assert stop.best_model.n_iter_ == least.epoch
    assert stop.curve[-1].accuracy > 60
    again = model(least.epoch).fit(counts)
    np.testing.assert_array_equal(stop.best_model.components_, again.components_)
    assert stop.rows()[0]["epoch"] == 20


def test_patience_ends_a_training_that_gets_no_better(setting):
    counts, labels = setting
    random = np.random.default_rng(0).permutation(labels)
    stop = EarlyStopping(counts, random, every=2, patience=2, criterion="accuracy")
    fitted = model(400).fit(counts, callback=stop)
    assert fitted.n_iter_ < 400
    assert len(stop.curve) - 1 - stop.curve.index(stop.best) == 2


def test_any_classifier_of_means_will_do(setting):
    counts, labels = setting
    stop = EarlyStopping(
        counts, labels, GaussianLinearClassifier(), variance=False, every=10
    )
    model(10).fit(counts, callback=stop)
    assert len(stop.curve) == 1


def test_a_given_glcu_sees_the_uncertainties(setting):
    counts, labels = setting
    stop = EarlyStopping(
        counts, labels, UncertainGaussianClassifier(tol=1e-3), every=10
    )
    model(10).fit(counts, callback=stop)
    q = stop.best_model.posterior(counts)
    seen = cross_validate(
        np.hstack([q.mean, q.variance]),
        labels,
        UncertainGaussianClassifier(tol=1e-3, layout="mean_variance"),
    )
    exact = cross_validate(q.mean, labels, UncertainGaussianClassifier())
    assert stop.best.cross_entropy == pytest.approx(seen.cross_entropy, rel=1e-9)
    assert abs(stop.best.cross_entropy - exact.cross_entropy) > 1e-4
    with pytest.raises(ValueError, match=r"\[199, 200\]"):
        cross_validate(q[:199], labels, UncertainGaussianClassifier())


def test_cross_validation_judges_documents_it_has_not_seen():
    # Labels that say nothing: accuracy is that of guessing, 50 % +- 2.2 % at
    # 500 documents. Five standard errors: fails by chance with 6e-7.
    random = np.random.default_rng(0)
    features = random.standard_normal((500, 20))
    labels = random.integers(0, 2, 500)
    seen = cross_validate(features, labels, GaussianLinearClassifier())
    assert seen.accuracy == pytest.approx(50, abs=11)
    assert seen.cross_entropy > np.log(2)


def test_bad_arguments_get_one_sentence(setting):
    counts, labels = setting
    with pytest.raises(InputError, match="there are 3 labels for 200 documents"):
        EarlyStopping(counts, labels[:3])
    with pytest.raises(InputError, match="`criterion` must be"):
        EarlyStopping(counts, labels, criterion="f1")
    with pytest.raises(InputError, match="`every` must be at least 1, got 0"):
        EarlyStopping(counts, labels, every=0)
    with pytest.raises(InputError, match="the smallest of 1"):
        cross_validate(np.zeros((3, 1)), ["a", "a", "b"], GaussianLinearClassifier())
