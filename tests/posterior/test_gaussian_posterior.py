from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from docsigma import GaussianPosterior, GaussianPrior, InputError
from docsigma._tensors import write_tensors
from docsigma.posterior.gaussian_posterior import KIND


def diagonal(n=4, k=3, seed=0, **carried):
    random = np.random.default_rng(seed)
    mean, variance = random.standard_normal((n, k)), random.uniform(0.1, 2.0, (n, k))
    return GaussianPosterior(mean, variance, **carried)


def full(n=4, k=3, seed=0, **carried):
    random = np.random.default_rng(seed)
    factor = random.standard_normal((n, k, k))
    covariance = factor @ factor.transpose(0, 2, 1) + 0.1 * np.eye(k)
    mean = random.standard_normal((n, k))
    return GaussianPosterior(mean, covariance=covariance, **carried)


def prior_of(form, k=3, seed=1):
    random = np.random.default_rng(seed)
    mean = random.standard_normal(k)
    if form == "isotropic":
        return GaussianPrior(mean, 2.5)
    if form == "diagonal":
        return GaussianPrior(mean, random.uniform(0.5, 5.0, k))
    factor = random.standard_normal((k, k))
    return GaussianPrior(mean, factor @ factor.T + 0.5 * np.eye(k))


every_covariance = pytest.mark.parametrize("make", [diagonal, full])
every_prior = pytest.mark.parametrize("form", ["isotropic", "diagonal", "full"])


@every_covariance
def test_entropy_equals_scipys(make):
    q = make()
    covariance = q._full_covariance()
    expected = [
        multivariate_normal(m, c).entropy()
        for m, c in zip(q.mean, covariance, strict=True)
    ]
    np.testing.assert_allclose(q.entropy(), expected)


@every_covariance
def test_kl_is_the_mean_log_ratio_over_draws(make):
    q = make(n=1)
    draws = q.draws(200_000, random_state=0)[:, 0]
    ours = multivariate_normal(q.mean[0], q._full_covariance()[0])
    prior = multivariate_normal(np.zeros(3), np.eye(3) / 2.0)
    ratio = ours.logpdf(draws) - prior.logpdf(draws)
    # Five standard errors: fails by chance with 6e-7; the seed is fixed.
    slack = 5 * ratio.std() / np.sqrt(len(ratio))
    assert q.kl(prior_precision=2.0)[0] == pytest.approx(ratio.mean(), abs=slack)


@every_covariance
@every_prior
def test_kl_to_the_carried_prior_equals_torchs(make, form):
    prior = prior_of(form)
    q = make(prior=prior)
    normal = torch.distributions.MultivariateNormal
    ours = normal(torch.tensor(q.mean), torch.tensor(q._full_covariance()))
    theirs = normal(
        torch.tensor(prior.mean),
        precision_matrix=torch.tensor(prior.precision_matrix()),
    )
    expected = torch.distributions.kl_divergence(ours, theirs)
    np.testing.assert_allclose(q.kl(), expected.numpy(), rtol=1e-10)


@every_covariance
@every_prior
def test_kl_of_one_component_equals_quadrature(make, form):
    prior = prior_of(form, k=1)
    q = make(n=1, k=1, prior=prior)
    ours = norm(q.mean[0, 0], np.sqrt(q.variance[0, 0]))
    theirs = norm(prior.mean[0], 1 / np.sqrt(prior.precision_matrix()[0, 0]))
    expected, _ = quad(
        lambda w: ours.pdf(w) * (ours.logpdf(w) - theirs.logpdf(w)), -20, 20
    )
    assert q.kl()[0] == pytest.approx(expected, rel=1e-6)


@every_covariance
def test_kl_of_float32_is_reckoned_in_float64(make):
    prior = prior_of("full")
    q = make(prior=prior)
    arrays = q.to_arrays()
    for name in {name for name in arrays if not name.startswith("prior")}:
        arrays[name] = arrays[name].astype(np.float32)
    single = GaussianPosterior.from_arrays(arrays)
    for name in {name for name in arrays if not name.startswith("prior")}:
        arrays[name] = arrays[name].astype(np.float64)
    double = GaussianPosterior.from_arrays(arrays)
    assert single.mean.dtype == np.float32
    np.testing.assert_allclose(single.kl(), double.kl(), rtol=1e-12)


@every_prior
def test_a_posterior_equal_to_its_prior_has_no_divergence(form):
    prior = prior_of(form)
    covariance = np.linalg.inv(prior.precision_matrix())[None]
    q = GaussianPosterior(prior.mean[None], covariance=covariance, prior=prior)
    np.testing.assert_allclose(q.kl(), 0, atol=1e-12)


