from __future__ import annotations

import pickle
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from docsigma import BayesianSMM, load_corpus
from docsigma.classifiers import GaussianLinearClassifier, UncertainGaussianClassifier
from docsigma.classifiers import _expectation as expectation_module
from docsigma.classifiers._covariance import floor_covariance
from docsigma.classifiers._labels import TrainingLabels
from docsigma.classifiers._uncertain_documents import UncertainDocuments
from uncertain_draws import draw

# `draw` puts means and variances side by side.
of_columns = partial(UncertainGaussianClassifier, layout="mean_variance")


@pytest.fixture
def data():
    X, y, _, _ = draw(np.random.default_rng(0), 150, 4, 3)
    return X, np.array(["ape", "bee", "cat"])[y]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 60),
    K=st.integers(1, 8),
    n_classes=st.integers(2, 3),
    low=st.sampled_from([1e-8, 1e-3, 0.1]),
    high=st.sampled_from([0.1, 1.0, 100.0]),
    accelerate=st.booleans(),
)
def test_likelihood_rises_in_every_step(seed, n, K, n_classes, low, high, accelerate):
    X, y, _, _ = draw(np.random.default_rng(seed), n, K, n_classes, low, high)
    glcu = of_columns(max_iter=15, tol=0.0, accelerate=accelerate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        glcu.fit(X, y)
    history = glcu.log_likelihood_history_
    assert np.isfinite(history).all()
    assert (np.diff(history) >= 0).all()
    assert np.linalg.eigvalsh(glcu.covariance_)[0] > 0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), K=st.integers(1, 6))
def test_plain_em_step_never_lowers_the_likelihood(seed, K):
    # `fit` drops a step that lowers it, so look at the steps themselves.
    X, y, means, covariance = draw(np.random.default_rng(seed), 40, K, 2)
    documents = UncertainDocuments.from_array(X, exact=False)
    labels = TrainingLabels.check(y, len(y))
    covariance = floor_covariance(covariance, np.ones(K), 1e-6)
    before = -np.inf
    for _ in range(8):
        moments = expectation_module.expectation_step(
            documents, labels, means, covariance, torch.device("cpu")
        )
        assert moments.log_likelihood >= before - 1e-10 * abs(before)
        before = moments.log_likelihood
        means, covariance = moments.em_update()
        covariance = floor_covariance(covariance, np.ones(K), 1e-6)


