"""Words as Gaussians: their prior, their variances, and what follows from them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import logsumexp

from docsigma import BayesianSMM, load_corpus, load_model
from docsigma.covariances import Diagonal
from docsigma.estep import infer
from docsigma.exceptions import InputError
from docsigma.kernels import CountTensor
from docsigma.likelihoods import Multinomial
from docsigma.loadings import GaussianLoadings, WordGradient, WordInformation
from docsigma.marginal_likelihood import estimate_marginal_likelihood
from docsigma.objective import loadings_divergence
from docsigma.parts import Parts
from docsigma.priors import IsotropicPrior

V = 3


class FixedSecondMoment(GaussianLoadings):
    """Loadings whose second moment is given."""

    def second_moment(self, like):
        return torch.full_like(like[0], 0.4)


def small_model(k, spread):
    """Three words, so that T can be integrated by Gauss-Hermite quadrature."""
    random = np.random.default_rng(k)
    loadings = torch.from_numpy(random.normal(size=(V, k)))
    bias = torch.from_numpy(random.normal(size=V))
    variance = torch.from_numpy(spread * random.uniform(0.5, 1.5, size=(V, k)))
    parts = Parts(Multinomial(), IsotropicPrior(2.0), Diagonal(), FixedSecondMoment())
    counts = sp.csr_matrix(np.array([[3.0, 1, 0], [1, 0, 0], [0, 2, 9], [0, 0, 0]]))
    return parts.model(loadings, bias, variance), counts


def log_evidence_by_quadrature(model, counts):
    """Integrate T and w: given w the logits are independent Gaussians."""
    k, x = model.n_components, counts.toarray()
    nodes, weights = np.polynomial.hermite_e.hermegauss(14)
    weights = np.log(weights / weights.sum())
    z = np.stack([g.ravel() for g in np.meshgrid(*[nodes] * V)], axis=1)
    log_weight = sum(g.ravel() for g in np.meshgrid(*[weights] * V))
    line = np.linspace(-5, 5, {1: 201, 2: 31}[k])
    grid = np.meshgrid(*[line] * k, indexing="ij")
    w = np.stack([g.ravel() for g in grid], axis=1)
    variance, second = (t.numpy() for t in model.words)
    mean = model.bias.numpy() - 0.5 * variance @ second + w @ model.loadings.numpy().T
    std = np.sqrt((w**2) @ variance.T)
    found = np.empty((len(x), len(w)))
    for i in range(len(w)):
        logits = mean[i] + std[i] * z
        log_theta = logits - logsumexp(logits, axis=1, keepdims=True)
        found[:, i] = logsumexp(x @ log_theta.T + log_weight, axis=1)
    lam = 2.0
    prior = 0.5 * k * np.log(lam / (2 * np.pi)) - 0.5 * lam * (w**2).sum(axis=1)
    return logsumexp(found + prior, axis=1) + k * np.log(line[1] - line[0])


@pytest.mark.parametrize("spread", [0.01, 0.3, 1.5])
@pytest.mark.parametrize("k", [1, 2])
def test_predictive_bound_lies_under_the_evidence_with_t_integrated(k, spread):
    model, matrix = small_model(k, spread)
    counts = CountTensor(matrix, model.bias)
    evidence = log_evidence_by_quadrature(model, matrix)
    q = infer(counts, model, Diagonal()).posterior
    got = estimate_marginal_likelihood(
        counts, q, model, estimator="predictive", n_draws=4000
    )
    # 4.5 standard errors, 24 documents in all: fails by chance with 1 in 10 000.
    slack = 4.5 * got.standard_error.numpy() + 1e-6
    assert (got.log_evidence.numpy() < evidence + slack).all()
    # With wide words the bound is loose; where they are known it is near.
    if spread < 0.1:
        assert (evidence - got.log_evidence.numpy() < 0.7).all()


def test_without_variance_the_predictive_bound_is_the_plain_one():
    model, matrix = small_model(2, 1e-12)
    counts = CountTensor(matrix, model.bias)
    q = infer(counts, model, Diagonal()).posterior
    plain, predictive = (
        estimate_marginal_likelihood(
            counts, q, model, estimator=name, n_draws=64, seed=3
        )
        for name in ("monte_carlo", "predictive")
    )
    # The linear part has draws here, none there.
    slack = 6 * predictive.standard_error + 1e-9
    assert ((plain.log_evidence - predictive.log_evidence).abs() <= slack).all()


def test_divergence_is_that_of_torch():
    random = torch.Generator().manual_seed(0)
    mean = torch.randn(7, 3, generator=random, dtype=torch.float64)
    variance = torch.rand(7, 3, generator=random, dtype=torch.float64) + 0.1
    prior = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(
        normal(mean, variance.sqrt()), normal(0.0, prior.sqrt())
    ).sum()
    assert loadings_divergence(mean, variance, prior) == pytest.approx(float(expected))


def test_prior_is_learned_by_the_fixed_point():
    """Where all is known well, the variance is the mean square."""
    random = torch.Generator().manual_seed(1)
    scale = torch.tensor([0.3, 1.0, 3.0], dtype=torch.float64)
    mean = torch.randn(5000, 3, generator=random, dtype=torch.float64) * scale
    part = GaussianLoadings(least_variance=1e-9)
    ascent = part.full_ascent(mean.clone(), 1e-9)
    sums = WordInformation(
        torch.full_like(mean, 1e9), torch.ones(5000, 1, dtype=torch.float64)
    )
    flat = WordGradient(
        torch.zeros_like(mean), torch.zeros_like(mean), information=sums
    )
    for _ in range(400):
        ascent.ascend(mean, flat)
    # The hyper-prior is worth ten words of 5000.
    np.testing.assert_allclose(
        part.prior_variance_, mean.square().mean(dim=0), rtol=0.02, atol=0.003
    )


def test_scale_of_the_prior_is_held():
    part = GaussianLoadings(least_variance=0.05, prior_precision=10.0)
    mean = torch.zeros(1000, 4, dtype=torch.float64)
    part.full_ascent(mean, 0.01)
    for _ in range(200):
        part.learn_prior(mean, torch.full_like(mean, 1e-3), 0.5)
    assert part.prior_variance_.mean() == pytest.approx(0.5)
    # Nothing given: a logit variance of 5 in all.
    part = GaussianLoadings(prior_precision=10.0)
    part.full_ascent(mean, 0.01)
    for _ in range(200):
        part.learn_prior(mean, torch.full_like(mean, 1e-3), 0.5)
    assert part.prior_variance_.sum() == pytest.approx(50)


def test_counts_may_be_fractions(synthetic):
    halves = 0.5 * synthetic
    model = BayesianSMM(3, max_iter=3, random_state=0).fit(halves)
    assert np.isfinite(model.history_[-1]["bound"])
    # Half the words say less about a document.
    half, whole = model.posterior(halves), model.posterior(synthetic)
    assert half.total_variance.mean() > whole.total_variance.mean()


@pytest.fixture(scope="module")
def synthetic():
    return load_corpus("synthetic", n_train=1500).train.counts


@pytest.fixture(scope="module")
def fitted(synthetic):
    return BayesianSMM(10, random_state=0).fit(synthetic)


def test_gaussian_is_the_default_and_point_where_it_is_asked_for(fitted):
    assert isinstance(fitted.parts_.loadings, GaussianLoadings)
    for model in (BayesianSMM(l1=1.0), BayesianSMM(l2=1.0), BayesianSMM.paper()):
        assert not model._parts().loadings.has_variance
    assert BayesianSMM.paper().solver == "paper"


def test_rare_words_are_wide_and_frequent_ones_narrow(fitted, synthetic):
    totals = np.asarray(synthetic.sum(axis=0)).ravel()
    spread = fitted.words().total_variance
    order = np.argsort(totals)
    tenth = len(order) // 10
    assert spread[order[:tenth]].mean() > 1.5 * spread[order[-tenth:]].mean()


@pytest.mark.parametrize("solver", ["fast", "paper"])
def test_loadings_of_a_known_model_are_covered(solver):
    """One dimension, long documents: M is T up to sign and unit, S says how nearly."""
    random = np.random.default_rng(5)
    n, v = 1500, 60
    loadings, bias = random.normal(size=v), random.normal(size=v)
    w = random.normal(size=n) / np.sqrt(10)
    logits = bias + np.outer(w, loadings)
    theta = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    counts = sp.csr_matrix(np.stack([random.multinomial(400, p) for p in theta]))
    smm = BayesianSMM(
        1, loadings="gaussian", solver=solver, max_iter=100, random_state=0
    ).fit(counts.astype(np.float64))
    words = smm.words()
    mean, std = words.mean[:, 0], np.sqrt(words.variance[:, 0])
    # A constant added to all loadings changes m alone, so only differences are known.
    true = loadings - loadings.mean()
    mean = (mean - mean.mean()) * np.sign(np.corrcoef(mean, true)[0, 1])
    # Twice the loadings with half the embeddings are the same model.
    unit = (mean @ true) / (mean @ mean)
    inside = np.abs(unit * mean - true) < 1.645 * unit * std
    # Of 60 words 54 in expectation; 44 is 4.3 standard deviations below.
    assert inside.sum() >= 44


def test_with_much_data_the_point_model_comes_back():
    counts = 200 * load_corpus("synthetic").train.counts
    given = {"max_iter": 30, "random_state": 0}
    gaussian = BayesianSMM(3, **given).fit(counts)
    point = BayesianSMM(3, l1=0.0, **given).fit(counts)
    ratio = gaussian.history_[-1]["bound"] / point.history_[-1]["bound"]
    assert ratio == pytest.approx(1.0, abs=0.01)
    # Of the typical word: some never occur.
    assert np.median(gaussian.words().variance) < 0.01


def test_similar_words(fitted):
    found = fitted.similar_words(3, n=5)
    assert len(found) == 5
    assert all(isinstance(word, int) and word != 3 for word, _ in found)
    values = [value for _, value in found]
    assert values == sorted(values, reverse=True)
    assert -1 <= values[-1] <= values[0] <= 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"word": 10**6}, "must be from 0 to"),
        ({"word": "nonesuch"}, "has no vocabulary"),
        ({"word": 0, "n": 0}, "`n` must be at least 1, got 0"),
    ],
)
def test_bad_questions_get_one_sentence(fitted, given, sentence):
    with pytest.raises(InputError, match=sentence):
        fitted.similar_words(**given)


def test_point_loadings_have_no_word_gaussians(synthetic):
    model = BayesianSMM(3, l1=1.0, max_iter=2, random_state=0).fit(synthetic)
    with pytest.raises(InputError, match="words have no variances"):
        model.words()
    with pytest.raises(InputError, match="needs word loadings with variances"):
        model.perplexity(synthetic, estimator="predictive")


def test_saved_and_loaded_words_are_the_same(fitted, synthetic, tmp_path):
    fitted.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.words().variance, fitted.words().variance)
    some = synthetic[:50]
    ours, theirs = (
        model.perplexity(some, estimator="predictive").corpus
        for model in (fitted, again)
    )
    assert ours == theirs
    assert again.n_effective_components_ == fitted.n_effective_components_


@pytest.mark.parametrize("spare", [0, 8])
def test_dimensions_that_are_not_needed_are_switched_off(spare):
    corpus = load_corpus("synthetic", n_train=1500)
    k = corpus.truth.word_loadings.shape[1]
    smm = BayesianSMM(k + spare, random_state=0).fit(corpus.train.counts)
    assert smm.n_effective_components_ == k
    variance = np.sort(smm.parts_.loadings.prior_variance_)[::-1]
    if spare:
        assert variance[k:].mean() < 0.5 * variance[:k].mean()
