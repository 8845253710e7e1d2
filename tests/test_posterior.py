from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from docsigma import GaussianPosterior, InputError


def diagonal(n=4, k=3, seed=0):
    random = np.random.default_rng(seed)
    return GaussianPosterior(
        random.standard_normal((n, k)), random.uniform(0.1, 2.0, (n, k))
    )


def full(n=4, k=3, seed=0):
    random = np.random.default_rng(seed)
    factor = random.standard_normal((n, k, k))
    covariance = factor @ factor.transpose(0, 2, 1) + 0.1 * np.eye(k)
    return GaussianPosterior(random.standard_normal((n, k)), covariance=covariance)


@pytest.mark.parametrize("make", [diagonal, full])
def test_entropy_equals_scipys(make):
    q = make()
    covariance = q._full_covariance()
    expected = [
        multivariate_normal(m, c).entropy()
        for m, c in zip(q.mean, covariance, strict=True)
    ]
    np.testing.assert_allclose(q.entropy(), expected)


@pytest.mark.parametrize("make", [diagonal, full])
def test_kl_is_the_mean_log_ratio_over_draws(make):
    q = make(n=1)
    draws = q.draws(200_000, random_state=0)[:, 0]
    ours = multivariate_normal(q.mean[0], q._full_covariance()[0])
    prior = multivariate_normal(np.zeros(3), np.eye(3) / 2.0)
    ratio = ours.logpdf(draws) - prior.logpdf(draws)
    # Five standard errors: fails by chance with 6e-7; the seed is fixed.
    slack = 5 * ratio.std() / np.sqrt(len(ratio))
    assert q.kl(prior_precision=2.0)[0] == pytest.approx(ratio.mean(), abs=slack)


def test_the_prior_has_no_divergence_from_itself():
    q = GaussianPosterior(np.zeros((2, 5)), np.full((2, 5), 0.1))
    np.testing.assert_allclose(q.kl(prior_precision=10.0), 0, atol=1e-12)


@pytest.mark.parametrize("make", [diagonal, full])
def test_draws_have_the_mean_and_covariance(make):
    q = make(n=2)
    draws = q.draws(100_000, random_state=1)
    np.testing.assert_allclose(draws.mean(axis=0), q.mean, atol=0.05)
    for d, covariance in enumerate(q._full_covariance()):
        np.testing.assert_allclose(np.cov(draws[:, d].T), covariance, atol=0.15)


def test_draws_repeat_with_the_seed():
    q = diagonal()
    np.testing.assert_array_equal(q.draws(2, 3), q.draws(2, 3))


def test_summaries_follow_the_variance():
    q = diagonal()
    np.testing.assert_allclose(q.total_variance, q.variance.sum(axis=1))
    np.testing.assert_allclose(np.exp(2 * q.log_std), q.variance)
    assert (
        repr(q) == "GaussianPosterior(4 documents, 3 components, diagonal covariance)"
    )


@pytest.mark.parametrize("make", [diagonal, full])
def test_slices_and_their_concatenation_give_the_whole(make):
    q = make()
    parts = [q[:1], q[1], q[np.array([2, 3])]]
    assert [len(part) for part in parts] == [1, 1, 2]
    joined = GaussianPosterior.concatenate(parts)
    for name, array in q.to_arrays().items():
        np.testing.assert_array_equal(joined.to_arrays()[name], array)


def test_diagonal_and_full_concatenate_as_full():
    joined = GaussianPosterior.concatenate([diagonal(), full()])
    assert joined.covariance.shape == (8, 3, 3)
    np.testing.assert_allclose(joined.variance[:4], diagonal().variance)


@pytest.mark.parametrize("make", [diagonal, full])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_save_and_load_keep_every_bit(tmp_path, make, dtype):
    q = make()
    arrays = {name: a.astype(dtype) for name, a in q.to_arrays().items()}
    q = GaussianPosterior.from_arrays(arrays)
    q.save(tmp_path / "q.safetensors")
    back = GaussianPosterior.load(tmp_path / "q.safetensors")
    for name, array in q.to_arrays().items():
        np.testing.assert_array_equal(back.to_arrays()[name], array)
        assert back.to_arrays()[name].dtype == dtype


def test_posterior_cannot_be_changed_in_place():
    with pytest.raises(ValueError, match="read-only"):
        diagonal().mean[0, 0] = 1.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([[0.0]],), "one of `variance` and `covariance`"),
        (([0.0], [1.0]), "`mean` must have 2 dimensions, got 1"),
        (([[0.0]], [[1.0, 1.0]]), r"shape \(1, 1\), got \(1, 2\)"),
        (([[0.0]], [[0.0]]), "must be positive, got 0 in row 0, column 0"),
        (([[np.nan]], [[1.0]]), "`mean` must be finite, got nan"),
        (([[0.0]], [[np.inf]]), "`variance` must be finite, got inf"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        GaussianPosterior(*arguments)


def test_concatenating_other_sizes_names_both():
    with pytest.raises(InputError, match="of 2 and 3 components"):
        GaussianPosterior.concatenate([diagonal(k=2), diagonal(k=3)])


def test_a_file_that_holds_no_posterior_is_refused(tmp_path):
    from docsigma._tensors import write_tensors

    write_tensors(tmp_path / "other.safetensors", {"mean": np.zeros((1, 1))})
    with pytest.raises(InputError, match="holds no docsigma posterior"):
        GaussianPosterior.load(tmp_path / "other.safetensors")