def test_em_step_is_the_papers(data):
    X, y = data
    nu, variance = X[:, :4], X[:, 4:]
    labels = TrainingLabels.check(y, len(y))
    glc = GaussianLinearClassifier().fit(nu, y)
    M, C = glc.means_, glc.covariance_
    moments = expectation_module.expectation_step(
        UncertainDocuments.from_array(X, exact=False), labels, M, C, torch.device("cpu")
    )
    means, covariance = moments.em_update()
    # The appendix, document by document.
    D = np.linalg.inv(C)
    u = np.empty_like(nu)
    V_inverse = np.zeros((4, 4))
    for d in range(len(nu)):
        gamma = np.diag(1 / variance[d])
        residual = nu[d] - M[labels.codes[d]]
        u[d] = np.linalg.solve(np.eye(4) + C @ gamma, residual)
        V_inverse += np.linalg.inv(D + gamma)
    expected = np.stack([(nu - u)[labels.codes == k].mean(axis=0) for k in range(3)])
    a = u - (nu - expected[labels.codes])
    np.testing.assert_allclose(means, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(covariance, (a.T @ a + V_inverse) / len(nu), rtol=1e-9)


def test_acceleration_ends_where_em_ends(data):
    X, y = data
    fast = of_columns(tol=1e-12, max_iter=500).fit(X, y)
    slow = of_columns(tol=1e-12, max_iter=20_000, accelerate=False)
    slow.fit(X, y)
    assert fast.n_iter_ < slow.n_iter_ / 2
    np.testing.assert_allclose(
        fast.log_likelihood_history_[-1], slow.log_likelihood_history_[-1], rtol=1e-8
    )
    np.testing.assert_allclose(fast.covariance_, slow.covariance_, atol=1e-4)
    np.testing.assert_allclose(fast.means_, slow.means_, atol=1e-4)


def test_converges_at_the_boundary_and_with_unequal_documents():
    # Singular within-class covariance, uncertainties over four decades: plain EM
    # takes thousands of passes.
    rng = np.random.default_rng(8)
    n, K = 400, 12
    y = rng.integers(3, size=n)
    variance = 10 ** rng.uniform(-4, 0, size=(n, 1)) * rng.uniform(0.5, 2, size=(n, K))
    root = 0.1 * rng.normal(size=(K, 3))
    mean = rng.normal(size=(3, K))[y] + rng.normal(size=(n, 3)) @ root.T
    mean += np.sqrt(variance) * rng.normal(size=(n, K))
    glcu = of_columns(max_iter=40).fit(np.hstack([mean, variance]), y)
    assert glcu.converged_
    eigenvalues = np.linalg.eigvalsh(glcu.covariance_)
    assert 0 < eigenvalues[0] < 1e-4
    assert eigenvalues[-3] > 1e-2


@pytest.mark.parametrize("variance", [0.0, 1e-13])
def test_without_uncertainty_it_is_glc(data, variance):
    X, y = data
    X[:, 4:] = variance
    glcu = of_columns().fit(X, y)
    glc = GaussianLinearClassifier().fit(X[:, :4], y)
    only_means = UncertainGaussianClassifier().fit(X[:, :4], y)
    for ours, arrays in ((glcu, X), (only_means, X[:, :4])):
        for name in ("means_", "covariance_", "class_prior_"):
            np.testing.assert_allclose(
                getattr(ours, name), getattr(glc, name), atol=1e-8
            )
        np.testing.assert_allclose(
            ours.predict_log_proba(arrays), glc.predict_log_proba(X[:, :4]), atol=1e-8
        )
        np.testing.assert_allclose(
            ours.log_likelihood(arrays, y), glc.log_likelihood(X[:, :4], y), atol=1e-8
        )


def test_likelihood_equals_scipy(data):
    X, y = data
    glcu = of_columns().fit(X, y)
    codes = np.searchsorted(glcu.classes_, y)
    densities = np.array(
        [
            [
                multivariate_normal(
                    mean, glcu.covariance_ + np.diag(document[4:])
                ).logpdf(document[:4])
                for mean in glcu.means_
            ]
            for document in X
        ]
    )
    own = densities[np.arange(len(y)), codes]
    np.testing.assert_allclose(glcu.log_likelihood(X, y), own, rtol=1e-9)
    np.testing.assert_allclose(glcu.log_likelihood_history_[-1], own.mean(), rtol=1e-9)
    joint = np.exp(densities) * glcu.class_prior_
    np.testing.assert_allclose(glcu.score_samples(X), np.log(joint.sum(axis=1)))
    np.testing.assert_allclose(
        glcu.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), rtol=1e-8
    )


def test_posterior_objects_and_full_covariances(data):
    X, y = data
    mean, variance = X[:, :4], X[:, 4:]
    diagonal = SimpleNamespace(mean=mean, variance=variance, covariance=None)
    full = SimpleNamespace(
        mean=torch.from_numpy(mean),
        covariance=torch.diag_embed(torch.from_numpy(variance)),
    )
    expected = of_columns().fit(X, y)
    for posterior in (diagonal, full):
        glcu = of_columns().fit(posterior, y)
        assert glcu.n_features_in_ == 8
        np.testing.assert_allclose(glcu.covariance_, expected.covariance_, rtol=1e-9)
        np.testing.assert_allclose(
            glcu.predict_log_proba(posterior),
            expected.predict_log_proba(X),
            rtol=1e-7,
            atol=1e-10,
        )
        np.testing.assert_allclose(
            glcu.predict_proba(X), expected.predict_proba(X), atol=1e-9
        )
    means_only = UncertainGaussianClassifier().fit(mean, y)
    glc = GaussianLinearClassifier().fit(mean, y)
    np.testing.assert_array_equal(means_only.covariance_, glc.covariance_)