@every_covariance
def test_prior_precision_overrides_the_carried_prior(make):
    carried = make(prior=prior_of("full"))
    np.testing.assert_array_equal(
        carried.kl(prior_precision=2.0), make().kl(prior_precision=2.0)
    )


def test_kl_without_any_prior_gets_one_sentence():
    with pytest.raises(InputError, match="carries none: pass `prior_precision`, or"):
        diagonal().kl()


@pytest.mark.parametrize("precision", [0.0, -1.0, np.inf, np.nan])
def test_kl_refuses_precisions_that_are_none(precision):
    with pytest.raises(InputError, match="`prior_precision` must be positive"):
        diagonal().kl(prior_precision=precision)


def test_the_prior_has_no_divergence_from_itself():
    q = GaussianPosterior(np.zeros((2, 5)), np.full((2, 5), 0.1))
    np.testing.assert_allclose(q.kl(prior_precision=10.0), 0, atol=1e-12)


@every_covariance
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


@every_covariance
@every_prior
def test_slices_and_their_concatenation_give_the_whole(make, form):
    q = make(prior=prior_of(form), n_tokens=[5, 0, 2.5, 7])
    parts = [q[:1], q[1], q[np.array([2, 3])]]
    assert [len(part) for part in parts] == [1, 1, 2]
    joined = GaussianPosterior.concatenate(parts)
    assert joined.prior == q.prior
    assert_same_arrays(joined, q)


@every_covariance
@pytest.mark.parametrize(
    "rows", [slice(1, None, 2), [3, 0], np.array([True, False, True, False]), 2, -1]
)
def test_slices_keep_the_prior_and_their_documents_tokens(make, rows):
    q = make(prior=prior_of("diagonal"), n_tokens=[5, 0, 2.5, 7])
    assert q[rows].prior == q.prior
    np.testing.assert_array_equal(q[rows].n_tokens, np.atleast_1d(q.n_tokens[rows]))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_part_that_lacks_prior_or_tokens_leaves_the_whole_without(place):
    carried = {"prior": prior_of("full"), "n_tokens": [1, 2, 3, 4]}
    for lacking in carried:
        rest = {name: value for name, value in carried.items() if name != lacking}
        parts = [diagonal(**(rest if i == place else carried)) for i in range(3)]
        joined = GaussianPosterior.concatenate(parts)
        assert getattr(joined, lacking) is None
        assert all(getattr(joined, name) is not None for name in rest)


def test_equal_priors_of_different_forms_concatenate():
    mean = [0.0, 1.0, 2.0]
    forms = [2.0, [2.0, 2.0, 2.0], 2.0 * np.eye(3)]
    parts = [full(prior=GaussianPrior(mean, precision)) for precision in forms]
    assert GaussianPosterior.concatenate(parts).prior == parts[0].prior


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (
            GaussianPrior.isotropic(2.0, 3),
            r"0 and 2 have precision 1.0 and 2.0 at \[0\]",
        ),
        (GaussianPrior([0, 0, 0.5], 1.0), r"0 and 2 have mean 0.0 and 0.5 at \[2\]"),
    ],
)
def test_concatenating_different_priors_names_parts_and_numbers(other, sentence):
    prior = GaussianPrior.isotropic(1.0, 3)
    parts = [diagonal(prior=prior), diagonal(), diagonal(prior=other)]
    with pytest.raises(InputError, match=sentence):
        GaussianPosterior.concatenate(parts)


def assert_same_arrays(found, expected):
    arrays = found.to_arrays()
    assert set(arrays) == set(expected.to_arrays())
    for name, array in expected.to_arrays().items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape


def test_diagonal_and_full_concatenate_as_full():
    joined = GaussianPosterior.concatenate([diagonal(), full()])
    assert joined.covariance.shape == (8, 3, 3)
    np.testing.assert_allclose(joined.variance[:4], diagonal().variance)


@every_covariance
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("carried", ["nothing", "isotropic", "diagonal", "full"])
def test_save_and_load_keep_every_bit(tmp_path, make, dtype, carried):
    q = make()
    arrays = {name: a.astype(dtype) for name, a in q.to_arrays().items()}
    q = GaussianPosterior.from_arrays(arrays)
    if carried != "nothing":
        q = q.replace(prior=prior_of(carried), n_tokens=[5, 0, 2.5, 7])
    q.save(tmp_path / "q.safetensors")
    back = GaussianPosterior.load(tmp_path / "q.safetensors")
    assert back.prior == q.prior
    assert_same_arrays(back, q)
    assert back.mean.dtype == dtype


