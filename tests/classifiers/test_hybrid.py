from __future__ import annotations

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression

from docsigma import (
    BayesianSMM,
    GaussianPosterior,
    HybridClassifier,
    InputError,
    load_corpus,
)
from docsigma.classifiers import CountsClassifier
from docsigma.classifiers._mixing import Mixture, fit_mixture
from docsigma.classifiers._softmax_regression import (
    Coefficients,
    Features,
    fit_regression,
)
from docsigma.classifiers._splits import make_splits
from docsigma.classifiers._words import (
    inverse_document_frequencies,
    shorten,
    tfidf,
)
from docsigma.counts import as_counts


@pytest.fixture(scope="module")
def setting():
    corpus = load_corpus("synthetic", n_train=200)
    labels = np.where(corpus.truth.train_embeddings[:, 0] > 0, "up", "down")
    labels = np.where(corpus.truth.train_embeddings[:, 1] > 0.3, "side", labels)
    model = BayesianSMM(4, max_iter=60, learning_rate=0.05, random_state=0)
    return model.fit(corpus.train.counts), corpus, labels


@pytest.fixture(scope="module")
def topics(setting):
    model, corpus, labels = setting
    return CountsClassifier.fit(model, corpus.train.counts, labels)


def pair(topics, counts):
    return counts, topics.embed(counts)


def test_the_regression_is_scikit_learns_on_both_side_by_side():
    random = np.random.default_rng(0)
    words = sp.random(80, 12, 0.4, "csr", random_state=1)
    embedding = random.normal(size=(80, 3))
    codes = random.integers(0, 3, 80)
    features, scale, C = Features(words, embedding), 0.5, 2.0
    start = Coefficients.zeros(features, 3, scale)
    found = fit_regression(features, np.eye(3)[codes], start, C, tol=1e-15)
    both = np.hstack([words.toarray(), scale * embedding])
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(both, codes)
    ours = log_softmax(found.scores(features), axis=1)
    # Both end within sqrt(eps) of the minimum of one smooth function.
    np.testing.assert_allclose(ours, theirs.predict_log_proba(both), atol=1e-5)


def test_soft_labels_are_weighted_copies():
    random = np.random.default_rng(3)
    words = sp.random(30, 6, 0.5, "csr", random_state=2)
    features = Features(words, random.normal(size=(30, 2)))
    soft = random.dirichlet(np.ones(3), 30)
    start = Coefficients.zeros(features, 3, 1.0)
    one = fit_regression(features, soft, start, 1.0, tol=1e-15)
    copies = features[np.tile(np.arange(30), 3)]
    hard = np.concatenate([np.eye(3)[[c] * 30] * soft[:, [c]] for c in range(3)])
    other = fit_regression(copies, hard, start, 1.0, tol=1e-15)
    np.testing.assert_allclose(one.scores(features), other.scores(features), atol=1e-5)


def test_idf_is_scikit_learns():
    counts = sp.csr_matrix([[1.0, 0, 2], [0, 0, 1], [3, 0, 1]])
    theirs = TfidfTransformer().fit(counts)
    np.testing.assert_allclose(inverse_document_frequencies(counts), theirs.idf_)
    norms = sp.linalg.norm(tfidf(counts, theirs.idf_), axis=1)
    np.testing.assert_allclose(norms, 1.0)


def test_the_mixture_finds_the_weights_that_labels_were_drawn_with():
    random = np.random.default_rng(0)
    n = 40_000
    parts = [log_softmax(random.normal(size=(n, 4)), axis=1) for _ in range(2)]
    n_tokens = random.integers(0, 60, n).astype(float)
    truth = Mixture(np.array([[1.5, 0.2], [0.3, 1.0]]))
    weights = truth.at(n_tokens)
    scores = sum(w[:, None] * p for w, p in zip(weights.T, parts, strict=True))
    proba = np.exp(log_softmax(scores, axis=1))
    codes = (proba.cumsum(axis=1) < random.uniform(size=(n, 1))).sum(axis=1)
    start = Mixture.constant([0.5, 0.5])
    found, true, top = fit_mixture(parts, codes, np.ones(n), n_tokens, start)
    # Some ten standard errors, of 0.01 for the long and 0.02 for the short.
    np.testing.assert_allclose(found.weights, truth.weights, atol=0.2)
    assert (true <= top).all()


