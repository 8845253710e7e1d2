"""Algorithm 1 of the paper: stochastic variational Bayes over the whole corpus."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

from docsigma.inference.adam import Adam
from docsigma.inference.draws import generator, standard_normals
from docsigma.inference.trainer import (
    Epoch,
    Trainer,
    optimizer_state,
    restore_optimizers,
)
from docsigma.kernels import softmax_moments

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from docsigma.inference.diagonal import DiagonalGaussian
    from docsigma.inference.multinomial import MultinomialCounts
    from docsigma.inference.point_loadings import PointLoadings
    from docsigma.inference.prior import IsotropicPrior

__all__ = ["PaperTrainer"]

# Documents whose draws are held at once; the words are blocked by the kernel.
CHUNK = 8192
# The bound is noisy: convergence compares the means of two windows of passes. The start
# is a saddle, T near zero, where the bound stands still before it climbs: hence wide
# windows, and the look at the KL, which grows as T leaves it.
WINDOW = 50
KL_GROWTH = 0.01


class PaperTrainer(Trainer):
    """The state of a training by Algorithm 1, and its passes.

    One pass: draw noise; one Adam step on every document's posterior; the bound at
    the new posteriors; one (orthant-wise) Adam step on T, and on m if it is learned.
    Every document has its own gradient and its own Adam moments, and the penalty
    and the KL count once a pass, whatever the size of the blocks.

    Parameters
    ----------
    counts : MultinomialCounts
        The training documents.
    posterior : DiagonalGaussian
        Where the posteriors start; moved in place.
    prior : IsotropicPrior
        The prior over embeddings.
    words : PointLoadings
        T and m, with their penalty and their step.
    learning_rate : float
        Adam's step size for the posteriors.
    n_draws : int
        Draws a document and pass, R.
    seed : int
        With the number of the pass, decides the noise.
    point : bool, default=False
        Whether documents are points: no draws. Started at the prior's variance, the
        posteriors keep it, and their divergence is a point's penalty.
    """

    def __init__(
        self,
        counts: MultinomialCounts,
        posterior: DiagonalGaussian,
        prior: IsotropicPrior,
        words: PointLoadings,
        *,
        learning_rate: float,
        n_draws: int,
        seed: int,
        point: bool = False,
    ) -> None:
        super().__init__(seed)
        self.point = point
        self.counts = counts
        self.posterior = posterior
        self.prior = prior
        self.words = words
        self.n_draws = n_draws
        self._mean_optimizer = Adam(posterior.mean, learning_rate)
        self._log_std_optimizer = Adam(posterior.log_std, learning_rate)
        self._word_totals = counts.word_totals()

    @property
    def n_documents(self) -> int:
        """Documents of the corpus."""
        return len(self.counts)

    def fitted(self) -> tuple[Tensor, Tensor]:
        """Give T and m."""
        return self.words.loadings, self.words.bias

    def run(
        self,
        max_iter: int,
        tol: float,
        callback: Callable[[Trainer], object] | None = None,
    ) -> bool:
        """Pass over the corpus until the bound stands still or `max_iter` is reached.

        `callback` is called after each pass; a true answer ends the training.

        Returns
        -------
        bool
            Whether the bound converged.
        """
        started = time.perf_counter() - self._seconds_before
        while self.epoch < max_iter:
            if self._converged(tol):
                return True
            self._pass(lambda: time.perf_counter() - started)
            if callback is not None and callback(self):
                return False
        return self._converged(tol)

    def _converged(self, tol: float) -> bool:
        if tol <= 0 or self.epoch < 2 * WINDOW:
            return False
        latest, before = self.history[-WINDOW:], self.history[-2 * WINDOW : -WINDOW]
        bound = sum(epoch.bound for epoch in latest) / WINDOW
        growth = bound - sum(epoch.bound for epoch in before) / WINDOW
        kl = sum(epoch.kl for epoch in latest)
        climbing = kl - sum(epoch.kl for epoch in before) > KL_GROWTH * kl
        return not climbing and growth <= tol * abs(bound) * WINDOW

    def _pass(self, clock: Callable[[], float]) -> None:
        source = generator(self.seed, self.epoch)
        loadings, bias = self.words.loadings, self.words.bias
        n_documents, n_components = self.posterior.mean.shape
        linear = self.counts.project(loadings)
        shape = (n_documents, self.n_draws, n_components)
        noise = standard_normals(shape, source, loadings)
        if self.point:
            noise = torch.zeros_like(noise)
        mean_gradient = torch.empty_like(self.posterior.mean)
        log_std_gradient = torch.empty_like(self.posterior.log_std)
        chunks = [slice(a, a + CHUNK) for a in range(0, n_documents, CHUNK)]
        for rows in chunks:
            q = self.posterior[rows]
            points = q.points(noise[rows])
            moments = softmax_moments(points.flatten(0, 1), loadings, bias, first=True)
            assert moments.first is not None
            mean_gradient[rows], log_std_gradient[rows] = q.gradients(
                self.prior,
                linear[rows],
                self.counts.n_tokens[rows],
                moments.first.view_as(points),
                noise[rows],
            )
        self._mean_optimizer.ascend(self.posterior.mean, mean_gradient)
        self._log_std_optimizer.ascend(self.posterior.log_std, log_std_gradient)

        expected_lse = torch.empty_like(self.counts.n_tokens, dtype=torch.float64)
        loading_gradient = self.counts.backproject(self.posterior.mean)
        bias_gradient = self._word_totals.clone()
        for rows in chunks:
            points = self.posterior[rows].points(noise[rows])
            weights = self.counts.n_tokens[rows, None].expand(-1, self.n_draws)
            moments = softmax_moments(
                points.flatten(0, 1),
                loadings,
                bias,
                weights=(weights / self.n_draws).flatten(),
            )
            assert moments.loading_gradient is not None
            assert moments.bias_gradient is not None
            lse = moments.lse.double().view(-1, self.n_draws)
            expected_lse[rows] = lse.mean(dim=1)
            loading_gradient -= moments.loading_gradient
            bias_gradient -= moments.bias_gradient
        kl = self.posterior.kl(self.prior)
        linear_part = (linear.double() * self.posterior.mean.double()).sum(dim=1)
        likelihood = self.counts.score(bias).double() + linear_part
        likelihood -= self.counts.n_tokens.double() * expected_lse
        bound = float((likelihood - kl).sum()) - self.words.penalty()
        self.words.ascend(loading_gradient, bias_gradient)
        self.history.append(
            Epoch(
                self.epoch + 1,
                bound,
                float(kl.mean()),
                self.words.sparsity(),
                clock(),
            )
        )

    def state(self) -> dict[str, Tensor]:
        """Give every tensor a checkpoint must hold to go on bit for bit."""
        state = {f"words.{k}": v for k, v in self.words.state().items()}
        state["mean"] = self.posterior.mean
        state["log_std"] = self.posterior.log_std
        return state | optimizer_state(self._optimizers())

    def restore(self, state: dict[str, Tensor], history: list[dict[str, Any]]) -> None:
        """Take up the state that :meth:`state` gave, and its history."""
        words = {k[6:]: v for k, v in state.items() if k.startswith("words.")}
        self.words.restore(words)
        self.posterior.mean.copy_(state["mean"])
        self.posterior.log_std.copy_(state["log_std"])
        restore_optimizers(self._optimizers(), state)
        self._restore_history(history)

    def _optimizers(self) -> dict[str, Adam]:
        return {"mean": self._mean_optimizer, "log_std": self._log_std_optimizer}