@every_covariance
def test_a_file_of_before_priors_loads_without(tmp_path, make):
    q = make()
    arrays = q.to_arrays()
    assert not [name for name in arrays if name.startswith(("prior", "n_tokens"))]
    write_tensors(tmp_path / "old.safetensors", arrays, {"kind": KIND})
    old = GaussianPosterior.load(tmp_path / "old.safetensors")
    assert old.prior is None
    assert old.n_tokens is None
    assert_same_arrays(old, q)


@pytest.mark.parametrize("gone", ["prior_mean", "prior_precision"])
def test_half_a_prior_is_refused(gone):
    arrays = diagonal(prior=prior_of("full")).to_arrays()
    del arrays[gone]
    with pytest.raises(InputError, match="are needed together, but only one is among"):
        GaussianPosterior.from_arrays(arrays)


@every_covariance
def test_replace_changes_what_is_given_and_keeps_the_rest(make):
    q = make(prior=prior_of("full"), n_tokens=[1, 2, 3, 4])
    other = q.replace(prior=prior_of("isotropic"))
    assert other.prior == prior_of("isotropic")
    np.testing.assert_array_equal(other.n_tokens, q.n_tokens)
    other = q.replace(n_tokens=[4, 3, 2, 1])
    assert other.prior == q.prior
    assert other.n_tokens.tolist() == [4, 3, 2, 1]
    assert q.n_tokens.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(other._full_covariance(), q._full_covariance())


def test_what_is_required_is_returned_or_asked_for_in_one_sentence():
    q = diagonal(prior=prior_of("full"), n_tokens=[1, 2, 3, 4])
    assert q.require_prior() is q.prior
    assert q.require_tokens() is q.n_tokens
    with pytest.raises(InputError, match="does not carry the prior .*replace"):
        diagonal().require_prior()
    with pytest.raises(InputError, match="does not carry the number .*replace"):
        diagonal().require_tokens()


@every_prior
def test_repr_names_prior_and_tokens(form):
    q = full(prior=prior_of(form), n_tokens=[5, 0, 2.5, 7])
    assert repr(q).endswith(f"full covariance, {form} prior, 14 tokens)")


def test_posterior_cannot_be_changed_in_place():
    given = np.array([1.0, 2.0, 3.0, 4.0])
    q = diagonal(n_tokens=given)
    with pytest.raises(ValueError, match="read-only"):
        q.mean[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        q.n_tokens[0] = 0.0
    given[0] = 0.0
    assert q.n_tokens[0] == 1.0


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


@pytest.mark.parametrize(
    ("carried", "sentence"),
    [
        ({"n_tokens": [1, 2]}, r"`n_tokens` must have the shape \(4,\), got \(2,\)"),
        ({"n_tokens": [[1, 2, 3, 4]]}, "`n_tokens` must have 1 dimensions, got 2"),
        ({"n_tokens": [1, 2, -3, 4]}, "`n_tokens` .* negative, got -3 in row 2"),
        ({"n_tokens": [1, 2, 3, np.nan]}, "`n_tokens` must be finite, got nan at"),
        ({"prior": 10.0}, "`prior` must be a GaussianPrior, got 10.0"),
        ({"prior": prior_of("full", k=2)}, "has 2 components, `mean` has 3"),
    ],
)
def test_bad_priors_and_tokens_get_one_sentence(carried, sentence):
    with pytest.raises(InputError, match=sentence):
        diagonal(**carried)


def test_concatenating_other_sizes_names_both():
    with pytest.raises(InputError, match="of 2 and 3 components"):
        GaussianPosterior.concatenate([diagonal(k=2), diagonal(k=3)])


def test_a_file_that_holds_no_posterior_is_refused(tmp_path):
    write_tensors(tmp_path / "other.safetensors", {"mean": np.zeros((1, 1))})
    with pytest.raises(InputError, match="holds no docsigma posterior"):
        GaussianPosterior.load(tmp_path / "other.safetensors")


def test_the_digest_of_the_model_travels(tmp_path):
    prior = GaussianPrior.isotropic(0.1, n_components=3)
    q = diagonal(prior=prior, n_tokens=[1, 2, 3, 4], model_digest="abc")
    for other in (
        q[1:],
        q.pool([0, 0, 1, 1]),
        q.replace(n_tokens=[1] * 4),
        GaussianPosterior.concatenate([q, q]),
    ):
        assert other.model_digest == "abc"
    q.save(tmp_path / "q.safetensors")
    assert GaussianPosterior.load(tmp_path / "q.safetensors").model_digest == "abc"
    mixed = GaussianPosterior.concatenate([q, diagonal(prior=prior)])
    assert mixed.model_digest is None
