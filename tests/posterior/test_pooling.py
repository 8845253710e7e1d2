from __future__ import annotations

import numpy as np
import pytest

from docsigma import GaussianPosterior, GaussianPrior, InputError


def pieces(rng, full, n=6, K=2):
    root = rng.normal(size=(K, K))
    prior = GaussianPrior(rng.normal(size=K), root @ root.T + np.eye(K))
    if not full:
        prior = GaussianPrior(prior.mean, prior.precision.diagonal())
    root = rng.normal(size=(n, K, K))
    extra = root @ root.transpose(0, 2, 1)
    precision = extra + prior.precision_matrix()
    carried = {"prior": prior, "n_tokens": np.arange(n)}
    mean = rng.normal(size=(n, K))
    if full:
        return GaussianPosterior(mean, covariance=np.linalg.inv(precision), **carried)
    return GaussianPosterior(mean, 1 / precision.diagonal(axis1=1, axis2=2), **carried)


def log_density(q, row, w):
    away = w - q.mean[row]
    return -0.5 * np.sum(away @ np.linalg.inv(q._full_covariance()[row]) * away, axis=1)


@pytest.mark.parametrize("full", [False, True])
def test_pooled_pieces_multiply_their_likelihoods(full):
    rng = np.random.default_rng(0)
    q = pieces(rng, full)
    groups = ["b", "a", "b", "b", "a", "c"]
    pooled = q.pool(groups)
    np.testing.assert_array_equal(pooled.n_tokens, [5, 5, 5])
    w = rng.normal(size=(50, 2))
    away = w - q.prior.mean
    prior = -0.5 * (q.prior.times_precision(away) * away).sum(axis=1)
    for row, rows in enumerate([[1, 4], [0, 2, 3], [5]]):
        expected = prior + sum(log_density(q, piece, w) - prior for piece in rows)
        difference = log_density(pooled, row, w) - expected
        # Equal up to the constant of the density.
        np.testing.assert_allclose(difference, difference[0], atol=1e-9)


def test_pieces_of_one_document_become_one():
    q = pieces(np.random.default_rng(1), full=False)
    assert len(q.pool()) == 1
    np.testing.assert_allclose(q[:1].pool().mean, q[:1].mean, rtol=1e-12)


def test_pooling_needs_a_prior_and_one_group_per_piece():
    q = pieces(np.random.default_rng(1), full=False)
    with pytest.raises(InputError, match="does not carry the prior"):
        GaussianPosterior(q.mean, q.variance).pool()
    with pytest.raises(InputError, match=r"`groups` must have the shape \(6,\)"):
        q.pool([0, 1])
