from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from docsigma.corpora import SyntheticTruth, load_corpus
from docsigma.exceptions import InputError


def test_the_default_corpus_has_the_promised_shapes():
    corpus = load_corpus("synthetic")
    truth = corpus.truth
    assert isinstance(truth, SyntheticTruth)
    assert corpus.train.counts.shape == (400, 200)
    assert corpus.test.counts.shape == (100, 200)
    assert truth.word_loadings.shape == (200, 5)
    assert truth.train_embeddings.shape == (400, 5)
    assert truth.test_embeddings.shape == (100, 5)
    assert logsumexp(truth.log_unigram) == pytest.approx(0)
    assert corpus.train.words[0] == "word000"
    assert corpus.train.counts.dtype == np.float32
    assert corpus.train.counts.has_sorted_indices


def test_the_seed_decides_everything():
    one, same, other = (load_corpus("synthetic", random_state=n) for n in (3, 3, 4))
    assert (one.train.counts != same.train.counts).nnz == 0
    assert (one.test.counts != same.test.counts).nnz == 0
    assert (one.train.counts != other.train.counts).nnz > 0


def test_counts_follow_the_word_probabilities_of_the_truth():
    # Pearson's statistic has mean (V - 1) D and, near enough, variance 2 (V - 1) D:
    # six standard deviations fail about once in 10^9 seeds, and the seed is fixed.
    corpus = load_corpus("synthetic", n_train=500, n_features=20, mean_tokens=5000)
    truth = corpus.truth
    logits = truth.log_unigram + truth.train_embeddings @ truth.word_loadings.T
    counts = corpus.train.counts.toarray().astype(float)
    expected = counts.sum(axis=1, keepdims=True) * softmax(logits, axis=1)
    statistic = ((counts - expected) ** 2 / expected).sum()
    degrees = 500 * 19
    assert abs(statistic - degrees) < 6 * np.sqrt(2 * degrees)


def test_lengths_and_embeddings_have_the_asked_for_spread():
    corpus = load_corpus(
        "synthetic", n_train=4000, n_features=10, mean_tokens=30, prior_precision=4.0
    )
    lengths = np.asarray(corpus.train.counts.sum(axis=1)).ravel()
    assert lengths.min() >= 1
    assert lengths.mean() == pytest.approx(30, abs=6 * np.sqrt(29 / 4000))
    assert corpus.truth.train_embeddings.std() == pytest.approx(0.5, rel=0.05)
    assert corpus.truth.prior_precision == 4.0


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"n_train": 0}, "`n_train` must be at least 1, got 0"),
        ({"n_test": 1.5}, "`n_test` must be a whole number, got 1.5"),
        ({"n_features": 1}, "`n_features` must be at least 2, got 1"),
        ({"prior_precision": 0.0}, "`prior_precision` must be positive, got 0.0"),
        ({"loading_scale": -1}, "`loading_scale` must not be negative, got -1"),
        ({"mean_tokens": 0.5}, "`mean_tokens` must be at least 1, got 0.5"),
        ({"prior_precision": float("nan")}, "`prior_precision`"),
        ({"random_state": -1}, "`random_state` must be at least 0, got -1"),
    ],
)
def test_bad_options_are_refused(options, fact):
    with pytest.raises(InputError, match=fact):
        load_corpus("synthetic", **options)
