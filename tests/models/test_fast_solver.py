"""solver="fast", seen from outside."""

from __future__ import annotations

import numpy as np
import pytest

from docsigma import BayesianSMM, InputError, load_corpus
from docsigma.trainers import MinibatchSettings


@pytest.fixture(scope="module")
def counts():
    return load_corpus("synthetic", n_train=120, random_state=3).train.counts


class TwoStages(BayesianSMM):
    """Trains a third of the tokens first, as a large vocabulary would."""

    minibatch_settings = MinibatchSettings(head_tokens=0.3)


def test_it_is_the_default_and_knows_its_passes():
    model = BayesianSMM()
    assert model.solver == "fast"
    assert model.n_passes == 11
    assert BayesianSMM(solver="paper").n_passes == 1000
    assert BayesianSMM(max_iter=3).n_passes == 3


@pytest.mark.parametrize(
    "n_train", [300, pytest.param(2000, marks=pytest.mark.release)]
)
def test_its_test_bound_is_that_of_algorithm_1_after_600_passes(n_train):
    corpus = load_corpus("synthetic", n_train=n_train, n_test=100, random_state=1)
    settings = {"prior_precision": 1.0, "l1": 0.1, "random_state": 0}
    quick = BayesianSMM(5, **settings).fit(corpus.train.counts)
    slow = BayesianSMM(5, solver="paper", max_iter=600, tol=0, **settings)
    slow.fit(corpus.train.counts)
    scores = [model.score(corpus.test.counts) for model in (quick, slow)]
    assert scores[0] > scores[1] - 0.01 * abs(scores[1])


def test_the_bound_on_the_training_documents_rises(counts):
    model = BayesianSMM(5, prior_precision=1.0, tol=0, random_state=0).fit(counts)
    bounds = [row["bound"] for row in model.history_]
    assert np.mean(bounds[-3:]) > np.mean(bounds[1:4])


def test_the_bound_of_the_history_does_not_fall_where_words_are_added(counts):
    model = TwoStages(5, prior_precision=1.0, max_iter=20, tol=0, random_state=0)
    bounds = [row["bound"] for row in model.fit(counts).history_]
    first = int(20 * MinibatchSettings().head_passes)
    assert bounds[first] > bounds[first - 1] - 0.01 * abs(bounds[first - 1])


@pytest.mark.parametrize("kind", [BayesianSMM, TwoStages])
def test_one_seed_gives_one_model_and_another_seed_another(counts, kind):
    one, two, other = (
        kind(3, max_iter=6, batch_size=32, random_state=seed).fit(counts)
        for seed in (4, 4, 5)
    )
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.log_unigram_, two.log_unigram_)
    assert not np.array_equal(one.components_, other.components_)


@pytest.mark.parametrize("stop", [1, 4, 5, 6, 11])
def test_resuming_is_bit_for_bit_across_the_change_of_stage(counts, tmp_path, stop):
    """With 12 passes five are of the first stage; it is left at pass 5."""
    file = tmp_path / "checkpoint.safetensors"
    settings = {"max_iter": 12, "tol": 0, "batch_size": 32, "random_state": 0}
    whole = TwoStages(3, **settings).fit(counts)
    stopped = TwoStages(3, **settings)
    stopped.fit(counts, checkpoint=file, callback=lambda now: now.epoch == stop)
    assert stopped.n_iter_ == stop
    resumed = TwoStages(3, **settings).fit(counts, checkpoint=file, resume=True)
    assert resumed.n_iter_ == 12
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    np.testing.assert_array_equal(resumed.log_unigram_, whole.log_unigram_)
    bounds = [[row["bound"] for row in m.history_] for m in (whole, resumed)]
    assert bounds[0] == bounds[1]


def test_resuming_takes_the_seed_of_the_checkpoint(counts, tmp_path):
    file = tmp_path / "checkpoint.safetensors"
    settings = {"max_iter": 8, "tol": 0, "batch_size": 32}
    whole = BayesianSMM(3, random_state=7, **settings).fit(counts)
    stopped = BayesianSMM(3, random_state=7, **settings)
    stopped.fit(counts, checkpoint=file, callback=lambda now: now.epoch == 3)
    resumed = BayesianSMM(3, random_state=None, **settings)
    resumed.fit(counts, checkpoint=file, resume=True)
    np.testing.assert_array_equal(resumed.components_, whole.components_)


def test_a_crash_between_checkpoints_loses_nothing_but_its_passes(counts, tmp_path):
    file = tmp_path / "checkpoint.safetensors"
    settings = {"max_iter": 10, "tol": 0, "batch_size": 32, "random_state": 0}

    def crash(now):
        if now.epoch == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BayesianSMM(3, **settings).fit(
            counts, checkpoint=file, checkpoint_every=4, callback=crash
        )
    resumed = BayesianSMM(3, **settings).fit(counts, checkpoint=file, resume=True)
    whole = BayesianSMM(3, **settings).fit(counts)
    np.testing.assert_array_equal(resumed.components_, whole.components_)


