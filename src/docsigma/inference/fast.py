"""The fast solver: minibatches, Newton steps, and the commonest words first."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from docsigma.inference.draws import generator, standard_normals
from docsigma.inference.fast_step import FastStep
from docsigma.inference.multinomial import MultinomialCounts
from docsigma.inference.proximal_adam import ProximalAdam
from docsigma.inference.start import damped, first_loadings, semantic_start
from docsigma.inference.trainer import (
    Epoch,
    Trainer,
    optimizer_state,
    restore_optimizers,
)
from docsigma.kernels import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from docsigma.inference.prior import IsotropicPrior
    from docsigma.inference.sorted_words import SortedWords
    from docsigma.inference.stages import Stage

__all__ = ["FastTrainer"]

# Documents the start is made from, and documents in a block of a sparse pass.
SAMPLE, BLOCK = 20_000, 8192
# Part of a Newton step that the posteriors take, in the first pass and in the last.
DAMPING = (0.6, 0.4)
# The curvature of the words is looked up again after this many batches; the variances
# in the first pass, the last of a stage and every eighth: that saves a product.
BASIS_EVERY, CURVED_EVERY = 12, 8
BATCHES_KEY = 2**34
# The stop rule compares mean bounds of so many passes at least.
WINDOW = 2


class FastTrainer(Trainer):
    r"""The state of a training in minibatches, and its passes.

    One visit to a batch is one sweep over its words, at one draw a document:

    * posteriors take a damped Newton step with the curvature of
      :class:`~docsigma.inference.curvature.WordCurvature`. The draw moves a gradient
      by about the curvature times its distance from the mean; that is taken back, so
      little of its noise is left;
    * T takes a proximal Adam step. The linear half of its gradient, :math:`X^\top\nu`,
      is kept exactly for the whole corpus as posteriors move; only the other half is
      estimated from the batch. For a word in few documents that removes nearly
      all noise. No step exceeds a Newton step.

    Training starts from latent semantic analysis, and with the commonest words.

    Parameters
    ----------
    words : SortedWords
        The training documents.
    prior : IsotropicPrior
        The prior over embeddings.
    like : Tensor
        Gives dtype and device.
    n_components : int
        K.
    stages : list of Stage
        What passes there are.
    batch_size : int
        Documents in a batch.
    l1, l2 : float
        Weights of the penalties on T, counted once a pass.
    learn_bias : bool
        Whether m moves.
    init_scale : float
        Standard deviation of noise on the first T.
    seed : int
        Decides all draws.
    point : bool, default=False
        Whether documents are points: no draws, and :math:`\tfrac\lambda2 w^\top w`
        instead of the divergence.
    """

    def __init__(
        self,
        words: SortedWords,
        prior: IsotropicPrior,
        like: Tensor,
        *,
        n_components: int,
        stages: list[Stage],
        batch_size: int,
        l1: float,
        l2: float,
        learn_bias: bool,
        init_scale: float,
        seed: int,
        point: bool = False,
    ) -> None:
        super().__init__(seed)
        self.point = point
        self.counts = words
        self.prior = prior
        self.stages = stages
        self.batch_size = batch_size
        self.learn_bias = learn_bias
        self.l1, self.l2 = l1, l2
        self.init_scale = init_scale
        self._like = like
        n_documents, n_features = words.n_documents, words.n_features
        # The table [T, m, 1] of the primitive; its last row is never a word.
        self._table = like.new_zeros(n_features + 1, n_components + 2)
        self._table[:, -1] = 1.0
        self._optimizer = ProximalAdam(self._table[:-1, :-2], l1=l1, l2=l2)
        self._bias_optimizer = ProximalAdam(self._table[:, -2:-1])
        self._totals = torch.from_numpy(words.totals).to(like)
        self.mean = like.new_zeros(n_documents, n_components)
        self.precision = like.new_full((n_documents, n_components), prior.precision)
        self._workspace = Workspace()
        self._batches = self._draw_batches()
        self._cache: dict[int, MultinomialCounts] = {}
        self._cached_words = 0
        self._rows: dict[int, Tensor] = {}
        self._seen = like.new_zeros(0)
        self._n_words = 0

    def _draw_batches(self) -> list[NDArray[np.intp]]:
        """Draw batches; they stay the same, and each pass draws their order anew.

        They are of one size: a small last one would give T a step of mere noise.
        """
        source = generator(self.seed, BATCHES_KEY)
        order = torch.randperm(self.counts.n_documents, generator=source)
        n_batches = -(-len(order) // self.batch_size)
        return [np.sort(part.numpy()) for part in torch.tensor_split(order, n_batches)]

    @property
    def n_documents(self) -> int:
        """Documents of the corpus."""
        return self.counts.n_documents

    def fitted(self) -> tuple[Tensor, Tensor]:
        """Give T and m, words in the order of the counts that came in."""
        n_words, k = self._n_words, self.mean.shape[1]
        loadings = torch.zeros_like(self._table[:-1, :k])
        loadings[:n_words] = self._table[:n_words, :k]
        bias = self._table[:-1, k].clone()
        if n_words < len(bias):
            bias[n_words:] = self._rare_bias(n_words)
        place = torch.from_numpy(np.argsort(self.counts.order)).to(loadings.device)
        return loadings[place], bias[place]

    def run(
        self,
        max_iter: int,
        tol: float,
        callback: Callable[[Trainer], object] | None = None,
    ) -> bool:
        """Make the passes of the stages; `callback` may end them by a true answer.

        Returns
        -------
        bool
            Whether the bound stood still before the passes were over.
        """
        started = time.perf_counter() - self._seconds_before
        if self._n_words == 0:
            self._begin()
        before = 0
        for stage in self.stages:
            done = self.epoch - before
            if 0 <= done < stage.n_passes and self._n_words != stage.n_words:
                self._grow(stage.n_words)
            for at in range(max(done, 0), stage.n_passes):
                if self.epoch >= max_iter:
                    return False
                self._pass(stage, at, lambda: time.perf_counter() - started)
                if callback is not None and callback(self):
                    return False
                if stage is self.stages[-1] and self._converged(stage, at + 1, tol):
                    return True
            before += stage.n_passes
        return False

    def _converged(self, stage: Stage, done: int, tol: float) -> bool:
        """Say whether the bound, over a fifth of the passes, gains too little."""
        window = max(WINDOW, stage.n_passes // 5)
        if tol <= 0 or done < max(2 * window, stage.n_passes // 2):
            return False
        bounds = [epoch.bound for epoch in self.history[-2 * window :]]
        gain = (sum(bounds[window:]) - sum(bounds[:window])) / window**2
        return gain <= tol * abs(bounds[-1])

    def some_counts(self, rows: NDArray[np.intp], n_words: int) -> MultinomialCounts:
        """Give documents with the commonest `n_words` words, and all their tokens."""
        batch = self.counts.batch(rows, n_words)
        return MultinomialCounts(batch, self._like, self.counts.tokens[rows])

    def batch_counts(self, batch: int, n_words: int) -> MultinomialCounts:
        """Give a batch; those of a corpus in memory are made once a stage."""
        if self.counts.on_disk:
            return self.some_counts(self._batches[batch], n_words)
        if self._cached_words != n_words:
            self._cache.clear()
            self._cached_words = n_words
        if batch not in self._cache:
            self._cache[batch] = self.some_counts(self._batches[batch], n_words)
        return self._cache[batch]

    def sweep(self, n_words: int) -> Iterator[tuple[Tensor, MultinomialCounts]]:
        """Go through the corpus once: row numbers and counts."""
        if not self.counts.on_disk:
            for batch in range(len(self._batches)):
                yield self.batch_rows(batch), self.batch_counts(batch, n_words)
            return
        for rows in np.array_split(np.arange(self.n_documents), self._n_blocks):
            where = torch.from_numpy(rows).to(self._like.device)
            yield where, self.some_counts(rows, n_words)

    def batch_rows(self, batch: int) -> Tensor:
        """Give the row numbers of a batch."""
        if batch not in self._rows:
            rows = torch.from_numpy(self._batches[batch])
            self._rows[batch] = rows.to(self._like.device)
        return self._rows[batch]

    def documents_with(self, n_words: int) -> Tensor:
        """Count the documents that have each of the commonest words, once a stage."""
        if len(self._seen) != n_words:
            self._seen = self._totals.new_zeros(n_words)
            for _, counts in self.sweep(n_words):
                self._seen += counts.document_frequencies()
        return self._seen

    @property
    def _n_blocks(self) -> int:
        return -(-self.n_documents // BLOCK)

    def _sample(self) -> NDArray[np.intp]:
        n = self.counts.n_documents
        if n <= SAMPLE:
            return np.arange(n)
        source = np.random.default_rng(self.seed)
        return np.sort(source.choice(n, SAMPLE, replace=False))

    def _begin(self) -> None:
        n_words, n = self.stages[0].n_words, self.counts.n_documents
        k = self.mean.shape[1]
        sample = self.counts.batch(self._sample(), n_words)
        start = semantic_start(sample, k, self.seed, self._like)
        for begin in range(0, n, BLOCK):
            rows = np.arange(begin, min(begin + BLOCK, n))
            counts = self.counts.batch(rows, n_words)
            std = self.prior.precision**-0.5
            self.mean[begin : begin + BLOCK] = start.embed(counts, std)
        self._grow(n_words)
        spread = (
            self._totals[:n_words, None] * self._table[:n_words, :k].square()
        ).sum(dim=0) / self._totals.sum().clamp(min=1)
        tokens = torch.from_numpy(self.counts.tokens).to(self._like)[:, None]
        self.precision += 0.3 * tokens * spread

    def _rare_bias(self, n_words: int) -> Tensor:
        """Share what the row of the rare words has among them, by their counts."""
        rare = self._totals[n_words:].clamp(min=1e-3)
        shared: Tensor = rare.log() - rare.sum().log()
        return shared + self._table[n_words, self.mean.shape[1]]

    def _grow(self, n_words: int) -> None:
        """Give loadings to the words up to `n_words`; the row after has the others."""
        before, k = self._n_words, self.mean.shape[1]
        rows = self._sample()
        counts = MultinomialCounts(damped(self.counts.batch(rows, n_words)), self._like)
        where = torch.from_numpy(rows).to(self._like.device)
        loadings, shift = first_loadings(counts, self.mean[where], self.l1)
        if before == 0:
            self._table[0, k] = 0.0
        bias = self._rare_bias(before)
        noise = standard_normals(
            (n_words - before, k), generator(self.seed, 2**32, before), self._like
        )
        new = slice(before, n_words)
        self._table[new, :k] = loadings[before:] + self.init_scale * noise
        learned = shift[before:] if self.learn_bias else 0.0
        self._table[new, k] = bias[: n_words - before] + learned
        self._table[n_words, :k] = 0.0
        rest = bias[n_words - before :]
        self._table[n_words, k] = torch.logsumexp(rest, 0) if len(rest) else -1e4
        self._n_words = n_words

    def _pass(self, stage: Stage, at: int, clock: Callable[[], float]) -> None:
        n_documents, k = self.mean.shape
        n_words = stage.n_words
        source = generator(self.seed, self.epoch)
        batches = torch.randperm(len(self._batches), generator=source).tolist()
        step = FastStep(self, n_words)
        n_passes = sum(stage.n_passes for stage in self.stages)
        progress = self.epoch / max(1, n_passes - 1)
        damping = DAMPING[0] + (DAMPING[1] - DAMPING[0]) * progress
        regular = self.epoch == 0 or (at + 1) % CURVED_EVERY == 0
        curved = regular or at == stage.n_passes - 1
        for number, batch in enumerate(batches):
            rows = self._batches[batch]
            key = generator(self.seed, self.epoch, number)
            noise = standard_normals((len(rows), k), key, self._like)
            noise = torch.zeros_like(noise) if self.point else noise
            if number % BASIS_EVERY == 0:
                step.look_up_basis()
            part = (at * len(batches) + number + 1) / (stage.n_passes * len(batches))
            high, low = stage.rates
            rate = low + 0.5 * (high - low) * (1 + math.cos(math.pi * part))
            step.visit(batch, noise, damping, rate, curved)
        loadings = self._table[:n_words, :k]
        penalty = self.l1 * float(loadings.abs().sum(dim=0).double().sum())
        penalty += 0.5 * self.l2 * float(loadings.square().sum(dim=0).double().sum())
        self.history.append(
            Epoch(
                self.epoch + 1,
                float(step.bound) + self._rare_part(n_words) - penalty,
                float(step.kl) / n_documents,
                float((loadings == 0).double().mean()),
                clock(),
            )
        )

    def _rare_part(self, n_words: int) -> float:
        """Give what the choice among the folded words adds to the likelihood."""
        rare = self.counts.totals[n_words:]
        rare = rare[rare > 0]
        return float((rare * np.log(rare / rare.sum())).sum()) if len(rare) else 0.0

    def state(self) -> dict[str, Tensor]:
        """Give every tensor a checkpoint must hold to go on bit for bit."""
        state = {
            "table": self._table,
            "mean": self.mean,
            "precision": self.precision,
            "n_words": torch.tensor(self._n_words),
        }
        return state | optimizer_state(self._optimizers())

    def restore(self, state: dict[str, Tensor], history: list[dict[str, Any]]) -> None:
        """Take up the state that :meth:`state` gave, and its history."""
        # The seed may be the checkpoint's.
        self._batches = self._draw_batches()
        self._rows.clear()
        self._cache.clear()
        self._table.copy_(state["table"])
        self.mean.copy_(state["mean"])
        self.precision.copy_(state["precision"])
        self._n_words = int(state["n_words"])
        restore_optimizers(self._optimizers(), state)
        self._restore_history(history)

    def _optimizers(self) -> dict[str, ProximalAdam]:
        return {"loadings": self._optimizer, "bias": self._bias_optimizer}