def test_words_and_embedding_add_up_to_the_log_odds(setting, topics):
    _, corpus, _ = setting
    counts = corpus.test.counts
    log_proba = topics.predict_log_proba(topics.embed(counts), counts)
    explained = topics.explain(counts)
    eps = np.finfo(np.float64).eps
    for row, one in enumerate(explained):
        first, second = np.sort(log_proba[row])[::-1][:2]
        amounts = [amount for _, amount in one.words]
        total = sum(amounts) + one.embedding + one.intercept
        size = sum(map(abs, amounts)) + np.abs(log_proba[row]).max()
        assert abs(total - (first - second)) < 1e3 * eps * max(size, 1.0)
        assert one.log_odds == pytest.approx(total, rel=1e-12)
        assert one.label == topics.classes_[log_proba[row].argmax()]
        assert len(one.words) == counts[row].nnz


def test_a_document_without_words_gets_the_class_priors(setting, topics):
    _, corpus, labels = setting
    empty = sp.csr_matrix((2, corpus.test.counts.shape[1]), dtype=np.float32)
    proba = np.exp(topics.predict_log_proba(topics.embed(empty), empty))
    shares = [np.mean(labels == name) for name in topics.classes_]
    np.testing.assert_allclose(proba, [shares, shares], rtol=1e-12)
    explanation = topics.explain(empty)[0]
    assert explanation.words == []
    assert explanation.intercept == explanation.log_odds


def test_it_is_better_than_guessing_and_its_parts_are_chosen(setting, topics):
    _, _, labels = setting
    held_out = topics.classifier.cross_entropies_
    prior = topics.classifier.class_prior_
    assert min(held_out.values()) < -(prior @ np.log(prior)) / 2
    chosen = topics.classifier
    assert (chosen.C_, chosen.scale_, chosen.soft_) in held_out
    assert (chosen.mixture_.weights >= 0).all()
    assert len(chosen.calibration_) == len(labels)


def test_the_scale_of_a_useless_embedding_comes_out_small(setting):
    _, corpus, labels = setting
    noise = np.random.default_rng(0).normal(size=(len(labels), 40))
    counts = corpus.train.counts
    with_noise = HybridClassifier().fit((counts, noise), labels)
    without = HybridClassifier().fit((counts, np.zeros((len(labels), 1))), labels)
    assert with_noise.scale_ <= 0.1
    gap = min(with_noise.cross_entropies_.values()) - min(
        without.cross_entropies_.values()
    )
    # Within the steps that the search does not take, and the coarseness of its grid.
    assert gap < 0.05 * min(without.cross_entropies_.values())


@pytest.mark.parametrize("missing", [None, -1])
def test_unknown_labels_are_no_class(setting, missing):
    model, corpus, labels = setting
    some = np.array(labels, dtype=object)
    some[40:] = missing
    topics = CountsClassifier.fit(model, corpus.train.counts, some)
    np.testing.assert_array_equal(topics.classes_, np.unique(labels))
    counts = corpus.train.counts[40:]
    log_proba = topics.predict_log_proba(topics.embed(counts), counts)
    predicted = topics.classes_[log_proba.argmax(axis=1)]
    assert np.mean(predicted == labels[40:]) > 0.7


def test_one_label_per_class_works(setting):
    model, corpus, labels = setting
    some = np.full(len(labels), None, dtype=object)
    for name in np.unique(labels):
        some[np.flatnonzero(labels == name)[0]] = name
    topics = CountsClassifier.fit(model, corpus.train.counts, some)
    counts = corpus.test.counts
    assert np.isfinite(topics.predict_log_proba(topics.embed(counts), counts)).all()
    with pytest.raises(InputError, match="no calibration documents"):
        topics.calibration.reject_threshold(risk=0.1)


def test_labels_in_a_list_stay_what_they_are(setting, topics):
    model, corpus, labels = setting
    for missing in (None, np.nan, -1, " ", pd.NA):
        some = [name if row % 2 else missing for row, name in enumerate(labels)]
        topics = CountsClassifier.fit(model, corpus.train.counts, some)
        assert topics.classes_.tolist() == ["down", "side", "up"]


@pytest.mark.parametrize("kind", ["hybrid", "evidence"])
def test_groups_that_do_not_fit_get_one_sentence(setting, kind):
    model, corpus, labels = setting
    some = [None, *labels[1:]]

    def fit(groups):
        return CountsClassifier.fit(
            model, corpus.train.counts, some, kind=kind, groups=groups
        )

    with pytest.raises(InputError, match=r"shape \(200,\), got \(3,\)"):
        fit(["a", "b", "c"])
    names = ["a", "b"] * 100
    with pytest.raises(InputError, match="`groups` has no value in row 7"):
        fit([*names[:7], None, *names[8:]])
    # Of a document without label nothing is asked.
    fit([None, *names[1:]])
    # One group leaves nothing to hold out, and so to choose by.
    counts = corpus.test.counts
    alone = fit(["a"] * 200)
    assert np.isfinite(alone.predict_log_proba(alone.embed(counts), counts)).all()