def test_exact_means_and_posteriors_mix_whatever_the_layout(data):
    X, y = data
    mean = X[:, :4]
    posterior = SimpleNamespace(mean=mean, variance=X[:, 4:])
    zero = np.hstack([mean, np.zeros_like(mean)])
    of_posteriors = UncertainGaussianClassifier().fit(posterior, y)
    of_means = UncertainGaussianClassifier().fit(mean, y)
    for glcu in (of_posteriors, of_means):
        assert glcu.n_features_in_ == 4
        columns = clone(glcu).set_params(layout="mean_variance")
        columns.fit(X if glcu is of_posteriors else zero, y)
        assert columns.n_features_in_ == 8
        # An exact mean is a Gaussian of no spread.
        for documents, array in ((mean, zero), (posterior, X)):
            expected = columns.predict_log_proba(array)
            np.testing.assert_allclose(
                glcu.predict_log_proba(documents), expected, rtol=1e-9, atol=1e-12
            )
        # The layout of later arrays may be named after `fit`, as a model's output.
        glcu.set_params(layout="mean_variance")
        np.testing.assert_allclose(
            glcu.predict_log_proba(X),
            columns.predict_log_proba(X),
            rtol=1e-9,
            atol=1e-12,
        )
    # New classes come either way, too.
    glcu = UncertainGaussianClassifier().fit(posterior, y)
    glcu.add_classes(mean[:5] + 9, ["yak"] * 5)
    np.testing.assert_allclose(glcu.means_[3], mean[:5].mean(axis=0) + 9)
    glcu.add_classes(SimpleNamespace(mean=mean[:5], variance=X[:5, 4:]), ["zebra"] * 5)
    assert glcu.predict(mean).shape == glcu.predict(posterior).shape == (150,)


def test_a_pipeline_names_the_layout_on_both_sides():
    corpus = load_corpus("synthetic", n_train=200)
    labels = np.where(corpus.truth.train_embeddings[:, 0] > 0, "up", "down")
    smm = BayesianSMM(3, max_iter=5, output="mean_variance", random_state=0)
    topics = make_pipeline(smm, of_columns()).fit(corpus.train.counts, labels)
    model = topics[0]
    glcu = UncertainGaussianClassifier()
    glcu.fit(model.posterior(corpus.train.counts), labels)
    np.testing.assert_allclose(
        topics.predict_log_proba(corpus.test.counts),
        glcu.predict_log_proba(model.posterior(corpus.test.counts)),
        rtol=1e-9,
        atol=1e-12,
    )


def test_a_posterior_has_no_names_of_columns(data):
    X, y = data
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    glcu = UncertainGaussianClassifier().fit(frame, y)
    assert glcu.feature_names_in_.tolist() == list("abcd")
    glcu.fit(SimpleNamespace(mean=X[:, :4], variance=X[:, 4:]), y)
    assert not hasattr(glcu, "feature_names_in_")
    glcu.predict(X[:, :4])


def test_correlated_uncertainties():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(40, 3, 3))
    posterior = SimpleNamespace(
        mean=rng.normal(size=(40, 3)), covariance=root @ root.transpose(0, 2, 1)
    )
    y = rng.integers(2, size=40)
    glcu = UncertainGaussianClassifier().fit(posterior, y)
    expected = [
        multivariate_normal(glcu.means_[k], glcu.covariance_ + S).logpdf(x)
        for x, S, k in zip(posterior.mean, posterior.covariance, y, strict=True)
    ]
    np.testing.assert_allclose(glcu.log_likelihood(posterior, y), expected, rtol=1e-9)


