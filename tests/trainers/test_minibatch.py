"""The fast solver's stages and visits, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from docsigma import load_corpus
from docsigma.counts.sorted_counts import SortedCounts
from docsigma.kernels import softmax_moments
from docsigma.parts import Parts
from docsigma.random import Stream, generator, standard_normals
from docsigma.trainers import MinibatchSettings, MinibatchTrainer
from docsigma.trainers.minibatch_step import MinibatchStep
from docsigma.trainers.schedule import Stage, plan_stages

K = 3


@pytest.fixture(scope="module")
def counts():
    corpus = load_corpus("synthetic", n_train=60, n_features=50)
    return sp.csr_matrix(corpus.train.counts, dtype=np.float64)


def trainer(counts, stages, **options):
    settings = {
        "n_components": K,
        "batch_size": 16,
        "learn_bias": True,
        "init_scale": 1e-3,
        "seed": 0,
        "settings": MinibatchSettings(),
    }
    l1 = options.pop("l1", 0.1)
    return MinibatchTrainer(
        SortedCounts(counts),
        Parts.of(prior_precision=2.0, l1=l1),
        torch.empty(0, dtype=torch.float64),
        stages=stages,
        **(settings | options),
    )


def part_way(counts, n_words, n_passes=2, **options):
    """A trainer after two passes with loadings for the `n_words` commonest words."""
    rates = (0.05, 0.01)
    whole = Stage(counts.shape[1], n_passes, rates)
    training = trainer(counts, [Stage(n_words, n_passes, rates), whole], **options)
    training.run(2 * n_passes, 0.0, lambda now: now.epoch == 2)
    return training


def test_words_come_commonest_first_and_go_back_to_their_places(counts):
    words = SortedCounts(counts)
    totals = np.asarray(counts.sum(axis=0)).ravel()
    assert (np.diff(words.totals) <= 0).all()
    np.testing.assert_array_equal(words.totals, totals[words.order])
    rows = np.array([4, 2, 30])
    np.testing.assert_array_equal(
        words.batch(rows, 7).toarray(), counts.toarray()[rows][:, words.order[:7]]
    )
    head = words.covering(0.5)
    assert words.totals[:head].sum() >= 0.5 * totals.sum()
    assert words.totals[: head - 1].sum() < 0.5 * totals.sum()


def test_stages_make_as_many_passes_as_asked_for_and_end_with_all_words(counts):
    words = SortedCounts(counts)
    for head_tokens in (0.3, 0.955):
        settings = MinibatchSettings(head_tokens=head_tokens)
        for max_iter in range(1, 30):
            stages = plan_stages(words, max_iter, 0.02, settings)
            assert sum(stage.n_passes for stage in stages) == max_iter
            assert all(stage.n_passes > 0 for stage in stages)
            assert stages[-1].n_words == 50
            assert len(stages) == (2 if head_tokens == 0.3 and max_iter > 2 else 1)


def test_folded_words_give_the_moments_of_a_model_with_zero_loadings(counts):
    training = part_way(counts, 20)
    order = training.counts.order
    loadings, bias = training.fitted()
    assert (loadings[order[20:]] == 0).all()
    assert (loadings[order[:20]] != 0).any()
    points = torch.randn(
        8, K, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    weights = torch.rand(8, generator=torch.Generator().manual_seed(1)).double()
    table = training.table.tensor[:21]
    folded = softmax_moments(
        points, table[:, :K], table[:, K], second=True, weights=weights
    )
    full = softmax_moments(points, loadings, bias, second=True, weights=weights)
    for name in ("lse", "first", "second"):
        torch.testing.assert_close(
            getattr(folded, name), getattr(full, name), rtol=0, atol=1e-10
        )
    for name in ("loading_gradient", "bias_gradient"):
        expected = getattr(full, name)[order]
        got = getattr(folded, name)
        torch.testing.assert_close(got[:20], expected[:20], rtol=0, atol=1e-10)
        torch.testing.assert_close(got[20], expected[20:].sum(0), rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_words", [20, 50])
@pytest.mark.parametrize("learn_bias", [True, False])
def test_the_bound_of_a_pass_is_the_bound_of_the_whole_model(
    counts, n_words, learn_bias
):
    """At any stage: that of the model in which the rare words have no loadings."""
    training = part_way(
        counts, n_words, learn_bias=learn_bias, batch_size=60, l1=0.0, n_passes=3
    )
    loadings, bias = training.fitted()
    (rows,) = training.dealt.parts
    q = training.q[torch.from_numpy(rows)]
    mean, precision = q.mean, q.precision
    noise = standard_normals(
        (60, K), generator(0, Stream.NOISE, training.epoch, 0), mean
    )
    training.run(6, 0.0, lambda now: now.epoch == 3)
    x = torch.from_numpy(counts.toarray()[rows])
    points = mean + noise / precision.sqrt()
    lse = torch.logsumexp(bias + points @ loadings.t(), dim=1)
    likelihood = (x * (bias + mean @ loadings.t())).sum(dim=1) - x.sum(dim=1) * lse
    lam = 2.0
    kl = 0.5 * (lam / precision + lam * mean**2 + (precision / lam).log() - 1)
    kl = kl.sum(dim=1)
    seen = training.history[-1]
    assert seen.kl == pytest.approx(float(kl.mean()), rel=1e-10)
    assert seen.bound == pytest.approx(float((likelihood - kl).sum()), rel=1e-10)


def test_the_linear_half_of_the_gradient_is_kept_as_posteriors_move(counts):
    training = part_way(counts, 50)
    step = MinibatchStep(training, 50)
    step.update_basis()
    for batch in (0, 2):
        n = len(training.dealt.parts[batch])
        noise = torch.zeros(n, K, dtype=torch.float64)
        step.visit(training.batch(batch, 50), noise, 0.01, curved=True)
    x = torch.from_numpy(counts.toarray()[:, training.counts.order])
    expected = x.t() @ training.q.mean
    torch.testing.assert_close(step.linear_gradient, expected, rtol=0, atol=1e-9)


def test_new_words_leave_the_others_as_they_were(counts):
    training = part_way(counts, 20)
    order = training.counts.order
    before, bias_before = training.fitted()
    training._grow(50)
    after, bias_after = training.fitted()
    assert torch.equal(after[order[:20]], before[order[:20]])
    torch.testing.assert_close(bias_after[order[:20]], bias_before[order[:20]])
    assert (after[order[20:]] != 0).any()


@pytest.mark.parametrize("block", [7, 8192])
def test_blocks_of_a_sparse_pass_do_not_change_the_result(counts, block):
    whole = part_way(counts, 20).fitted()
    settings = MinibatchSettings(block=block)
    parts = part_way(counts, 20, settings=settings).fitted()
    for got, expected in zip(parts, whole, strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-9)