@pytest.mark.parametrize("later", [20, 6])
def test_another_number_of_passes_is_another_training(counts, tmp_path, later):
    """Stages and learning rate are laid out over the passes."""
    file = tmp_path / "checkpoint.safetensors"
    TwoStages(3, max_iter=7, tol=0, random_state=0).fit(counts, checkpoint=file)
    model = TwoStages(3, max_iter=later, tol=0, random_state=0)
    with pytest.raises(InputError, match=f"written with max_iter=7, not {later}"):
        model.fit(counts, checkpoint=file, resume=True)


def test_training_goes_on_while_the_bound_still_climbs():
    """One pass's noise is no reason to stop: tol compares what is learned."""
    corpus = load_corpus("synthetic", n_train=300, n_test=100, random_state=1)
    settings = {"prior_precision": 1.0, "l1": 0.1, "max_iter": 100, "random_state": 0}
    stopped = BayesianSMM(5, **settings).fit(corpus.train.counts)
    whole = BayesianSMM(5, tol=0, **settings).fit(corpus.train.counts)
    assert stopped.score(corpus.test.counts) > whole.score(corpus.test.counts) - 0.01


def test_empty_documents_in_training_do_no_harm(counts):
    dense = counts.toarray()
    padded = np.vstack([dense[:60], np.zeros((30, 200)), dense[60:]]).astype(np.float32)
    for batch_size in (1, 16, 512):
        model = BayesianSMM(3, max_iter=3, batch_size=batch_size, random_state=0)
        model.fit(padded)
        assert np.isfinite(model.components_).all()
        assert np.isfinite(model.history_[-1]["bound"])
    alone = BayesianSMM(3, max_iter=3, random_state=0).fit(padded[59:75])
    assert np.isfinite(alone.components_).all()


@pytest.mark.filterwarnings("ignore:nothing was learned")
@pytest.mark.filterwarnings("ignore:.* is more than the .* documents")
@pytest.mark.parametrize(
    "shape",
    [(10, 200), (100, 8), (1, 200), (100, 1), (1, 1), (3, 3)],
)
def test_more_dimensions_than_documents_or_words(counts, shape):
    some = counts[: shape[0], : shape[1]].toarray() + 1
    model = BayesianSMM(30, random_state=0).fit(some)
    assert model.components_.shape == (30, shape[1])
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.history_[-1]["bound"])
    assert np.isfinite(model.transform(some)).all()


@pytest.mark.filterwarnings("ignore:nothing was learned")
def test_documents_all_alike_have_nothing_to_tell():
    model = BayesianSMM(3, random_state=0).fit(np.ones((50, 6), dtype=np.float32))
    # A constant over the words changes no probability.
    spread = model.components_ - model.components_.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(spread, 0, atol=0.1)
    unigram = np.exp(model.log_unigram_)
    np.testing.assert_allclose(unigram / unigram.sum(), 1 / 6, atol=0.02)


def test_a_fixed_log_unigram_stays_at_every_stage(counts):
    dense = counts.toarray()
    dense[:, 7] = 0
    seen = []

    def look(now):
        model = now.snapshot()
        seen.append(np.abs(model.log_unigram_ - model.training_log_unigram_).max())

    TwoStages(3, learn_log_unigram=False, max_iter=8, tol=0, random_state=0).fit(
        dense, callback=look
    )
    # float32 at a log probability of about -17.
    assert len(seen) == 8
    assert max(seen) < 1e-5


@pytest.mark.filterwarnings("ignore:nothing was learned")
@pytest.mark.parametrize("batch_size", [16, 512])
def test_a_huge_l1_leaves_no_loading(counts, batch_size):
    model = TwoStages(4, l1=1e6, batch_size=batch_size, random_state=0).fit(counts)
    assert (model.components_ == 0).all()
    assert model.history_[-1]["sparsity"] == 1.0


def test_a_moderate_l1_gives_exact_zeros(counts):
    zeros = [
        (BayesianSMM(5, l1=l1, random_state=0).fit(counts).components_ == 0).mean()
        for l1 in (0.0, 3.0, 10.0)
    ]
    assert zeros[0] == 0
    assert zeros[0] < zeros[1] < zeros[2]


def test_words_never_seen_have_the_smoothed_log_unigram(counts):
    dense = counts.toarray()
    dense[:, [3, 90]] = 0
    model = TwoStages(3, random_state=0).fit(dense)
    assert np.isfinite(model.log_unigram_).all()
    seen = dense.sum(axis=0) > 0
    assert model.log_unigram_[~seen].max() < model.log_unigram_[seen].min()
