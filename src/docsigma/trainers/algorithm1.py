"""Algorithm 1 of the paper: stochastic variational Bayes over the whole corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from docsigma.exceptions import InputError
from docsigma.kernels import SoftmaxWords, softmax_moments, view_moments
from docsigma.loadings import WordGradient, WordInformation
from docsigma.objective import document_bound, kl_divergence
from docsigma.optimizers import Adam
from docsigma.random import Stream, generator, standard_normals
from docsigma.trainers._base import (
    Documents,
    PassSums,
    StopRule,
    Trainer,
    learn_parts,
)
from docsigma.trainers.settings import Algorithm1Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docsigma.covariances import DiagonalGaussians, Gaussians, Points
    from docsigma.kernels import CountTensor, SoftmaxMoments
    from docsigma.likelihoods import DocumentLikelihood
    from docsigma.optimizers import Optimizer
    from docsigma.parts import Parts


class Algorithm1Trainer(Trainer):
    """The state of a training by Algorithm 1, and its passes.

    One pass: draw noise; one Adam step on every document's posterior; the bound at
    the new posteriors; one (orthant-wise) Adam step on T, and on m if it is learned.
    Every document has its own gradient and its own Adam moments, and the penalty
    and the KL count once per pass.

    Parameters
    ----------
    counts : CountTensor
        The training documents.
    posterior : DiagonalGaussians or Points
        Initial posteriors, moved in place. Points have no draws.
    parts : Parts
    loadings, bias : Tensors of shape (V, K) and (V,)
        Initial T and m, moved in place; m only if `learn_bias`.
    learning_rate : float
        Adam's step size, for posteriors and words.
    n_draws : int
        Draws per document and pass, R.
    learn_bias : bool
    seed : int
        Seeds the noise, together with the number of the pass.
    covariates : Tensor of shape (n, P) or None
        Covariates of the documents, for the prior.
    """

    def __init__(
        self,
        counts: CountTensor,
        posterior: DiagonalGaussians | Points,
        parts: Parts,
        loadings: Tensor,
        bias: Tensor,
        *,
        learning_rate: float,
        n_draws: int,
        learn_bias: bool,
        seed: int,
        covariates: Tensor | None = None,
    ) -> None:
        super().__init__(seed)
        for _, part in parts.items():
            if part.learns_from_unseen():
                raise InputError(
                    'solver="paper" trains the words on all documents, and '
                    f"{part!r} learns from unseen ones: set what it would learn, or "
                    'use solver="fast"'
                )
        self.counts, self.posterior = counts, posterior
        self.parts: Parts = parts
        self.loadings, self.bias = loadings, bias
        self.n_draws = n_draws
        self._covariates = None if covariates is None else covariates.to(loadings)
        self._read_prior()
        self.ascent = parts.loadings.full_ascent(loadings, learning_rate)
        self._bias_ascent = Adam(bias, learning_rate) if learn_bias else None
        # Points have a curvature too, which no step moves.
        names = ["mean"] if posterior.is_point else ["mean", "log_std"]
        tensors = posterior.tensors()
        self._posterior_ascent = {n: Adam(tensors[n], learning_rate) for n in names}

    def _read_prior(self) -> None:
        """Set the prior of the documents as it is now."""
        k = self.loadings.shape[1]
        self.prior = self.parts.prior.tensors(k, self.loadings, self._covariates)

    @property
    def n_documents(self) -> int:
        """Documents of the corpus."""
        return len(self.counts)

    def fitted(self) -> tuple[Tensor, Tensor]:
        """Return the columns of the words and m."""
        return self.parts.loadings.columns(self.loadings), self.bias

    def documents_now(self) -> list[Documents]:
        """Return all documents, with their posteriors and their prior."""
        return [Documents(self.counts, self.posterior, self.prior)]

    def words_now(self) -> tuple[Tensor, Tensor]:
        """Return T and m."""
        return self.loadings, self.bias

    def moved(self) -> tuple[Tensor, Tensor]:
        """Return the loadings and m."""
        return self.loadings, self.bias

    def stop_rule(self) -> StopRule:
        """Return the rule, the same throughout."""
        settings = Algorithm1Settings()
        return StopRule(settings.window, settings.kl_growth)

    def one_pass(self) -> PassSums:
        """Move every posterior, then the words."""
        k = self.posterior.mean.shape[1]
        likelihood = self.parts.likelihood.bind(self.counts, self.loadings, self.bias)
        words = SoftmaxWords(self.loadings, self.bias)
        shape = (self.n_documents, self.n_draws, k)
        source = generator(self.seed, Stream.NOISE, self.epoch)
        noise = standard_normals(shape, source, self.loadings)
        self._move_posteriors(likelihood, words, noise)

        points, n_draws = self.posterior.points(noise), self.n_draws
        inputs = points.flatten(0, 1)
        if self.parts.likelihood.linear:
            tokens = self.counts.n_tokens[:, None].expand(-1, n_draws) / n_draws
            moments = self._moments(inputs, words, weights=tokens.flatten())
            lse = moments.lse.double().view(-1, n_draws).mean(dim=1)
            value = likelihood.value(self.posterior.mean, lse)
            linear = self.counts.backproject(self.posterior.mean)
            totals = self.counts.word_totals()
        else:
            lse = softmax_moments(inputs, words).lse.view(-1, n_draws)
            each = [likelihood.at(points[:, r], lse[:, r]) for r in range(n_draws)]
            value = torch.stack([terms.value for terms in each]).mean(dim=0)
            tokens = torch.stack([terms.tokens for terms in each], dim=1) / n_draws
            linear = torch.zeros_like(self.loadings)
            totals = torch.zeros_like(self.bias)
            for draw, terms in enumerate(each):
                linear += terms.counts.backproject(points[:, draw]) / n_draws
                totals += terms.counts.word_totals() / n_draws
            moments = softmax_moments(inputs, words, weights=tokens.flatten())
        assert moments.loading_gradient is not None
        assert moments.bias_gradient is not None
        bias_gradient = totals - moments.bias_gradient
        kl = kl_divergence(self.posterior, self.prior)
        bound = float(document_bound(value, kl).sum())
        penalty = self.parts.loadings.penalty(self.loadings)
        gradient = WordGradient(
            linear, moments.loading_gradient, information=self._information()
        )
        self.ascent.ascend(self.loadings, gradient)
        if self._bias_ascent is not None:
            self._bias_ascent.ascend(self.bias, bias_gradient)
        if learn_parts(self.parts, self.loadings, self.bias, self.documents_now()):
            self._read_prior()
        return PassSums(bound, float(kl.sum()), penalty)

    def _information(self) -> WordInformation | None:
        """Return the sums over documents that loadings with variances need."""
        if not self.parts.loadings.has_variance:
            return None
        q = self.posterior
        curvature = self.counts.backproject(q.mean.square() + q.variance)
        totals = self.counts.word_totals()
        return WordInformation(curvature, totals[:, None])

    def _move_posteriors(
        self, likelihood: DocumentLikelihood, words: SoftmaxWords, noise: Tensor
    ) -> None:
        """Move the posterior of every document by one Adam step."""
        q = self.posterior
        points = q.points(noise)
        moments = self._moments(points.flatten(0, 1), words, first=True)
        assert moments.first is not None
        first = moments.first.view_as(points)
        linear, tokens = self._linear(likelihood, q, points, moments.lse)
        found = q.gradients(self.prior, linear, tokens, first, noise)
        ascents = self._posterior_ascent.items()
        for (name, optimizer), gradient in zip(ascents, found, strict=False):
            optimizer.ascend(q.tensors()[name], gradient)

    def _moments(
        self,
        inputs: Tensor,
        words: SoftmaxWords,
        *,
        first: bool = False,
        weights: Tensor | None = None,
    ) -> SoftmaxMoments:
        """Return the moments at all draws of all documents."""
        views, shares = self.counts.views, self.counts.shares
        if views is None or shares is None:
            return softmax_moments(inputs, words, first=first, weights=weights)
        parts = [
            SoftmaxWords(words.loadings[some], words.bias[some])
            for some in views.ranges
        ]
        shares = shares.repeat_interleave(self.n_draws, dim=0)
        each = None if weights is None else shares * weights[:, None]
        return view_moments(inputs, parts, shares, first=first, weights=each)

    def _linear(
        self, likelihood: DocumentLikelihood, q: Gaussians, points: Tensor, lse: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return effective counts times T, and their sums, per draw if not linear."""
        lse = lse.view(-1, self.n_draws)
        if self.parts.likelihood.linear:
            terms = likelihood.at(q.mean, lse.mean(dim=1))
            return terms.linear_gradient, terms.tokens
        draws = [likelihood.at(points[:, r], lse[:, r]) for r in range(self.n_draws)]
        return (
            torch.stack([terms.linear_gradient for terms in draws], dim=1),
            torch.stack([terms.tokens for terms in draws], dim=1),
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that training moves in place, for a checkpoint."""
        posterior = {f"posterior.{k}": v for k, v in self.posterior.tensors().items()}
        return {"columns": self.loadings, "bias": self.bias} | posterior

    def restore(self, state: dict[str, Tensor], history: list[dict[str, Any]]) -> None:
        """Restore the state that :meth:`state` returned, and its history."""
        super().restore(state, history)
        self._read_prior()

    def optimizers(self) -> Mapping[str, Optimizer]:
        """Return the optimizers by name, for a checkpoint."""
        found: dict[str, Optimizer] = {"loadings": self.ascent}
        found |= {f"posterior.{k}": v for k, v in self._posterior_ascent.items()}
        if self._bias_ascent is not None:
            found["bias"] = self._bias_ascent
        return found
