from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax
from sklearn.naive_bayes import MultinomialNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma.classifiers._folds import deal_folds
from docsigma.exceptions import InputError
from docsigma.metrics.classification import cross_entropy
from docsigma_paper.classifiers._word_selection import (
    best_scale,
    select_words,
    topic_probabilities,
    word_probabilities,
)
from docsigma_paper.classifiers.naive_bayes import SelectedNaiveBayes

FOLDS_DIFFER = "repeated documents fall into several folds, one of weight 2 does not"


@parametrize_with_checks([SelectedNaiveBayes()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.release
@parametrize_with_checks(
    [
        SelectedNaiveBayes(words_per_class=2),
        SelectedNaiveBayes(words_per_class=None, scale="cv", normalize=True),
    ],
    expected_failed_checks=lambda estimator: (
        {
            "check_sample_weight_equivalence_on_dense_data": FOLDS_DIFFER,
            "check_sample_weight_equivalence_on_sparse_data": FOLDS_DIFFER,
        }
        if estimator.scale == "cv"
        else {}
    ),
)
def test_scikit_learn_contract_of_every_variant(estimator, check):
    check(estimator)


def draw(n_documents, seed=0, length=20, n_words=30):
    """Draw documents of three topics that share most of their words."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(99).dirichlet(np.full(n_words, 0.5), size=3)
    topics = 0.2 * topics + 0.8 * topics.mean(axis=0)
    codes = rng.integers(3, size=n_documents)
    lengths = rng.poisson(length, size=n_documents)
    counts = rng.multinomial(lengths, topics[codes])
    return counts, np.array(["a", "b", "c"])[codes]


@pytest.fixture
def data():
    return draw(120)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 3.0])
def test_equals_scikit_learn_where_all_words_are_equally_frequent(data, alpha):
    X, y = data
    # One more document brings every word to the same total, so P(w) is 1 / V.
    X = np.vstack([X, X.sum(axis=0).max() - X.sum(axis=0)])
    y = np.append(y, "a")
    ours = SelectedNaiveBayes(words_per_class=None, alpha=alpha).fit(X, y)
    theirs = MultinomialNB(alpha=alpha).fit(X, y)
    np.testing.assert_array_equal(ours.selected_, np.arange(30))
    np.testing.assert_allclose(ours.feature_log_prob_, theirs.feature_log_prob_)
    np.testing.assert_allclose(ours.log_prior_, theirs.class_log_prior_)
    np.testing.assert_allclose(
        ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_word_probabilities_are_the_formula():
    rng = np.random.default_rng(1)
    N = rng.integers(0, 9, size=(3, 5)).astype(float)
    found = word_probabilities(N, 0.7)
    for t in range(3):
        for w in range(5):
            background = (N[:, w].sum() + 1) / (N.sum() + 5)
            expected = (N[t, w] + 0.7 * 5 * background) / (N[t].sum() + 0.7 * 5)
            assert found[t, w] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_topic_probabilities_are_the_formula():
    N = np.array([[4.0, 0.0, 1.0], [2.0, 0.0, 0.0]])
    found = topic_probabilities(N, np.array([0.75, 0.25]), 0.5)
    expected = [[4.75 / 7, 0.75, 1.75 / 2], [2.25 / 7, 0.25, 0.25 / 2]]
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(found.sum(axis=0), 1)


@pytest.mark.parametrize(
    ("words_per_class", "selected"),
    # P(a|w) is 5/6, 2/4, 1/5, 6/12 and P(b|w) the rest.
    [(1, [0, 2]), (2, [0, 1, 2]), (3, [0, 1, 2, 3]), (9, [0, 1, 2, 3])],
)
def test_selection_by_hand(words_per_class, selected):
    X = np.array([[3, 1, 0, 2, 0], [1, 0, 0, 3, 0], [0, 0, 2, 5, 0], [0, 1, 1, 0, 0]])
    nb = SelectedNaiveBayes(words_per_class=words_per_class)
    nb.fit(X, ["a", "a", "b", "b"])
    np.testing.assert_array_equal(nb.selected_, selected)
    assert nb.feature_log_prob_.shape == (2, len(selected))


def test_smoothing_keeps_rare_words_back():
    # The first word: 40 times in one topic, 5 times in the other; the second: once.
    N = np.array([[40.0, 1.0, 0.0], [5.0, 0.0, 40.0]])
    half = np.array([0.5, 0.5])
    np.testing.assert_array_equal(select_words(N, half, 1.0, 1), [0, 2])
    np.testing.assert_array_equal(select_words(N, half, 1e-6, 1), [1, 2])


def test_a_topic_gives_no_word_that_it_does_not_have():
    N = np.array([[1.0, 0.0, 0.0, 0.0], [9.0, 1.0, 1.0, 0.0]])
    selected = select_words(N, np.array([0.99, 0.01]), 1.0, 3)
    np.testing.assert_array_equal(selected, [0, 1, 2])
    one = select_words(np.array([[0.0, 0.0], [0.0, 3.0]]), np.full(2, 0.5), 1.0, 2)
    np.testing.assert_array_equal(one, [1])


def test_of_equal_words_the_first_is_selected_whatever_the_rounding():
    N = np.array([[3.0, 3.0 + 3e-14], [1.0, 1.0]])
    np.testing.assert_array_equal(select_words(N, np.full(2, 0.5), 1.0, 1), [0])


def test_words_outside_the_vocabulary_do_not_matter(data):
    X, y = data
    nb = SelectedNaiveBayes(words_per_class=3).fit(X, y)
    assert 3 <= len(nb.selected_) <= 9
    others = np.setdiff1d(np.arange(30), nb.selected_)
    changed = X.copy()
    changed[:, others] = 17
    np.testing.assert_array_equal(nb.predict_proba(X), nb.predict_proba(changed))
    alone = SelectedNaiveBayes(words_per_class=None).fit(X[:, nb.selected_], y)
    np.testing.assert_allclose(
        nb.predict_log_proba(X), alone.predict_log_proba(X[:, nb.selected_])
    )


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array, np.float32])
def test_dense_equals_sparse(data, container):
    X, y = data
    dense = SelectedNaiveBayes(words_per_class=4, scale="cv").fit(X, y)
    other = SelectedNaiveBayes(words_per_class=4, scale="cv").fit(container(X), y)
    np.testing.assert_array_equal(dense.selected_, other.selected_)
    assert other.scale_ == pytest.approx(dense.scale_)
    np.testing.assert_allclose(
        dense.predict_log_proba(X), other.predict_log_proba(container(X))
    )


def test_weights_are_repetitions(data):
    X, y = data
    weights = np.random.default_rng(2).integers(0, 4, size=len(y))
    weighted = SelectedNaiveBayes(words_per_class=4).fit(X, y, weights)
    repeated = SelectedNaiveBayes(words_per_class=4).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_array_equal(weighted.selected_, repeated.selected_)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X))


@pytest.mark.parametrize("normalize", [False, True])
def test_probabilities_are_the_formula(data, normalize):
    X, y = data
    nb = SelectedNaiveBayes(words_per_class=5, scale=0.3, normalize=normalize)
    nb.fit(X, y)
    kept = X[:, nb.selected_]
    scores = kept @ nb.feature_log_prob_.T
    if normalize:
        scores = scores / kept.sum(axis=1, keepdims=True)
    expected = log_softmax(nb.log_prior_ + 0.3 * scores, axis=1)
    np.testing.assert_allclose(nb.predict_log_proba(X), expected)
    np.testing.assert_allclose(nb.predict_proba(X).sum(axis=1), 1)


def test_with_equal_priors_the_scale_leaves_the_labels(data):
    X, y = data
    labels = [
        SelectedNaiveBayes(scale=scale, priors="uniform").fit(X, y).predict(X)
        for scale in (0.01, 1.0, "cv")
    ]
    np.testing.assert_array_equal(labels[0], labels[1])
    np.testing.assert_array_equal(labels[0], labels[2])


@pytest.mark.parametrize("normalize", [False, True])
def test_cross_validation_finds_the_scale_of_repeated_tokens(normalize):
    # Each token counts ten times, so a tenth of the log-likelihood is true.
    X, y = draw(3000, seed=3, length=40)
    test, truth = draw(1000, seed=4, length=40)
    nb = SelectedNaiveBayes(words_per_class=None, normalize=normalize, scale="cv")
    nb.fit(10 * X, y)
    unit = 400 if normalize else 1
    assert 0.08 < nb.scale_ / unit < 0.12
    log_proba = nb.predict_log_proba(10 * test)
    calibrated = cross_entropy(log_proba, truth, classes=nb.classes_, log=True)
    assert nb.cross_entropy_ == pytest.approx(calibrated, abs=0.05)
    plain = SelectedNaiveBayes(words_per_class=None).fit(10 * X, y)
    log_proba = plain.predict_log_proba(10 * test)
    sure = cross_entropy(log_proba, truth, classes=nb.classes_, log=True)
    assert calibrated < sure - 0.3


@pytest.mark.parametrize("priors", ["empirical", [0.1, 0.5, 0.2, 0.2]])
def test_the_cross_entropy_is_that_of_separate_fits(data, priors):
    X, y = data
    y = np.array(["a rare one", *y[1:]])
    nb = SelectedNaiveBayes(words_per_class=5, priors=priors, scale="cv").fit(X, y)
    codes = np.searchsorted(nb.classes_, y)
    folds = deal_folds(codes, 5, 0)
    nats = []
    for fold in range(5):
        train, rows = folds != fold, np.flatnonzero(folds == fold)
        known = np.unique(codes[train])
        prior = nb.class_prior_[known] / nb.class_prior_[known].sum()
        one = SelectedNaiveBayes(words_per_class=5, priors=prior, scale=nb.scale_)
        log_proba = one.fit(X[train], y[train]).predict_log_proba(X[rows])
        for row, values in zip(rows, log_proba, strict=True):
            nats += list(-values[one.classes_ == y[row]])
    assert len(nats) == 119
    assert nb.cross_entropy_ == pytest.approx(np.mean(nats))


def test_best_scale_has_the_least_cross_entropy():
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(200, 4))
    log_prior = np.log(rng.dirichlet(np.ones(4), size=200))
    codes, weights = scores.argmax(axis=1), rng.uniform(size=200)
    codes[:60] = rng.integers(4, size=60)

    def loss(scale):
        log_proba = log_softmax(log_prior + scale * scores, axis=1)
        return -weights @ log_proba[np.arange(200), codes]

    scale = best_scale(scores, log_prior, codes, weights, (1e-3, 1e3))
    around = [loss(scale * factor) for factor in (0.9, 0.99, 1.01, 1.1)]
    assert loss(scale) < min(around)
    assert best_scale(scores, log_prior, codes, weights, (1e-3, 1e-2)) == 1e-2
    assert best_scale(-scores, log_prior, codes, weights, (1e-3, 1.0)) == 1e-3


def test_length_does_not_matter_when_normalized(data):
    X, y = data
    nb = SelectedNaiveBayes(normalize=True, scale=10.0).fit(X, y)
    np.testing.assert_allclose(nb.predict_proba(X), nb.predict_proba(7 * X))


@pytest.mark.parametrize("normalize", [False, True])
def test_documents_without_known_words_get_the_prior(data, normalize):
    X, y = data
    nb = SelectedNaiveBayes(normalize=normalize, priors=[0.5, 0.3, 0.2]).fit(X, y)
    np.testing.assert_allclose(nb.predict_proba(0 * X[:1]), [[0.5, 0.3, 0.2]])


def test_long_documents_have_finite_log_probabilities(data):
    X, y = data
    log_proba = SelectedNaiveBayes().fit(X, y).predict_log_proba(10**6 * X)
    assert np.isfinite(log_proba).all()
    assert log_proba.min() < -1e5


def test_rare_classes_do_not_disturb_the_folds(data):
    X, y = data
    y = np.array(["rare", *y[1:]])
    nb = SelectedNaiveBayes(scale="cv").fit(X, y)
    assert nb.predict_proba(X).shape == (120, 4)
    assert np.isfinite(nb.cross_entropy_)
    two = SelectedNaiveBayes(scale="cv").fit(X[:2], ["a", "b"])
    assert two.scale_ == 1.0
    assert np.isnan(two.cross_entropy_)


def test_folds_are_dealt_by_the_random_state(data):
    X, y = data
    one, same, other = (
        SelectedNaiveBayes(scale="cv", random_state=seed).fit(X, y).scale_
        for seed in (1, 1, 2)
    )
    assert one == same != other


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"words_per_class": 0}, "`words_per_class` must be at least 1, .* got 0"),
        ({"words_per_class": 2.5}, "`words_per_class` must be .* got 2.5"),
        ({"alpha": 0.0}, "`alpha` must be finite and above 0, got 0.0"),
        ({"alpha": np.inf}, "`alpha` must be finite and above 0, got inf"),
        ({"scale": 0}, "`scale` must be 'cv', or finite and above 0, got 0"),
        ({"scale": "best"}, "`scale` must be 'cv', .* got 'best'"),
        ({"scale": np.nan}, "`scale` must be 'cv', .* got nan"),
        ({"n_folds": 1}, "`n_folds` must be at least 2, got 1"),
        ({"priors": "flat"}, "`priors` must be 'empirical', .* got 'flat'"),
    ],
)
def test_bad_parameters(data, parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        SelectedNaiveBayes(**parameters).fit(*data)


def test_bad_input(data):
    X, y = data
    nb = SelectedNaiveBayes()
    negative = X.astype(float)
    negative[7, 3] = -0.5
    for container in (np.asarray, sparse.csr_matrix):
        with pytest.raises(InputError, match="`X` has -0.5 in row 7, column 3"):
            nb.fit(container(negative), y)
    with pytest.raises(InputError, match="at least 2 classes, got 1 class: a"):
        nb.fit(X, ["a"] * 120)
    with pytest.raises(InputError, match="`X` has no counts: every document is empty"):
        nb.fit(0 * X, y)
    with pytest.raises(ValueError, match="29 features, but .* expecting 30"):
        nb.fit(X, y).predict(X[:, :29])
