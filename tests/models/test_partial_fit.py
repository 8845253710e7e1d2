from __future__ import annotations

import pickle

import numpy as np
import pytest

from docsigma import BayesianSMM, InputError, load_corpus


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("synthetic", n_train=4000, n_test=200)


@pytest.fixture(scope="module")
def counts(corpus):
    return corpus.train.counts


def model(**options):
    settings = {"prior_precision": 1.0, "l1": 0.1, "random_state": 0}
    return BayesianSMM(5, **(settings | options))


def test_the_bound_on_held_out_documents_rises_over_a_stream(corpus, counts):
    # The seed is fixed: 200 documents of 100 tokens, and each call gains more than
    # the noise of the 32 draws that judge it (about 1e-4 a token).
    stream, scores = model(), []
    for begin in range(0, 4000, 500):
        stream.partial_fit(counts[begin : begin + 500])
        scores.append(stream.score(corpus.test.counts))
    assert (np.diff(scores) > 0).all()
    assert stream.n_iter_ == 8
    assert [row["epoch"] for row in stream.history_] == list(range(1, 9))
    unigram = stream.perplexity(corpus.test.counts)
    assert unigram.corpus < 0.95 * unigram.unigram_corpus


def test_one_seed_gives_one_model(counts):
    def learn(seed):
        stream = model(random_state=seed)
        for begin in range(0, 900, 300):
            stream.partial_fit(counts[begin : begin + 300])
        return stream.components_

    np.testing.assert_array_equal(learn(3), learn(3))
    assert not np.array_equal(learn(3), learn(4))


def test_other_words_than_before_are_refused(counts):
    stream = model().partial_fit(counts[:300])
    with pytest.raises(ValueError, match="X has 50 features.* 200 features"):
        stream.partial_fit(counts[300:400, :50])
    with pytest.raises(InputError, match="the 4 documents hold no word"):
        model().partial_fit(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="'rounding' parameter"):
        model(rounding="float8").partial_fit(counts[:300])


def test_documents_without_words_teach_nothing(counts):
    stream = model().partial_fit(counts[:300])
    before = stream.components_
    stream.partial_fit(np.zeros((5, 200), dtype=np.float32))
    np.testing.assert_array_equal(stream.components_, before)
    assert stream.n_iter_ == 2


def test_a_fixed_log_unigram_is_that_of_all_documents_so_far(counts):
    stream = model(learn_log_unigram=False)
    for begin in (0, 300):
        stream.partial_fit(counts[begin : begin + 300])
    totals = np.asarray(counts[:600].sum(axis=0)).ravel()
    expected = np.log(np.maximum(totals, 1e-3) / totals.sum())
    np.testing.assert_allclose(stream.training_log_unigram_, expected, rtol=1e-5)
    np.testing.assert_allclose(stream.log_unigram_, expected, rtol=1e-5)


def test_fit_after_partial_fit_starts_anew(counts):
    some = counts[:300]
    stream = model(max_iter=3).partial_fit(counts[300:600])
    fresh = model(max_iter=3).fit(some)
    np.testing.assert_array_equal(stream.fit(some).components_, fresh.components_)
    assert stream.n_iter_ == fresh.n_iter_
    # Nor does what came before `fit` come back after it, whatever its words were.
    stream.partial_fit(counts[600:900])
    fresh.partial_fit(counts[600:900])
    np.testing.assert_array_equal(stream.components_, fresh.components_)
    stream.fit(some[:, :50]).partial_fit(some[:, :50])
    assert stream.components_.shape == (5, 50)


def test_partial_fit_goes_on_from_fit(corpus, counts):
    fitted = model().fit(counts[:2000])
    before = fitted.score(corpus.test.counts)
    words = fitted.components_.copy()
    for begin in range(2000, 4000, 500):
        fitted.partial_fit(counts[begin : begin + 500])
    assert not np.array_equal(fitted.components_, words)
    assert fitted.score(corpus.test.counts) > before - 0.01


def test_a_stream_can_be_pickled_saved_and_gone_on_with(counts, tmp_path):
    stream = model().partial_fit(counts[:300])
    copy = pickle.loads(pickle.dumps(stream))
    stream.partial_fit(counts[300:600])
    copy.partial_fit(counts[300:600])
    np.testing.assert_array_equal(copy.components_, stream.components_)
    stream.save(tmp_path / "model")
    loaded = BayesianSMM.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.transform(counts[:50]), stream.transform(counts[:50])
    )
    assert loaded.partial_fit(counts[600:900]).n_iter_ == 3
