"""Weighted counts: against the formula, scikit-learn's contract, and their use."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma import BayesianSMM, TokenWeights, load_corpus

COUNTS = np.array([[1, 0, 3, 1], [0, 2, 1, 1], [4, 0, 0, 1]])


@parametrize_with_checks([TokenWeights()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_weights_follow_the_formula():
    weights = TokenWeights().fit(COUNTS)
    idf = np.log(4 / (1 + np.array([2, 1, 2, 3])))
    idf /= (COUNTS.sum(axis=0) @ idf) / COUNTS.sum()
    np.testing.assert_allclose(weights.weights_, idf)
    given = sp.csr_matrix(COUNTS, dtype=np.float64)
    found = weights.transform(given).toarray()
    np.testing.assert_allclose(found, np.log1p(COUNTS) * idf)
    # A word of every document has no weight; what came in stays as it was.
    assert found[:, 3].max() == 0
    np.testing.assert_array_equal(given.toarray(), COUNTS)


def test_tokens_have_the_weight_one_on_average():
    counts = load_corpus("synthetic").train.counts
    weighted = TokenWeights(damp=False).fit_transform(counts)
    assert weighted.sum() == pytest.approx(counts.sum(), rel=1e-5)
    assert weighted.dtype == np.float32


def test_without_either_counts_stay():
    plain = TokenWeights(damp=False, idf=False).fit_transform(COUNTS)
    np.testing.assert_allclose(plain.toarray(), COUNTS)


def test_damping_alone():
    given = COUNTS.astype(np.float64)
    damped = TokenWeights(idf=False).fit_transform(given)
    np.testing.assert_allclose(damped.toarray(), np.log1p(COUNTS))
    assert damped.dtype == np.float64


def test_a_word_of_no_training_document_weighs_most():
    weights = TokenWeights().fit(np.hstack([COUNTS, np.zeros((3, 1))])).weights_
    assert np.isfinite(weights).all()
    assert weights.argmax() == 4


def test_words_that_are_all_everywhere_keep_their_counts():
    counts = np.ones((3, 2))
    np.testing.assert_allclose(
        TokenWeights(damp=False).fit_transform(counts).toarray(), counts
    )


def test_in_a_pipeline_before_the_model():
    corpus = load_corpus("synthetic")
    model = make_pipeline(TokenWeights(), BayesianSMM(5, random_state=0))
    model.fit(corpus.train.counts)
    weights = TokenWeights().fit(corpus.train.counts)
    plain = BayesianSMM(5, random_state=0).fit(weights.transform(corpus.train.counts))
    np.testing.assert_allclose(
        model.transform(corpus.test.counts),
        plain.transform(weights.transform(corpus.test.counts)),
    )
