"""Full covariances: a few Newton steps from the diagonal optimum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.covariances import Diagonal, DiagonalGaussians, FullGaussians
from docsigma.estep.curvature import LoadingsBasis, PosteriorCurvature
from docsigma.estep.evaluator import Evaluation, Evaluator
from docsigma.estep.newton import Inferred, climb, infer
from docsigma.estep.settings import FullSettings, NewtonSettings
from docsigma.estep.state import State
from docsigma.kernels import Workspace, second_moments, softmax_moments
from docsigma.objective import document_bound, kl_divergence
from docsigma.random import Stream, antithetic_normals, generator

if TYPE_CHECKING:
    from collections.abc import Callable

    from docsigma.covariances import Full, Gaussians
    from docsigma.estep.curvature import Curvature
    from docsigma.kernels import CountTensor, SoftmaxWords
    from docsigma.likelihoods import DocumentLikelihood
    from docsigma.objective import Model
    from docsigma.priors import PriorTensors


def infer_full(
    counts: CountTensor,
    model: Model,
    family: Full,
    *,
    max_iter: int = 200,
    tol: float = 0.04,
    settings: FullSettings | None = None,
    progress: Callable[[int], object] | None = None,
) -> Inferred:
    r"""Maximise the bound of each document over full covariances.

    The bound is :func:`~docsigma.objective.document_bound` with the expectation over q
    taken as the mean over R fixed antithetic draws. By the theorems of Bonnet and Price
    its optimum obeys

    .. math::
        \Sigma^{-1} = \Lambda + E_q[n\,\mathrm{Cov}_\theta(t)], \qquad
        E_q[cT - n E_\theta[t]] = \Lambda(\nu - m_0)

    (if the likelihood is not linear, the first equation ignores that the effective
    counts c depend on w). Documents start at the diagonal optimum
    (:func:`~docsigma.estep.infer`). A step of the same loop evaluates the right side of
    the first equation, H, moves the mean by :math:`H^{-1}` times the gradient, and sets
    the precision to H. It is halved until the bound rises: on these draws no document
    is worse than with a diagonal. Three passes suffice.

    The draws are the same for every document, so that a posterior depends only on the
    document and the model. Parameters are those of :func:`~docsigma.estep.infer`.
    """
    settings = settings or FullSettings()
    start = infer(counts, model, Diagonal(), max_iter=max_iter, tol=tol)
    assert isinstance(start.posterior, DiagonalGaussians)
    found = Inferred(
        family.widen(start.posterior),
        start.n_iter.clone(),
        start.converged.clone(),
        start.bound.clone(),
    )
    words = DrawnBound(model, family, settings.draws(model.n_components))
    limit = min(settings.max_iter, max_iter)
    size = settings.rows(model.loadings, len(words.noise))
    for rows in torch.split(torch.arange(len(counts)), size):
        device_rows = rows.to(model.bias.device)
        block = counts if len(rows) == len(counts) else counts.select(device_rows)
        likelihood = model.likelihood.bind(block, model.loadings, model.bias)
        q, prior = found.posterior[device_rows], model.prior[device_rows]
        nothing = torch.zeros_like(q.mean[:, :1])
        state = State.start_at(likelihood, words, prior, q, nothing)
        climb(state, rows, found, limit, tol, progress)
    # If no step improves a document, it is as good as these draws can resolve.
    ended = found.n_iter - start.n_iter < limit
    return replace(found, converged=start.converged & (found.converged | ended))


class DrawnBound(Evaluator):
    """The bound with the expectation over q taken as a mean over fixed draws."""

    def __init__(self, model: Model, family: Full, n_draws: int) -> None:
        # The matrix is known exactly: whole Newton steps. The draws' slopes are less
        # reliable than their bound, which resolves the smallest change.
        settings = NewtonSettings(
            damping=1.0, caution=1.0, most_unclear=0.0, shortest_step=1 / 8, alive=1.0
        )
        # Not the parent's: its words would be K (K + 1) wide.
        self.model, self.family, self.settings = model, family, settings
        self.basis = LoadingsBasis(model.loadings, model.bias, model.prior, model.views)
        self.frequent = None
        self.words = model.softmax_words()
        self.workspace = Workspace()
        source = generator(0, Stream.CLIMB, n_draws)
        k = model.n_components
        self.noise = antithetic_normals(n_draws, k, source, model.bias)
        # With centred loadings, covariances are not small differences of large numbers.
        self.centred = [
            model.loadings[words] - mean
            for words, mean in zip(model.ranges, self.basis.means, strict=True)
        ]

    def evaluate(
        self,
        likelihood: DocumentLikelihood,
        q: Gaussians,
        centre: Tensor,
        prior: PriorTensors,
        *,
        frequent: bool = False,  # noqa: ARG002
    ) -> Evaluation:
        """Evaluate the bound, its gradient and the information at the draws of `q`."""
        model, k = self.model, q.mean.shape[1]
        points = q.points(self.noise[None])
        shape = points.shape[:2]
        of_views = [self._moments(points, words) for words in self.words]
        lse, slope = of_views[0]
        shares = likelihood.counts.shares
        if shares is not None:
            weights = shares.t()[:, :, None]
            lse = sum(w * lse for w, (lse, _) in zip(weights, of_views, strict=True))
            slope = sum(
                w[..., None] * slope
                for w, (_, slope) in zip(weights, of_views, strict=True)
            )
        if model.likelihood.linear:
            terms = likelihood.at(q.mean, lse.double().mean(dim=1))
            value, linear = terms.value, terms.linear_gradient
            tokens = (terms.tokens[:, None] / shape[1]).expand(shape)
        else:
            each = [likelihood.at(points[:, r], lse[:, r]) for r in range(shape[1])]
            value = torch.stack([terms.value for terms in each]).mean(dim=0)
            linear = torch.stack([terms.linear_gradient for terms in each]).mean(dim=0)
            tokens = torch.stack([terms.tokens for terms in each], 1) / shape[1]
        gradient = linear - (tokens[:, None, :] @ slope)[:, 0]
        information = q.mean.new_zeros(len(q), k, k)
        for view, (own_lse, own_slope) in enumerate(of_views):
            words = self.words[view]
            own = tokens if shares is None else tokens * shares[:, view : view + 1]
            information += second_moments(
                points, own_lse, own, words.loadings, words.bias, self.centred[view]
            )
            first = own_slope - self.basis.means[view]
            information -= first.mT @ (own[:, :, None] * first)
        return Evaluation(
            document_bound(value, kl_divergence(q, prior)),
            gradient - prior.penalty_gradient(q.mean),
            information,
            slope.mean(dim=1),
            # Draws have no centre: it stays the same.
            centre,
            tokens.sum(dim=1, keepdim=True),
        )

    def _moments(self, points: Tensor, words: SoftmaxWords) -> tuple[Tensor, Tensor]:
        """Return log-sum-exp (n, R) and expected loading (n, R, K) of a view."""
        moments = softmax_moments(
            points.reshape(-1, points.shape[2]),
            words,
            first=True,
            workspace=self.workspace,
        )
        assert moments.first is not None
        return moments.lse.view(points.shape[:2]), moments.first.view_as(points)

    def curvature(self, state: State, target: Gaussians) -> Curvature:  # noqa: ARG002
        """Return the stationary precision at the point of the last evaluation."""
        assert isinstance(target, FullGaussians)
        return PosteriorCurvature(target)