def test_order_of_documents_and_blocks_does_not_matter(data, monkeypatch):
    X, y = data
    expected = of_columns().fit(X, y)
    order = np.random.default_rng(2).permutation(len(y))
    monkeypatch.setattr(expectation_module, "_BLOCK_BYTES", 8 * 4 * 4 * 7)
    glcu = of_columns().fit(X[order], y[order])
    np.testing.assert_allclose(glcu.covariance_, expected.covariance_, rtol=1e-9)
    np.testing.assert_allclose(glcu.means_, expected.means_, rtol=1e-9)
    np.testing.assert_allclose(
        glcu.predict_proba(X[order]), expected.predict_proba(X)[order], rtol=1e-8
    )


def test_names_of_classes_do_not_matter(data):
    X, y = data
    expected = of_columns().fit(X, y)
    renamed = np.array([{"ape": 9, "bee": -4, "cat": 2}[name] for name in y])
    glcu = of_columns().fit(X, renamed)
    assert glcu.classes_.tolist() == [-4, 2, 9]
    np.testing.assert_allclose(glcu.means_, expected.means_[[1, 2, 0]], rtol=1e-9)
    np.testing.assert_allclose(
        glcu.predict_proba(X), expected.predict_proba(X)[:, [1, 2, 0]], rtol=1e-8
    )


def test_weights_are_repetitions(data):
    X, y = data
    weights = np.random.default_rng(3).integers(0, 4, size=len(y))
    weighted = of_columns().fit(X, y, weights)
    repeated = of_columns().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.covariance_, repeated.covariance_, rtol=1e-8)
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-8)
    np.testing.assert_allclose(weighted.class_prior_, repeated.class_prior_)


def test_parameters_are_recovered_and_probabilities_calibrated():
    rng = np.random.default_rng(4)
    X, y, means, covariance = draw(rng, 20_000, 5, 4)
    train, test = slice(0, 10_000), slice(10_000, None)
    glcu = of_columns(priors="uniform").fit(X[train], y[train])
    # The error of a mean is about sqrt(0.7 / 2500) = 0.02: 0.1 is 5 standard errors,
    # of a covariance about 0.01. A random seed would fail one time in 10 000.
    np.testing.assert_allclose(glcu.means_, means, atol=0.1)
    np.testing.assert_allclose(glcu.covariance_, covariance, atol=0.06)
    glc = GaussianLinearClassifier().fit(X[train, :5], y[train])
    assert np.abs(glc.covariance_ - covariance).max() > 0.15
    # A calibrated classifier is right as often as it says: the difference has a
    # standard error below 0.5 / sqrt(10 000) = 0.005; 4 of them fail one time in
    # 15 000.
    proba = glcu.predict_proba(X[test])
    correct = proba.argmax(axis=1) == y[test]
    for low, high in ((0.0, 1.01), (0.0, 0.7), (0.7, 1.01)):
        rows = (proba.max(axis=1) >= low) & (proba.max(axis=1) < high)
        error = abs(proba[rows].max(axis=1).mean() - correct[rows].mean())
        assert error < 4 * 0.5 / rows.sum() ** 0.5
    nats = -np.log(proba[np.arange(10_000), y[test]]).mean()
    rows = np.arange(10_000)
    glc_nats = -glc.predict_log_proba(X[test, :5])[rows, y[test]].mean()
    assert nats < glc_nats


def test_uncertainty_takes_certainty_away(data):
    X, y = data
    glcu = of_columns(priors="uniform").fit(X, y)
    document = X[:1].copy()
    document[:, 4:] = 1e12
    np.testing.assert_allclose(glcu.predict_proba(document), 1 / 3, atol=1e-6)


def test_log_probabilities_of_outliers_are_finite(data):
    X, y = data
    glcu = of_columns().fit(X, y)
    far = X.copy()
    far[:, :4] *= 1e12
    log_proba = glcu.predict_log_proba(far)
    assert np.isfinite(log_proba).all()
    assert log_proba.min() < -1e6
    np.testing.assert_allclose(np.exp(log_proba).sum(axis=1), 1)


