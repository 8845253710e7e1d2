"""Every gradient against autograd in float64."""

from __future__ import annotations

import pytest
import torch

from docsigma.covariances import Diagonal, DiagonalGaussians
from docsigma.kernels import softmax_moments
from docsigma.loadings import PointLoadings
from docsigma.objective import kl_divergence
from docsigma.parts import Parts
from docsigma.random import Stream, generator, standard_normals
from docsigma.trainers import Algorithm1Trainer
from toy import toy

TOLERANCE = {"rtol": 0, "atol": 1e-8}


def bound(problem, mean, log_std, loadings, bias, noise):
    """The paper's objective written out, for autograd."""
    x = torch.from_numpy(problem.matrix.toarray())
    lam = problem.prior.precision
    w = mean[:, None] + log_std.exp()[:, None] * noise
    lse = torch.logsumexp(bias + w @ loadings.t(), dim=2).mean(dim=1)
    likelihood = (x * (bias + mean @ loadings.t())).sum(dim=1) - x.sum(dim=1) * lse
    variance = (2 * log_std).exp()
    k = mean.shape[1]
    log_lam = torch.log(torch.tensor(lam, dtype=torch.float64))
    trace = lam * variance.sum(1) + lam * (mean**2).sum(1)
    kl = 0.5 * (trace - variance.log().sum(1) - k * log_lam - k)
    return likelihood, kl


@pytest.fixture(params=[1, 3])
def setting(request):
    problem = toy(3, precision=2.0)
    source = torch.Generator().manual_seed(1)

    def normal(*shape):
        return torch.randn(*shape, generator=source, dtype=torch.float64)

    n = problem.matrix.shape[0]
    q = DiagonalGaussians(normal(n, 3), 0.3 * normal(n, 3) - 1)
    return problem, q, normal(n, request.param, 3)


def test_posterior_gradients_equal_autograd(setting):
    problem, q, noise = setting
    mean, log_std = (t.clone().requires_grad_() for t in (q.mean, q.log_std))
    likelihood, kl = bound(
        problem, mean, log_std, problem.loadings, problem.bias, noise
    )
    (likelihood - kl).sum().backward()
    torch.testing.assert_close(
        kl_divergence(q, problem.prior_tensors), kl.detach(), **TOLERANCE
    )
    points = q.points(noise)
    moments = softmax_moments(
        points.flatten(0, 1), problem.loadings, problem.bias, first=True
    )
    mean_gradient, log_std_gradient = q.gradients(
        problem.prior_tensors,
        problem.counts.project(problem.loadings),
        problem.counts.n_tokens,
        moments.first.view_as(points),
        noise,
    )
    torch.testing.assert_close(mean_gradient, mean.grad, **TOLERANCE)
    torch.testing.assert_close(log_std_gradient, log_std.grad, **TOLERANCE)


class _Recorder(PointLoadings):
    """Keeps the gradients of a pass and takes no step."""

    def full_ascent(self, columns, learning_rate):
        ascent = super().full_ascent(columns, learning_rate)
        recorder = self

        class Recording:
            state, restore = ascent.state, ascent.restore

            def ascend(self, columns, gradient):
                slope = gradient.linear - gradient.softmax
                recorder.seen = slope - recorder.l2 * columns

        return Recording()


@pytest.mark.parametrize("n_draws", [1, 4])
def test_a_pass_gives_autograds_gradients_and_bound(n_draws):
    problem = toy(3, precision=2.0)
    n = problem.matrix.shape[0]
    words = _Recorder(l1=0.5, l2=0.25)
    q = Diagonal().constant(n, 3, 0.1, problem.bias)
    parts = Parts.of(prior=problem.prior)
    parts = Parts(parts.likelihood, parts.prior, parts.covariance, words)
    start = problem.bias.clone()
    trainer = Algorithm1Trainer(
        problem.counts,
        q,
        parts,
        problem.loadings.clone(),
        start,
        learning_rate=1e-3,
        n_draws=n_draws,
        learn_bias=True,
        seed=3,
    )
    trainer.run(1, 0.0)
    noise = standard_normals(
        (n, n_draws, 3), generator(3, Stream.NOISE, 0), problem.bias
    )
    # The pass has moved the posteriors, then taken the gradients there.
    loadings = problem.loadings.clone().requires_grad_()
    bias = problem.bias.clone().requires_grad_()
    likelihood, kl = bound(problem, q.mean, q.log_std, loadings, bias, noise)
    penalty_l2 = 0.5 * 0.25 * (loadings**2).sum()
    ((likelihood - kl).sum() - penalty_l2).backward()
    torch.testing.assert_close(words.seen, loadings.grad, **TOLERANCE)
    # Adam's first step has the size of the rate and the sign of the gradient.
    step = 1e-3 * bias.grad.sign()
    clear = bias.grad.abs() > 1e-3
    torch.testing.assert_close((start - problem.bias)[clear], step[clear])
    loadings, likelihood = loadings.detach(), likelihood.detach()
    penalty_l2 = penalty_l2.detach()
    penalty = 0.5 * loadings.abs().sum() + penalty_l2
    expected = ((likelihood - kl).sum() - penalty).item()
    assert trainer.history[0].bound == pytest.approx(expected, abs=1e-8)
    assert trainer.history[0].kl == pytest.approx(float(kl.mean()), abs=1e-10)
