"""Estimators of a document's log evidence, given its posterior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import torch

from docsigma._array_checks import check_choice
from docsigma.exceptions import InputError
from docsigma.kernels import SoftmaxWords, softmax_moments, view_moments
from docsigma.objective import (
    ExpectedLse,
    document_bound,
    kl_divergence,
    log_prior,
)
from docsigma.random import Stream, generator, standard_normals

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.covariances import Gaussians
    from docsigma.kernels import CountTensor
    from docsigma.likelihoods import DocumentLikelihood
    from docsigma.objective import Model


# Points per call of the kernel.
CHUNK_POINTS = 16384


@dataclass(frozen=True)
class MarginalLikelihood:
    r"""Estimates of :math:`\log p(x_d)`, in nats.

    Attributes
    ----------
    log_evidence : Tensor of shape (n,), float64
    standard_error : Tensor of shape (n,), float64
        From the finite number of draws; zero for a deterministic estimator.
    """

    log_evidence: Tensor
    standard_error: Tensor


@dataclass(frozen=True)
class _Chunk:
    """Some documents, their posteriors and their likelihood."""

    model: Model
    words: list[SoftmaxWords]  # of each view
    q: Gaussians
    likelihood: DocumentLikelihood

    def lse(self, points: Tensor) -> Tensor:
        """Return the log-sum-exp at points of shape (n, R, K), float64."""
        flat = points.reshape(-1, points.shape[-1])
        if self.words[0].loadings.shape[1] > flat.shape[1]:
            flat = torch.cat([flat, 0.5 * flat * flat], dim=1)
        shares = self.likelihood.counts.shares
        if shares is None:
            lse = softmax_moments(flat, self.words[0]).lse
        else:
            n_draws = len(flat) // max(1, len(shares))
            each = shares.repeat_interleave(n_draws, dim=0)
            lse = view_moments(flat, self.words, each).lse
        return lse.double().view(points.shape[:-1])

    def bound(self, likelihood: Tensor) -> Tensor:
        """Return the bound of each document."""
        return document_bound(likelihood, kl_divergence(self.q, self.model.prior))


def tilted_value(chunk: _Chunk, points: Tensor, lse: Tensor) -> Tensor:
    r"""Bound :math:`\log E_T[p(x|w,T)]` at one point per document, float64.

    The document is itself evidence about the loadings of its words. So their logits
    :math:`u_i` are shifted by :math:`\delta_i` before the expectation, at a cost of
    :math:`\delta_i^2/2s_i` nats, where :math:`s_i = \sum_k S_{ik}^2 w_k^2` is the
    variance of :math:`u_i`. Any :math:`\delta` gives a bound; for the multinomial it is

    .. math::
        \log E_T[p(x|w,T)] \ge \sum_i x_i(u_i + \delta_i) - N\log\sum_j
        e^{u_j + \delta_j + s_j/2} - \sum_i\frac{\delta_i^2}{2 s_i}.

    Newton steps per word find the best one; it stays zero where that is better.
    """
    model, likelihood = chunk.model, chunk.likelihood
    counts, bias = likelihood.counts, likelihood.bias
    assert model.words is not None
    variance, rows = model.words.variance, counts.rows_of_values()
    spread = counts.logits(points.square(), variance, torch.zeros_like(bias)).double()
    spread = spread.clamp(min=1e-12)
    logits = counts.logits(points, model.loadings, bias).double()
    log_theta = logits - lse[rows]

    def sums(values: Tensor) -> Tensor:
        zeros = torch.zeros(len(counts), dtype=torch.float64, device=values.device)
        return zeros.index_add_(0, rows, values)

    effective = model.likelihood.effective_counts(counts, log_theta).double()
    tokens = sums(effective)[rows]
    mass = (log_theta + 0.5 * spread).exp()
    # The shift at which a word's expected count is its count: a larger one never pays.
    most = torch.log1p(effective / (tokens * mass).clamp(min=1e-300))
    shift = torch.minimum(spread * effective, most)
    for _ in range(4):
        whole = 1 + sums(mass * torch.expm1(shift))
        expected = mass * shift.exp() / whole[rows] * tokens
        slope = effective - expected - shift / spread
        shift = shift + slope / (expected + 1 / spread)
    whole = 1 + sums(mass * torch.expm1(shift))
    moved = log_theta + shift - whole.log()[rows]
    plain = model.likelihood.log_prob(counts, log_theta).double()
    found = model.likelihood.log_prob(counts, moved).double()
    found = found - 0.5 * sums(shift.square() / spread)
    return torch.where(found > plain, found, plain)


Draw = Callable[[int], "Tensor"]


def _monte_carlo(
    chunk: _Chunk, n_draws: int, draw: Draw, *, predictive: bool = False
) -> MarginalLikelihood:
    half = draw((n_draws + 1) // 2)
    opposite = half[:, : n_draws // 2].neg()
    points = chunk.q.points(torch.cat([half, opposite], dim=1))
    lse = chunk.lse(points)
    tokens = chunk.likelihood.counts.n_tokens.double()[:, None]
    if chunk.model.likelihood.linear and not predictive:
        # The linear half is exact at the mean: only the log-sum-exp is noisy.
        bound = chunk.bound(chunk.likelihood.value(chunk.q.mean, lse.mean(dim=1)))
        noisy = tokens * lse
    else:
        if predictive:
            draws = zip(points.unbind(dim=1), lse.unbind(dim=1), strict=True)
            noisy = torch.stack([tilted_value(chunk, *one) for one in draws], dim=1)
        else:
            noisy = chunk.likelihood.values(points, lse)
        bound = chunk.bound(noisy.mean(dim=1))
    # A draw and its opposite are not independent: the error is that of pair means.
    n_first = half.shape[1]
    n_pairs = n_draws - n_first
    pairs = 0.5 * (noisy[:, :n_pairs] + noisy[:, n_first:])
    error = torch.full_like(bound, math.nan)
    if n_pairs > 1:
        error = pairs.std(dim=1) / math.sqrt(n_pairs)
    return MarginalLikelihood(bound, error)


def _jensen(chunk: _Chunk, n_draws: int, draw: Draw) -> MarginalLikelihood:  # noqa: ARG001
    model, q = chunk.model, chunk.q
    # With the bound centred at zero it is the plain one.
    zero = torch.zeros_like(q.mean).repeat(1, len(model.ranges))
    shares = chunk.likelihood.counts.shares
    lse = ExpectedLse(model, q.family)(q, zero, shares).value
    bound = chunk.bound(chunk.likelihood.value(q.mean, lse))
    return MarginalLikelihood(bound, torch.zeros_like(bound))


def _authors(chunk: _Chunk, n_draws: int, draw: Draw) -> MarginalLikelihood:
    # Averaging the logits is averaging the points: the logits are linear in them.
    points = chunk.q.points(draw(n_draws)).mean(dim=1, keepdim=True)
    lse = chunk.lse(points)[:, 0]
    value = chunk.bound(chunk.likelihood.value(chunk.q.mean, lse))
    return MarginalLikelihood(value, torch.full_like(value, math.nan))


def _importance(chunk: _Chunk, n_draws: int, draw: Draw) -> MarginalLikelihood:
    noise = draw(n_draws)
    points = chunk.q.points(noise)
    likelihood = chunk.likelihood.values(points, chunk.lse(points))
    # Both densities without K/2 log(2 pi), which their ratio does not need.
    log_q = -0.5 * noise.double().square().sum(dim=2)
    log_q = log_q - 0.5 * chunk.q.log_determinant()[:, None]
    log_weights = likelihood + log_prior(points, chunk.model.prior) - log_q
    value = torch.logsumexp(log_weights, dim=1) - math.log(n_draws)
    weights = (log_weights - value[:, None]).exp()
    error = torch.full_like(value, math.nan)
    if n_draws > 1:
        error = weights.std(dim=1) / math.sqrt(n_draws)
    return MarginalLikelihood(value, error)


_FUNCTIONS: dict[str, Callable[[_Chunk, int, Draw], MarginalLikelihood]] = {
    "monte_carlo": _monte_carlo,
    "jensen": _jensen,
    "authors": _authors,
    "importance": _importance,
    "predictive": partial(_monte_carlo, predictive=True),
}
ESTIMATORS = tuple(_FUNCTIONS)


def estimate_marginal_likelihood(
    counts: CountTensor,
    posterior: Gaussians,
    model: Model,
    *,
    estimator: str = "monte_carlo",
    n_draws: int = 32,
    seed: int = 0,
    first_chunk: int = 0,
) -> MarginalLikelihood:
    r"""Estimate :math:`\log p(x_d)` of every document.

    The estimators differ in :math:`F = E_q[\log\sum_j\exp(m_j + t_j w)]`:

    ``monte_carlo``
        The mean of log-sum-exp over antithetic draws, the paper's equation for F.
        A lower bound on the evidence, up to the noise of the draws.
    ``jensen``
        :math:`\log\sum_j\exp(m_j + t_j\nu + \tfrac12 t_j^\top\Sigma t_j)`, an upper
        bound on F: deterministic, and still a lower bound on the evidence.
    ``authors``
        Log-sum-exp of the averaged logits, what the authors' public code computes.
        It lies *under* F, so it is **not** a bound for more than one draw.
    ``importance``
        :math:`\log\frac1S\sum_s p(x, w_s)/q(w_s)`: a lower bound in expectation
        that converges to the evidence.
    ``predictive``
        As ``monte_carlo``, for loadings with variances: a lower bound on the evidence
        in which T is integrated out too (:func:`tilted_value`). The rest use the mean
        of T.

    Parameters
    ----------
    counts, posterior : CountTensor and Gaussians
        The documents and their posteriors.
    model : Model
        Its prior is that of these documents, whose means may differ.
    estimator : {"monte_carlo", "jensen", "authors", "importance", "predictive"}
    n_draws : int, default=32
        Draws per document; ``jensen`` needs none.
    seed : int, default=0
    first_chunk : int, default=0
        Number of the first chunk of :func:`chunk_rows` documents, for callers that
        pass a corpus in pieces: the draws are then those of the whole.
    """
    check_choice("estimator", estimator, ESTIMATORS)
    if n_draws < 1:
        raise InputError(f"`n_draws` must be at least 1, got {n_draws}")
    columns, bias = model.loadings, model.bias
    if estimator == "predictive":
        if model.words is None:
            raise InputError(
                '`estimator="predictive"` needs word loadings with variances, as '
                'loadings="gaussian" has them'
            )
        if model.views is not None:
            raise InputError(
                '`estimator="predictive"` is for one view, and the model has '
                f"{len(model.views)}: `view` returns the model of one"
            )
        variance, second_moment = model.words
        columns = torch.cat([columns, variance], dim=1)
        bias = bias - 0.5 * variance @ second_moment
    words = [SoftmaxWords(columns[s], bias[s]) for s in model.ranges]
    like = posterior.mean
    everything = model.likelihood.bind(counts, model.loadings, bias)
    values, errors = [], []
    rows = torch.arange(len(counts), device=like.device)
    for number, some in enumerate(torch.split(rows, chunk_rows(n_draws)), first_chunk):
        whole = len(some) == len(counts)
        likelihood = everything if whole else everything.select(some)
        given = replace(model, prior=model.prior[some])
        chunk = _Chunk(given, words, posterior[some], likelihood)
        source = generator(seed, Stream.EVIDENCE, n_draws, number)

        def draw(n: int, size: int = len(some), s: torch.Generator = source) -> Tensor:
            return standard_normals((size, n, like.shape[1]), s, like)

        part = _FUNCTIONS[estimator](chunk, n_draws, draw)
        values.append(part.log_evidence)
        errors.append(part.standard_error)
    if not values:
        nothing = torch.zeros(0, dtype=torch.float64)
        return MarginalLikelihood(nothing, nothing)
    return MarginalLikelihood(torch.cat(values), torch.cat(errors))


def chunk_rows(n_draws: int) -> int:
    """Return the number of documents whose draws are evaluated together."""
    return max(1, CHUNK_POINTS // max(1, n_draws))