def test_uncertainty_has_its_parts(setting, topics):
    _, corpus, _ = setting
    counts = corpus.test.counts
    q = topics.embed(counts)
    found = topics.predict_uncertainty(q, counts)
    proba = np.exp(topics.predict_log_proba(q, counts))
    np.testing.assert_allclose(found.entropy, -(proba * np.log(proba)).sum(axis=1))
    assert (found.epistemic >= 0).all()
    assert (found.epistemic <= found.entropy).all()
    # A few words leave more doubt that others would remove.
    short = shorten(as_counts(counts)[:])
    few = topics.embed(short)
    doubt = topics.predict_uncertainty(few, short)
    assert doubt.epistemic.mean() > found.epistemic.mean() + 0.1
    # So does the score alone, where the regression leaves the embedding out.
    bare = deepcopy(topics.classifier)
    bare.scale_ = 0.0
    assert bare.predict_uncertainty((short, few)).epistemic.mean() > 0.02
    known = GaussianPosterior(
        q.mean, np.full_like(q.variance, 1e-12), prior=q.prior, n_tokens=q.n_tokens
    )
    exact = topics.classifier.predict_uncertainty((counts, known))
    # An entropy's change is of the order of the draws' deviation, 1e-6, squared.
    assert exact.epistemic.max() < 1e-9


@pytest.mark.parametrize("kind", ["evidence", "glcu", "glc", "lr"])
def test_other_kinds_have_uncertainties_too(setting, kind):
    model, corpus, labels = setting
    topics = CountsClassifier.fit(model, corpus.train.counts, labels, kind=kind)
    found = topics.predict_uncertainty(topics.embed(corpus.test.counts))
    for values in (found.entropy, found.epistemic, found.typicality):
        assert values.shape == (100,)
        assert np.isfinite(values).all()
    assert found.epistemic.max() > 0
    sets = topics.calibrate(corpus.train.counts, labels).calibration
    assert 0 < sets.thresholds(0.9)[0] < 1


def test_rejected_documents_have_no_label(setting, topics):
    _, corpus, _ = setting
    counts = corpus.test.counts
    top = np.exp(topics.predict_log_proba(topics.embed(counts), counts)).max(axis=1)
    threshold = topics.calibration.reject_threshold(coverage=0.5)
    labels = topics.predict(counts, reject=threshold)
    np.testing.assert_array_equal([one is None for one in labels], top < threshold)
    assert None not in topics.predict(counts)


def test_groups_and_times_are_kept_apart():
    codes = np.tile([0, 1], 30)
    groups = np.repeat(np.arange(12), 5)
    for train, held_out in make_splits(codes, 3, 0, groups=groups):
        assert not set(groups[train]) & set(groups[held_out])
    times = np.random.default_rng(0).integers(0, 20, 60)
    splits = make_splits(codes, 3, 0, times=times)
    assert len(splits) == 3
    for train, held_out in splits:
        assert times[train].max() < times[held_out].min()
    with pytest.raises(InputError, match="not both"):
        make_splits(codes, 3, 0, groups=groups, times=times)
    assert make_splits(np.arange(4), 3, 0) == []


def test_bad_input_is_one_sentence(setting, topics):
    model, corpus, labels = setting
    counts = corpus.train.counts
    q = topics.embed(counts)
    with pytest.raises(InputError, match="the hybrid needs counts"):
        CountsClassifier.fit(model, q, labels)
    with pytest.raises(InputError, match="needs the documents' `counts`"):
        topics.predict_log_proba(q)
    with pytest.raises(InputError, match="counts of 200 documents, but .* of 10"):
        topics.classifier.predict((counts, q[:10]))
    with pytest.raises(InputError, match="must be a pair"):
        topics.classifier.predict(counts)
    with pytest.raises(InputError, match="the classifier needs Gaussians"):
        topics.classifier.predict((counts, q.mean))
    narrow = GaussianPosterior(q.mean[:, :2], q.variance[:, :2])
    with pytest.raises(InputError, match="size 2, but .* size 4"):
        topics.classifier.predict((counts, narrow))
    with pytest.raises(InputError, match="for hybrid and evidence, not for lr"):
        CountsClassifier.fit(model, counts, labels, kind="lr", groups=labels)
