"""Learning from documents that are seen once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import torch

from docsigma.inference.centred_jensen import infer_posterior
from docsigma.inference.draws import generator, standard_normals
from docsigma.inference.multinomial import MultinomialCounts
from docsigma.inference.proximal_adam import ProximalAdam
from docsigma.inference.start import damped, first_loadings, semantic_start
from docsigma.kernels import SoftmaxWords, Workspace, softmax_moments

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray
    from torch import Tensor

    from docsigma.inference.prior import IsotropicPrior

__all__ = ["StreamLearner"]

# Sweeps for the posteriors of a batch, and steps until the rate has halved twice.
SWEEPS, SLOWING = 4, 50
SMOOTHING = 1e-3
# Tokens a document is taken to have had where only its model is left.
TOKENS = 200.0


class StreamLearner:
    """T and m under documents that come in a stream.

    The objective is that of all documents so far: a batch's gradient is scaled to
    them, and the penalties count once.

    Parameters
    ----------
    prior : IsotropicPrior
        The prior over embeddings.
    like : Tensor
        Gives dtype and device.
    n_features, n_components : int
        V and K.
    learning_rate : float
        Step size of the first step; it falls with the root of their number.
    batch_size : int
        Documents in a batch.
    l1, l2 : float
        Weights of the penalties on T.
    learn_bias : bool
        Whether m moves; otherwise it follows the uni-gram so far.
    seed : int
        Decides all draws.
    """

    def __init__(
        self,
        prior: IsotropicPrior,
        like: Tensor,
        *,
        n_features: int,
        n_components: int,
        learning_rate: float,
        batch_size: int,
        l1: float,
        l2: float,
        learn_bias: bool,
        seed: int,
    ) -> None:
        self.prior = prior
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.learn_bias = learn_bias
        self.seed = seed
        self._like = like
        self._table = like.new_zeros(n_features, n_components + 2)
        self._table[:, -1] = 1.0
        self._optimizer = ProximalAdam(self._table[:, :-2], l1=l1, l2=l2)
        self._bias_optimizer = ProximalAdam(self._table[:, -2:-1])
        self._totals = np.zeros(n_features)
        self._started = False
        self._seconds = 0.0
        self._workspace = Workspace()

    def fitted(self) -> tuple[Tensor, Tensor]:
        """Give T and m."""
        return self._table[:, :-2], self._table[:, -2]

    def log_unigram(self) -> NDArray[np.float64]:
        """Give the log uni-gram of all documents so far."""
        totals = np.maximum(self._totals, SMOOTHING)
        result: NDArray[np.float64] = np.log(totals) - np.log(totals.sum())
        return result

    def resume(
        self, loadings: Tensor, bias: Tensor, log_unigram: NDArray[np.float64]
    ) -> None:
        """Go on from a model whose documents are gone; they count as one batch."""
        self._table[:, :-2] = loadings
        self._table[:, -2] = bias
        self._totals = np.exp(log_unigram) * TOKENS * self.batch_size
        self._started = True

    def learn(self, counts: sp.csr_matrix) -> dict[str, float]:
        """Pass once over some documents; give their bound and KL before learning."""
        started = time.perf_counter()
        self._totals += np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
        if not self._started:
            self._start(counts)
        elif not self.learn_bias:
            self._table[:, -2] = torch.from_numpy(self.log_unigram()).to(self._like)
        bound = kl = 0.0
        for begin in range(0, counts.shape[0], self.batch_size):
            batch = counts[begin : begin + self.batch_size]
            if batch.nnz:
                value, divergence = self._visit(MultinomialCounts(batch, self._like))
                bound += value
                kl += divergence
        loadings = self._table[:, :-2]
        self._seconds += time.perf_counter() - started
        return {
            "bound": bound,
            "kl": kl / max(counts.shape[0], 1),
            "sparsity": float((loadings == 0).double().mean()),
            "seconds": self._seconds,
        }

    def _start(self, counts: sp.csr_matrix) -> None:
        k = self._table.shape[1] - 2
        start = semantic_start(counts, k, self.seed, self._like)
        mean = start.embed(counts, self.prior.precision**-0.5)
        weighted = MultinomialCounts(damped(counts), self._like)
        loadings, shift = first_loadings(weighted, mean, self._optimizer.l1)
        self._table[:, :-2] = loadings
        self._table[:, -2] = torch.from_numpy(self.log_unigram()).to(self._like)
        if self.learn_bias:
            self._table[:, -2] += shift
        self._started = True

    def _visit(self, counts: MultinomialCounts) -> tuple[float, float]:
        loadings, bias = self.fitted()
        found = infer_posterior(
            counts,
            loadings.contiguous(),
            bias.contiguous(),
            self.prior,
            max_iter=SWEEPS,
        )
        q = found.posterior
        step = self._optimizer.n_steps
        noise = standard_normals(
            (len(counts), loadings.shape[1]), generator(self.seed, step), self._like
        )
        moments = softmax_moments(
            q.mean + q.log_std.exp() * noise,
            SoftmaxWords.of_table(self._table),
            weights=counts.n_tokens,
            workspace=self._workspace,
        )
        assert moments.loading_gradient is not None
        assert moments.bias_gradient is not None
        scale = float(self._totals.sum()) / float(counts.n_tokens.sum())
        rate = self.learning_rate / (1 + step / SLOWING) ** 0.5
        gradient = counts.backproject(q.mean) - moments.loading_gradient
        self._optimizer.ascend(loadings, gradient * scale, rate)
        if self.learn_bias:
            excess = counts.word_totals() - moments.bias_gradient
            self._bias_optimizer.ascend(
                self._table[:, -2:-1],
                excess[:, None] * scale,
                rate * self.prior.precision**-0.5,
            )
        value = found.bound.sum() + counts.score(bias).double().sum().cpu()
        return float(value), float(q.kl(self.prior).sum())
