"""Several views of a document: one embedding, a softmax for each view."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import logsumexp

from docsigma import BayesianSMM, load_model
from docsigma.covariances import Diagonal, Full
from docsigma.estep import NewtonSettings, infer, infer_full
from docsigma.exceptions import InputError
from docsigma.kernels import CountTensor, SoftmaxWords, Views, view_moments
from docsigma.marginal_likelihood import estimate_marginal_likelihood
from docsigma.objective import ExpectedLse
from docsigma.parts import Parts
from docsigma.priors import LearnedFullPrior

SIZES = (9, 6)
GRID = {1: 4001, 2: 301}


@cache
def setting(k):
    """A model of two views, twelve documents, and their evidence by quadrature."""
    rng = np.random.default_rng(k)
    views = Views(SIZES)
    loadings = rng.normal(size=(sum(SIZES), k)) + np.repeat([[1.0], [-2.0]], SIZES, 0)
    bias = rng.normal(size=sum(SIZES))
    counts = rng.poisson(1.0, size=(12, sum(SIZES))).astype(float)
    counts[0] = 0  # no word at all
    counts[1:4, views.ranges[0]] = 0
    counts[4:6, views.ranges[1]] = 0
    parts = Parts.of(prior_precision=2.0)
    model = parts.model(torch.tensor(loadings), torch.tensor(bias), None, views)
    line = np.linspace(-6, 6, GRID[k])
    axes = np.meshgrid(*[line] * k, indexing="ij")
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    joint = k * np.log(line[1] - line[0]) + log_joint(model, counts, points)
    return model, counts, points, joint, logsumexp(joint, axis=1)


def log_joint(model, counts, points):
    """log p(x, w) by numpy: documents x points."""
    t, m = model.loadings.numpy(), model.bias.numpy()
    total = -points.shape[1] * np.log(2 * np.pi / 2.0) / 2
    total = total - 0.5 * 2.0 * (points**2).sum(axis=1)
    for words in model.views.ranges:
        logits = m[words] + points @ t[words].T
        log_theta = logits - logsumexp(logits, axis=1, keepdims=True)
        total = total + counts[:, words] @ log_theta.T
    return total


def tensor(model, counts):
    return CountTensor(sp.csr_matrix(counts), model.bias, views=model.views)


@pytest.mark.parametrize("frequent", [False, True])
@pytest.mark.parametrize("k", [1, 2])
def test_posteriors_of_two_views_are_near_quadrature(k, frequent):
    model, counts, points, joint, evidence = setting(k)
    settings = NewtonSettings(large_vocabulary=0 if frequent else 2**30)
    documents = tensor(model, counts)
    found = infer(documents, model, Diagonal(), tol=1e-5, settings=settings)
    assert found.converged.all()
    bound = found.bound.numpy()
    assert (bound < evidence + 1e-9).all()
    assert (evidence - bound < 0.3).all()
    weights = np.exp(joint - evidence[:, None])
    mean = weights @ points
    std = np.sqrt(weights @ points**2 - mean**2)
    assert np.abs((found.posterior.mean.numpy() - mean) / std).max() < 0.2
    full = infer_full(documents, model, Full(), tol=1e-3)
    got = estimate_marginal_likelihood(
        documents, full.posterior, model, estimator="importance", n_draws=3000, seed=2
    )
    distance = np.abs(got.log_evidence.numpy() - evidence)
    # 4.5 standard errors over 24 documents: fails by chance with 1 in 6 000.
    assert (distance < 4.5 * got.standard_error.numpy() + 1e-6).all()
    jensen = estimate_marginal_likelihood(
        documents, found.posterior, model, estimator="jensen"
    )
    assert (jensen.log_evidence.numpy() < evidence + 1e-9).all()


@pytest.mark.parametrize("k", [1, 2])
def test_bound_and_its_optimum_are_those_of_autograd(k):
    model, counts, *_ = setting(k)
    documents = tensor(model, counts)
    found = infer(documents, model, Diagonal(), tol=1e-7, max_iter=2000)
    mean = found.posterior.mean.clone().requires_grad_()
    log_std = found.posterior.log_std.clone().requires_grad_()
    x = torch.tensor(counts)
    variance = (2 * log_std).exp()
    total = 0.5 * (1 + 2 * log_std + np.log(2.0) - 2.0 * (mean**2 + variance)).sum(1)
    for words in model.views.ranges:
        t, m, own = model.loadings[words], model.bias[words], x[:, words]
        # The best centre is where the bound is lowest; its derivative there is zero.
        centre = torch.zeros_like(mean.detach())
        for _ in range(200):
            away = t - centre[:, None]
            logits = m + (away * mean[:, None]).sum(2)
            logits = logits + 0.5 * (away**2 * variance[:, None]).sum(2)
            centre = (torch.softmax(logits, dim=1) @ t).detach()
        lse = (centre * mean).sum(1) + torch.logsumexp(logits, dim=1)
        total = total + own @ m + (own @ t * mean).sum(1) - own.sum(1) * lse
    total.sum().backward()
    np.testing.assert_allclose(found.bound, total.detach(), rtol=0, atol=1e-8)
    assert mean.grad.abs().max() < 1e-4
    assert log_std.grad.abs().max() < 1e-4


@pytest.mark.parametrize("family", [Diagonal(), Full()])
def test_expected_lse_averages_the_views(family):
    model, counts, *_ = setting(2)
    documents = tensor(model, counts)
    q = family.constant(12, 2, 0.3, model.bias)
    centre = torch.zeros(12, 4, dtype=torch.float64)
    found = ExpectedLse(model, family)(q, centre, documents.shares)
    value = 0.0
    for view, words in enumerate(model.views.ranges):
        own = Parts.of().model(model.loadings[words], model.bias[words])
        each = ExpectedLse(own, family)(q, centre[:, :2])
        value = value + documents.shares[:, view] * each.value
    torch.testing.assert_close(found.value, value)


def test_moments_and_gradients_of_views_are_autograds():
    model, counts, *_ = setting(2)
    documents = tensor(model, counts)
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(12, 2, generator=generator, dtype=torch.float64)
    points.requires_grad_()
    t = model.loadings.clone().requires_grad_()
    m = model.bias.clone().requires_grad_()
    lse = torch.stack(
        [torch.logsumexp(m[s] + points @ t[s].t(), dim=1) for s in model.views.ranges],
        dim=1,
    )
    average = (documents.shares * lse).sum(dim=1)
    average.sum().backward(retain_graph=True)
    slope = points.grad.clone()
    t.grad = m.grad = None
    (documents.view_tokens * lse).sum().backward()
    words = [SoftmaxWords(model.loadings[s], model.bias[s]) for s in model.views.ranges]
    found = view_moments(
        points.detach(),
        words,
        documents.shares,
        second=True,
        weights=documents.view_tokens,
    )
    spread = 0.0
    for view, s in enumerate(model.views.ranges):
        theta = torch.softmax(m[s] + points @ t[s].t(), dim=1)
        own = theta @ t[s] ** 2 - (theta @ t[s]) ** 2
        spread = spread + documents.shares[:, view, None] * own
    torch.testing.assert_close(found.lse, average.detach())
    torch.testing.assert_close(found.first, slope)
    torch.testing.assert_close(found.second - found.first**2, spread.detach())
    torch.testing.assert_close(found.loading_gradient, t.grad)
    torch.testing.assert_close(found.bias_gradient, m.grad)


WIDTHS = {"a": 60, "b": 80, "c": 50}


def drawn(n, seed=0, tokens=60, missing=0.3):
    """Counts drawn from a model of three views, and their embeddings."""
    rng = np.random.default_rng(0)
    words = [(rng.normal(size=(v, 3)) * 2, rng.normal(size=v)) for v in WIDTHS.values()]
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(n, 3)) * 10**-0.5
    counts = []
    for t, m in words:
        theta = np.exp(w @ t.T + m)
        theta /= theta.sum(axis=1, keepdims=True)
        counts.append(np.stack([rng.multinomial(tokens, row) for row in theta]))
    counts[1][rng.random(n) < missing] = 0
    return [sp.csr_matrix(x, dtype=np.float32) for x in counts], w


@cache
def fitted(**options):
    counts, w = drawn(800)
    joined = sp.hstack(counts, format="csr")
    smm = BayesianSMM(3, random_state=0, **options).fit(joined, views=WIDTHS)
    return smm, joined, w


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loadings": "point", "l1": 0.1},
        {"prior": "full"},
        {"prior": LearnedFullPrior()},
        {"solver": "paper", "loadings": "gaussian", "max_iter": 300},
        {"covariance": "full", "max_iter": 12},
    ],
    ids=["default", "point", "full prior", "object", "paper", "full covariance"],
)
def test_a_corpus_drawn_from_the_model_gives_its_embeddings_back(options):
    """In every view alone, the one that was left out of most rows too."""
    joined, w = (sp.hstack(drawn(800)[0], format="csr"), drawn(800)[1])
    smm = BayesianSMM(3, random_state=0, **options).fit(joined, views=WIDTHS)
    mean = np.c_[smm.transform(joined), np.ones(len(w))]
    axes, *_ = np.linalg.lstsq(mean, w, rcond=None)
    counts, true = drawn(400, seed=1, missing=0.0)
    for name, own in zip(WIDTHS, counts, strict=True):
        found = np.c_[smm.view(name).transform(own), np.ones(len(true))] @ axes
        # A view of 60 tokens knows nine tenths of the variance.
        left = ((true - found) ** 2).mean() / true.var()
        assert left < 0.15, name


def test_one_view_is_the_model_without_views_bit_for_bit():
    counts = drawn(300)[0][0]
    one = BayesianSMM(3, max_iter=5, random_state=0).fit(counts)
    same = BayesianSMM(3, max_iter=5, random_state=0).fit(counts, views={"a": 60})
    np.testing.assert_array_equal(one.components_, same.components_)
    np.testing.assert_array_equal(one.transform(counts), same.transform(counts))
    np.testing.assert_array_equal(
        one.transform(counts), same.view("a").transform(counts)
    )


def test_a_posterior_depends_on_its_document_only():
    smm, joined, _ = fitted()
    whole = smm.posterior(joined[:40]).mean
    rows = np.arange(40)[::-3].copy()
    np.testing.assert_allclose(
        smm.posterior(joined[rows]).mean, whole[rows], rtol=0, atol=2e-5
    )


def test_a_missing_view_adds_nothing():
    """A row with one view is that of the view alone; an empty one is the prior."""
    smm, *_ = fitted()
    counts, _ = drawn(20, seed=3)
    nothing = [sp.csr_matrix(x.shape, dtype=np.float32) for x in counts]
    alone = sp.hstack([nothing[0], counts[1], nothing[2]], format="csr")
    q, own = smm.posterior(alone), smm.view("b").posterior(counts[1])
    np.testing.assert_array_equal(q.mean, own.mean)
    np.testing.assert_array_equal(q.variance, own.variance)
    assert q.model_digest == own.model_digest == smm.digest
    empty = smm.posterior(sp.hstack(nothing, format="csr"))
    np.testing.assert_array_equal(empty.mean, 0)
    np.testing.assert_allclose(empty.variance, 0.1, rtol=1e-6)


def test_more_views_make_surer():
    smm, *_ = fitted()
    counts, _ = drawn(50, seed=4, missing=0.0)
    every = smm.posterior(sp.hstack(counts, format="csr")).total_variance
    for name, own in zip(WIDTHS, counts, strict=True):
        assert (every < smm.view(name).posterior(own).total_variance).all()


@pytest.mark.parametrize("solver", ["fast", "paper"])
def test_resumed_training_is_bit_for_bit_the_same(solver, tmp_path):
    counts = sp.hstack(drawn(200)[0], format="csr")
    options = {"max_iter": 6, "random_state": 0, "solver": solver, "tol": 0}
    whole = BayesianSMM(3, **options).fit(counts, views=WIDTHS)
    path = tmp_path / "checkpoint.safetensors"
    again = BayesianSMM(3, **options)
    given = {"views": WIDTHS, "checkpoint": path, "checkpoint_every": 1}
    again.fit(counts, callback=lambda now: now.epoch == 3, **given)
    again.fit(counts, resume=True, **given)
    np.testing.assert_array_equal(again.components_, whole.components_)
    with pytest.raises(InputError, match="other documents"):
        again.fit(counts, resume=True, **given | {"views": {"a": 140, "b": 50}})


def test_saved_model_is_the_same(tmp_path):
    smm, joined, _ = fitted()
    smm.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.views_ == WIDTHS
    assert list(loaded.views_) == list(WIDTHS)
    np.testing.assert_array_equal(loaded.transform(joined), smm.transform(joined))
    assert loaded.view("c").digest == smm.digest


@pytest.mark.parametrize(
    ("views", "options", "message"),
    [
        ({"a": 60, "b": 80}, {}, "sum to 190"),
        ({"a": 190, "b": 0}, {}, "positive"),
        ([60, 130], {}, "must map"),
        (WIDTHS, {"likelihood": "polya"}, "multinomial"),
    ],
)
def test_wrong_views_are_refused_in_one_sentence(views, options, message):
    counts = sp.hstack(drawn(50)[0], format="csr")
    with pytest.raises(InputError, match=message):
        BayesianSMM(2, **options).fit(counts, views=views)


def test_what_one_view_can_do_only_is_refused():
    smm, joined, _ = fitted()
    with pytest.raises(InputError, match="no view or language 'x'; it has a, b, c"):
        smm.view("x")
    with pytest.raises(InputError, match="has one view"):
        smm.view("a").view("a")
    with pytest.raises(InputError, match="learns one view"):
        smm.partial_fit(joined)
    with pytest.raises(InputError, match="for one view"):
        smm.perplexity(joined, estimator="predictive")


def test_bound_is_the_sum_over_views_and_perplexity_is_finite():
    smm, joined, _ = fitted()
    found = smm.perplexity(joined)
    assert 1 < found.corpus < 60
    turned = smm.principal_axes()
    assert turned.perplexity(joined).corpus == pytest.approx(found.corpus, rel=0.02)
    snapshots = []
    BayesianSMM(3, max_iter=2, random_state=0).fit(
        joined, views=WIDTHS, callback=lambda now: snapshots.append(now.snapshot())
    )
    assert snapshots[0].view("a").transform(joined[:, :60]).shape == (800, 3)


@pytest.mark.parametrize("options", [{}, {"loadings": "point", "l1": 0.1}])
def test_an_added_view_gives_embeddings_back_and_leaves_the_rest(options):
    counts, w = drawn(800, missing=0.0)
    both = sp.hstack(counts[:2], format="csr")
    known = {name: WIDTHS[name] for name in ("a", "b")}
    smm = BayesianSMM(3, random_state=0, **options).fit(both, views=known)
    q, before = smm.posterior(both), smm.digest
    own = counts[2].copy()
    own = sp.vstack([sp.csr_matrix((200, 50), dtype=np.float32), own[200:]], "csr")
    smm.extend("c", own, q)
    assert smm.views_ == WIDTHS
    assert smm.digest == before
    lacking = sp.csr_matrix(own.shape, dtype=np.float32)
    after = smm.posterior(sp.hstack([both, lacking], format="csr"))
    # Float32, in sums that may be of another order.
    np.testing.assert_allclose(after.mean, q.mean, rtol=0, atol=2e-6)
    axes, *_ = np.linalg.lstsq(np.c_[q.mean, np.ones(800)], w, rcond=None)
    test, true = drawn(400, seed=1, missing=0.0)
    found = smm.view("c").transform(test[2])
    left = ((true - np.c_[found, np.ones(400)] @ axes) ** 2).mean() / true.var()
    assert left < 0.15
    # As good as if it had been there from the start.
    whole = BayesianSMM(3, random_state=0, **options)
    whole.fit(sp.hstack([both, own], format="csr"), views=WIDTHS)
    theirs = whole.view("c").perplexity(test[2]).corpus
    assert smm.view("c").perplexity(test[2]).corpus < 1.02 * theirs


def test_views_that_cannot_be_added_are_refused():
    smm, joined, _ = fitted()
    counts, _ = drawn(10, seed=5)
    q = smm.posterior(joined[:10])
    with pytest.raises(InputError, match="has the view or language 'a' already"):
        smm.extend("a", counts[0], q)
    with pytest.raises(InputError, match="10 documents, `posterior` has 9"):
        smm.extend("d", counts[0], q[:9])
    with pytest.raises(InputError, match=r"'d' has words in 2 documents.*, 3"):
        smm.extend("d", counts[0][:2], q[:2])
    with pytest.raises(InputError, match="fitted with `views`"):
        smm.view("a").extend("d", counts[0], q)
    other = BayesianSMM(3, max_iter=2, random_state=1).fit(joined)
    with pytest.raises(InputError, match="another model"):
        smm.extend("d", counts[0], other.posterior(joined[:10]))
