from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import fisher_exact

from docsigma import GaussianPosterior, GaussianPrior
from docsigma.exceptions import InputError
from docsigma.explore.drift import (
    compare_batches,
    equal_lengths,
    estimate_shares,
    fisher_p_values,
)

PRIOR = GaussianPrior.isotropic(0.1, 4)


def batch(shares, n_documents, seed, variance=0.02):
    """Draw documents of four topics on the axes with these shares."""
    random = np.random.default_rng(seed)
    topic = random.choice(4, n_documents, p=shares)
    mean = 3 * np.eye(4)[topic] + 0.2 * random.normal(size=(n_documents, 4))
    variances = np.full((n_documents, 4), variance)
    return GaussianPosterior(mean, variances, prior=PRIOR)


def test_a_topic_that_grew_is_found_and_its_interval_holds_the_truth(corpus):
    model, _ = corpus
    old = batch([0.4, 0.3, 0.2, 0.1], 2000, 1)
    new = batch([0.2, 0.3, 0.2, 0.3], 2000, 2)
    found = compare_batches(model, old, new, n_topics=4)
    changes = sorted((topic.change.value, topic.grew) for topic in found.topics)
    assert changes[0][1] is False
    assert changes[-1][1] is True
    # Five standard errors of a difference of two shares: 5 sqrt(2 0.25 / 2000).
    assert changes[0][0] == pytest.approx(-0.2, abs=0.08)
    assert changes[-1][0] == pytest.approx(0.2, abs=0.08)


def test_two_halves_of_one_batch_rarely_alarm(corpus):
    model, _ = corpus
    shares = [0.4, 0.3, 0.2, 0.1]
    alarms = 0
    for seed in range(20):
        # The new documents are shorter, and less certain for it.
        old = batch(shares, 400, 2 * seed)
        new = batch(shares, 300, 2 * seed + 1, 0.2)
        found = compare_batches(model, old, new, n_topics=4, random_state=seed)
        alarms += any(topic.grew is not None for topic in found.topics)
    # At a rate of 0.05, 6 or more of 20 have a chance of 3e-4.
    assert alarms < 6


def test_a_few_documents_of_a_new_kind_are_a_finer_topic_that_grew(corpus):
    model, _ = corpus
    old, new = batch([0.25] * 4, 600, 1), batch([0.25] * 4, 570, 2)
    few = GaussianPosterior(
        np.full((30, 4), [1.5, 1.5, 0, 0]), np.full((30, 4), 0.02), prior=PRIOR
    )
    found = compare_batches(
        model, old, GaussianPosterior.concatenate([new, few]), n_topics=2
    )
    grown = [topic for topic in found.topics if topic.grew]
    assert any(set(topic.typical) & set(range(570, 600)) for topic in grown)
    assert len(found.topics) >= 3


def test_words_of_a_few_new_documents_are_found_and_of_the_others_none(corpus):
    model, texts = corpus
    counts = model.vocabulary_.count(texts).counts
    old, new = counts[::2].copy(), counts[1::2].tolil()
    absent = int(np.argmin(np.asarray((old > 0).sum(axis=0)).ravel()))
    new[:30, absent] = 1
    new = new.tocsr()
    posteriors = (model.posterior(batch) for batch in (old, new))
    found = compare_batches(model, *posteriors, counts=sp.vstack([old, new]))
    assert model.vocabulary_.words[absent] == found.words[0].word
    assert found.words[0].new > found.words[0].old
    # Benjamini and Hochberg's rate, and more words than the planted one are chance.
    assert len(found.words) <= 2


def test_fisher_p_values_are_those_of_scipy_s_sides():
    table = [[28, 2], [970, 998]]
    sides = [fisher_exact(table, side).pvalue for side in ("less", "greater")]
    found = fisher_p_values(np.array([2]), np.array([30]), 1000, 1998)
    assert found[0] == pytest.approx(2 * min(sides))


def test_documents_are_cut_to_the_lengths_of_the_other_batch():
    random = np.random.default_rng(0)
    old, new = random.poisson(3.0, (50, 30)), random.poisson(1.0, (20, 30))
    cut, kept = equal_lengths(sp.csr_matrix(old), sp.csr_matrix(new), random)
    assert (kept != sp.csr_matrix(new)).nnz == 0
    assert (cut.toarray() <= old).all()
    lengths = np.asarray(cut.sum(axis=1)).ravel()
    assert set(lengths.tolist()) <= set(new.sum(axis=1).tolist())
    # Means of 30 Poisson numbers: 20 documents of 30 +- 1.2.
    assert lengths.mean() == pytest.approx(new.sum() / 20, abs=1.5)


def test_shares_are_those_of_the_documents_however_uncertain():
    random = np.random.default_rng(0)
    topic = random.choice(2, 4000, p=[0.3, 0.7])
    for noise in (0.1, 1.0):
        seen = 2 * topic + np.sqrt(noise) * random.standard_normal(4000)
        likelihoods = np.exp(-((seen[:, None] - [0, 2]) ** 2) / (2 * noise))
        shares, errors = estimate_shares(likelihoods)
        # Four standard errors: a chance of 6e-5 each.
        assert abs(shares[0] - 0.3) < 4 * errors[0]
        assert 0.006 < errors[0] < 0.02


def test_intervals_widen_with_the_doubt_about_documents(corpus):
    model, _ = corpus
    shares = [0.25] * 4
    widths = []
    for variance in (0.001, 3.0):
        q = batch(shares, 200, 3, variance)
        found = compare_batches(model, q[:100], q[100:], n_topics=4)
        changes = [topic.change for topic in found.topics]
        widths.append(np.mean([change.high - change.low for change in changes]))
    assert widths[1] > 1.1 * widths[0]


def test_documents_of_a_new_kind_are_what_nothing_explains(corpus):
    model, _ = corpus
    old, new = batch([0.25] * 4, 1000, 1), batch([0.25] * 4, 1000, 2)
    strange = GaussianPosterior(
        np.full((50, 4), -3.0), np.full((50, 4), 0.02), prior=PRIOR
    )
    found = compare_batches(model, old, GaussianPosterior.concatenate([new, strange]))
    assert set(found.unexplained_rows) <= set(range(1000, 1050))
    assert found.unexplained_new.low > found.unexplained_old.high
    same = compare_batches(model, old, new)
    assert same.unexplained_new.low < 0.05


def test_unknown_words_and_not_short_texts_are_what_nothing_explains(corpus):
    model, texts = corpus
    counts = model.vocabulary_.count(texts).counts
    old, new = counts[::2], counts[1::2].copy()
    n_unknown = np.zeros(counts.shape[0])
    # Ten documents lose most of their words, ten others have unknown ones.
    new.data[: new.indptr[10]] = 1
    n_unknown[old.shape[0] + 10 : old.shape[0] + 20] = 30
    posteriors = [model.posterior(batch) for batch in (old, new)]
    found = compare_batches(
        model, *posteriors, counts=sp.vstack([old, new]), n_unknown=n_unknown
    )
    assert set(range(10, 20)) <= set(found.unexplained_rows)
    assert found.unexplained_new.value > found.unexplained_old.value


def test_a_batch_of_nothing_is_refused(corpus):
    model, _ = corpus
    q = batch([0.25] * 4, 10, 0)
    with pytest.raises(InputError, match="the new batch has 2 documents: at least 4"):
        compare_batches(model, q, q[:2])
