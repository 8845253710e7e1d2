"""Estimators of a document's log evidence, given its posterior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from docsigma.exceptions import InputError
from docsigma.inference.draws import generator, standard_normals
from docsigma.kernels import softmax_moments

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.inference.diagonal import DiagonalGaussian
    from docsigma.inference.multinomial import MultinomialCounts
    from docsigma.inference.prior import IsotropicPrior

__all__ = ["ESTIMATORS", "Evidence", "estimate_evidence"]

# Points whose logits one call of the kernel makes.
CHUNK_POINTS = 16384


@dataclass(frozen=True)
class Evidence:
    r"""Estimates of :math:`\log p(x_d)`, in nats.

    Attributes
    ----------
    log_evidence : Tensor of shape (n,), float64
        One number a document.
    standard_error : Tensor of shape (n,), float64
        Its standard error from the finite number of draws; zero for a
        deterministic estimator.
    """

    log_evidence: Tensor
    standard_error: Tensor


@dataclass(frozen=True)
class _Model:
    loadings: Tensor
    bias: Tensor
    prior: IsotropicPrior

    def lse(self, points: Tensor) -> Tensor:
        """Log-sum-exp at points of any leading shape, in float64."""
        flat = points.reshape(-1, points.shape[-1])
        lse = softmax_moments(flat, self.loadings, self.bias).lse
        return lse.double().view(points.shape[:-1])


@dataclass(frozen=True)
class _Chunk:
    """Some documents: posterior, tokens, and the linear terms of the likelihood."""

    q: DiagonalGaussian
    n_tokens: Tensor
    score: Tensor
    linear: Tensor

    def bound(self, prior: IsotropicPrior, expected_lse: Tensor) -> Tensor:
        r""":math:`x\cdot m + (xT)\cdot\nu - N F - KL(q\,\|\,p)`."""
        mean = self.q.mean.double()
        likelihood = self.score + (self.linear * mean).sum(dim=1)
        return likelihood - self.n_tokens * expected_lse - self.q.kl(prior)


Draw = Callable[[int], "Tensor"]


def _monte_carlo(chunk: _Chunk, model: _Model, n_draws: int, draw: Draw) -> Evidence:
    half = draw((n_draws + 1) // 2)
    opposite = half[:, : n_draws // 2].neg()
    lse = model.lse(chunk.q.points(torch.cat([half, opposite], dim=1)))
    bound = chunk.bound(model.prior, lse.mean(dim=1))
    # A draw and its opposite are not independent: the error is that of their means.
    n_pairs = n_draws // 2
    pairs = 0.5 * (lse[:, :n_pairs] + lse[:, half.shape[1] :])
    error = torch.full_like(bound, math.nan)
    if n_pairs > 1:
        error = chunk.n_tokens * pairs.std(dim=1) / math.sqrt(n_pairs)
    return Evidence(bound, error)


def _jensen(chunk: _Chunk, model: _Model, n_draws: int, draw: Draw) -> Evidence:  # noqa: ARG001
    half_variance = 0.5 * (2 * chunk.q.log_std).exp()
    points = torch.cat([chunk.q.mean, half_variance], dim=1)
    loadings = torch.cat([model.loadings, model.loadings.square()], dim=1)
    lse = softmax_moments(points, loadings, model.bias).lse.double()
    bound = chunk.bound(model.prior, lse)
    return Evidence(bound, torch.zeros_like(bound))


def _authors(chunk: _Chunk, model: _Model, n_draws: int, draw: Draw) -> Evidence:
    # Averaging the logits is averaging the points: the logits are linear in them.
    points = chunk.q.points(draw(n_draws)).mean(dim=1)
    value = chunk.bound(model.prior, model.lse(points))
    return Evidence(value, torch.full_like(value, math.nan))


def _importance(chunk: _Chunk, model: _Model, n_draws: int, draw: Draw) -> Evidence:
    noise = draw(n_draws)
    points = chunk.q.points(noise)
    lse = model.lse(points)
    precise = points.double()
    lam = model.prior.precision
    likelihood = chunk.score[:, None] - chunk.n_tokens[:, None] * lse
    likelihood += torch.einsum("dk,drk->dr", chunk.linear, precise)
    log_prior = 0.5 * math.log(lam) - 0.5 * lam * precise.square()
    log_q = -0.5 * noise.double().square() - chunk.q.log_std.double()[:, None, :]
    log_weights = likelihood + (log_prior - log_q).sum(dim=2)
    value = torch.logsumexp(log_weights, dim=1) - math.log(n_draws)
    weights = (log_weights - value[:, None]).exp()
    error = torch.full_like(value, math.nan)
    if n_draws > 1:
        error = weights.std(dim=1) / math.sqrt(n_draws)
    return Evidence(value, error)


_FUNCTIONS = {
    "monte_carlo": _monte_carlo,
    "jensen": _jensen,
    "authors": _authors,
    "importance": _importance,
}
ESTIMATORS = tuple(_FUNCTIONS)


def estimate_evidence(
    counts: MultinomialCounts,
    posterior: DiagonalGaussian,
    loadings: Tensor,
    bias: Tensor,
    prior: IsotropicPrior,
    *,
    estimator: str = "monte_carlo",
    n_draws: int = 32,
    seed: int = 0,
) -> Evidence:
    r"""Estimate :math:`\log p(x_d)` of every document.

    The estimators differ in :math:`F = E_q[\log\sum_j\exp(m_j + t_j w)]`:

    ``monte_carlo``
        The mean of log-sum-exp over antithetic draws, the paper's equation for F.
        A lower bound on the evidence, up to the noise of the draws.
    ``jensen``
        :math:`\log\sum_j\exp(m_j + t_j\nu + \tfrac12 t_j^2 s^2)`, an upper bound on
        F: deterministic, and still a lower bound on the evidence.
    ``authors``
        Log-sum-exp of the averaged logits, what the authors' public code computes.
        It lies *under* F, so it is **not** a bound for more than one draw.
    ``importance``
        :math:`\log\frac1S\sum_s p(x, w_s)/q(w_s)`: a lower bound in expectation
        that converges to the evidence.

    Parameters
    ----------
    counts : MultinomialCounts
        The documents.
    posterior : DiagonalGaussian
        Their posteriors.
    loadings, bias, prior
        The model.
    estimator : {"monte_carlo", "jensen", "authors", "importance"}
        See above.
    n_draws : int, default=32
        Draws a document; ``jensen`` needs none.
    seed : int, default=0
        Decides the draws.

    Returns
    -------
    Evidence
    """
    if estimator not in _FUNCTIONS:
        known = ", ".join(ESTIMATORS)
        raise InputError(f"`estimator` must be one of {known}, got {estimator!r}")
    if n_draws < 1:
        raise InputError(f"`n_draws` must be at least 1, got {n_draws}")
    model = _Model(loadings, bias, prior)
    source = generator(seed, n_draws)
    score = counts.score(bias).double()
    linear = counts.project(loadings).double()
    n_tokens = counts.n_tokens.double()
    values, errors = [], []
    rows = max(1, CHUNK_POINTS // n_draws)
    for start in range(0, len(counts), rows):
        block = slice(start, start + rows)
        q = posterior[block]
        chunk = _Chunk(q, n_tokens[block], score[block], linear[block])

        def draw(n: int, q: DiagonalGaussian = q) -> Tensor:
            return standard_normals((len(q.mean), n, q.mean.shape[1]), source, q.mean)

        part = _FUNCTIONS[estimator](chunk, model, n_draws, draw)
        values.append(part.log_evidence)
        errors.append(part.standard_error)
    return Evidence(torch.cat(values), torch.cat(errors))