def test_classes_with_one_document():
    rng = np.random.default_rng(5)
    X = np.hstack([rng.normal(size=(9, 2)), rng.uniform(0.1, 1, size=(9, 2))])
    glcu = of_columns().fit(X, list("aaaabbbbc"))
    np.testing.assert_allclose(glcu.means_[2], X[8, :2])
    alone = of_columns().fit(X, list("abcdefghi"))
    assert np.isfinite(alone.predict_log_proba(X)).all()
    assert np.linalg.eigvalsh(alone.covariance_)[0] > 0


def test_fewer_documents_than_dimensions():
    rng = np.random.default_rng(6)
    X = np.hstack([rng.normal(size=(8, 30)), rng.uniform(0.01, 0.1, size=(8, 30))])
    glcu = of_columns().fit(X, [0, 1] * 4)
    assert np.linalg.eigvalsh(glcu.covariance_)[0] > 0
    np.testing.assert_array_equal(glcu.predict(X), [0, 1] * 4)


@pytest.mark.parametrize("seed", range(5))
def test_components_that_a_model_left_unused_change_nothing(seed):
    # Their means are zero but for rounding, their variances all but the prior's.
    random = np.random.default_rng(seed)
    y = np.arange(150) % 3
    variance = random.gamma(2, 0.1, size=(150, 4))
    mean = random.normal(size=(3, 4))[y] + random.normal(size=(150, 4)) * np.sqrt(
        0.3 + variance
    )
    unused = random.normal(size=(150, 20)) * 10.0 ** random.uniform(-25, -4, size=20)
    unused[:, :3] = 0
    prior = 0.1 * (1 - 1e-4 * random.random((150, 20)))
    order = random.permutation(24)
    wide = np.hstack(
        [np.hstack([mean, unused])[:, order], np.hstack([variance, prior])[:, order]]
    )
    narrow = np.hstack([mean, variance])
    expected = of_columns().fit(narrow, y).predict_proba(narrow)
    found = of_columns().fit(wide, y).predict_proba(wide)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_some_documents_are_certain(data):
    X, y = data
    X[::2, 4:] = 0
    glcu = of_columns().fit(X, y)
    assert glcu.converged_
    assert np.isfinite(glcu.log_likelihood(X, y)).all()


def test_add_classes_leaves_the_old_ones_alone(data):
    X, y = data
    glcu = of_columns().fit(X, y)
    old = {
        name: getattr(glcu, name).copy()
        for name in ("means_", "covariance_", "precision_")
    }
    new = X[:20].copy()
    new[:, :4] += 9
    glcu.add_classes(new, ["yak"] * 12 + ["zebra"] * 8)
    assert glcu.classes_.tolist() == ["ape", "bee", "cat", "yak", "zebra"]
    np.testing.assert_array_equal(glcu.means_[:3], old["means_"])
    np.testing.assert_array_equal(glcu.covariance_, old["covariance_"])
    np.testing.assert_array_equal(glcu.precision_, old["precision_"])
    # Weighted by precision: what EM with the covariance fixed would end in.
    precisions = [np.linalg.inv(glcu.covariance_ + np.diag(s)) for s in new[:12, 4:]]
    weighted = sum(P @ x for P, x in zip(precisions, new[:12, :4], strict=True))
    np.testing.assert_allclose(
        glcu.means_[3], np.linalg.solve(sum(precisions), weighted), rtol=1e-9
    )
    np.testing.assert_allclose(glcu.class_prior_[3:], [12 / 170, 8 / 170])
    assert set(glcu.predict(new)) <= {"yak", "zebra"}


def test_warns_when_em_did_not_converge(data):
    X, y = data
    for accelerate in (True, False):
        glcu = of_columns(max_iter=2, accelerate=accelerate)
        with pytest.warns(ConvergenceWarning, match="`max_iter` = 2 passes"):
            glcu.fit(X, y)
        assert not glcu.converged_
        assert glcu.n_iter_ == 2


def test_pickles(data):
    X, y = data
    glcu = of_columns().fit(X, y)
    again = pickle.loads(pickle.dumps(glcu))
    np.testing.assert_array_equal(again.predict_proba(X), glcu.predict_proba(X))
