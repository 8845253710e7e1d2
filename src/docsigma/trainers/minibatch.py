"""The minibatch trainer: Newton steps on posteriors, and the commonest words first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from docsigma.kernels import CountTensor
from docsigma.random import Stream, generator, standard_normals
from docsigma.trainers._base import PassSums, StopRule, Trainer, learn_parts
from docsigma.trainers.lsa_start import damped, first_loadings, semantic_start
from docsigma.trainers.minibatch_step import Batch, MinibatchStep, WordTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from docsigma.counts.sorted_counts import SortedCounts
    from docsigma.parts import Parts
    from docsigma.posteriors import Gaussians
    from docsigma.trainers._base import Optimizer
    from docsigma.trainers.schedule import MinibatchSettings, Stage


class MinibatchTrainer(Trainer):
    r"""The state of a training in minibatches, and its passes.

    One visit to a batch is one pass over its words, at one draw per document:

    * posteriors go a damped Newton step with the curvature of
      :class:`~docsigma.estep.curvature.WordCurvature`. The draw moves a gradient
      by about the curvature times its distance from the mean; that is taken back, so
      little of its noise is left;
    * T goes a step of its own ascent, proximal Adam for point loadings. The linear half
      of T's gradient, :math:`X^\top\nu`,
      is kept exactly for the whole corpus as posteriors move; only the other half is
      estimated from the batch, and what effective counts differ from counts. For a word
      in few documents that removes nearly all noise. No step exceeds a Newton step.

    Training starts from latent semantic analysis, and with the commonest words.

    Where a part learns from documents that the words have not seen, one batch is set
    aside in the first half of the passes: its posteriors move, the words do not, and
    the part learns from it after each pass. Then it joins the others.

    Parameters
    ----------
    counts : SortedCounts
        The training documents.
    parts : Parts
        Likelihood, prior, posterior family and loadings; those that learn are moved.
    like : Tensor
        Gives dtype and device.
    n_components : int
        K.
    stages : list of Stage
        What passes there are.
    batch_size : int
        Documents in a batch.
    learn_bias : bool
        Whether m moves.
    init_scale : float
        Standard deviation of noise on the first T.
    seed : int
        Decides all draws.
    settings : MinibatchSettings
        How it steps.
    """

    def __init__(
        self,
        counts: SortedCounts,
        parts: Parts,
        like: Tensor,
        *,
        n_components: int,
        stages: list[Stage],
        batch_size: int,
        learn_bias: bool,
        init_scale: float,
        seed: int,
        settings: MinibatchSettings,
    ) -> None:
        super().__init__(seed)
        self.counts = counts
        self.parts: Parts = parts
        self.stages = stages
        self.batch_size = batch_size
        self.init_scale = init_scale
        self.settings = settings
        self.n_passes = sum(stage.n_passes for stage in stages)
        self._like = like
        n_documents, n_features = counts.n_documents, counts.n_features
        self.prior = parts.prior.tensors(n_components, like)
        self.table = WordTable(
            n_features, n_components, parts.loadings, like, learn_bias
        )
        self.totals = torch.from_numpy(counts.totals).to(like)
        variance = self.prior.scale**2
        self.q = parts.covariance.constant(n_documents, n_components, variance, like)
        self.effective_tokens = torch.from_numpy(counts.tokens.copy()).to(like)
        self._batches = self._draw_batches()
        self._cache: dict[int, Batch] = {}
        self._cached_words = 0
        self._frequencies = like.new_zeros(0)
        self._frequencies_for: tuple[int, int | None] = (0, None)

    def _draw_batches(self) -> list[NDArray[np.intp]]:
        """Draw batches; they stay the same, and each pass draws their order anew.

        They are of one size: a small last one would give T a step of mere noise.
        """
        source = generator(self.seed, Stream.BATCHES)
        order = torch.randperm(self.counts.n_documents, generator=source)
        n_batches = -(-len(order) // self.batch_size)
        return [np.sort(part.numpy()) for part in torch.tensor_split(order, n_batches)]

    @property
    def n_documents(self) -> int:
        """Documents of the corpus."""
        return self.counts.n_documents

    def fitted(self) -> tuple[Tensor, Tensor]:
        """Return the words' columns and m, words in the order they came in."""
        loadings, bias = self._sorted_words()
        columns = self.parts.loadings.columns(loadings)
        place = torch.from_numpy(np.argsort(self.counts.order)).to(columns.device)
        return columns[place], bias[place]

    def _sorted_words(self) -> tuple[Tensor, Tensor]:
        """Return T and m of all words, commonest first."""
        n_words = self.table.n_words
        loadings, bias = self.table.loadings.clone(), self.table.bias[:-1].clone()
        loadings[n_words:] = 0.0
        if n_words < len(bias):
            bias[n_words:] = self._rare_bias(n_words)
        return loadings, bias

    def moved(self) -> tuple[Tensor, Tensor]:
        """Return the loadings and m of the words that have loadings by now."""
        n_words = self.table.n_words
        return self.table.loadings[:n_words], self.table.bias[:n_words]

    def stop_rule(self) -> StopRule | None:
        """Return the rule of the last stage: over a fifth of it, after half of it."""
        last = self.stages[-1]
        done = self.epoch - (sum(stage.n_passes for stage in self.stages[:-1]))
        window = max(self.settings.window, last.n_passes // 5)
        if done < max(2 * window, last.n_passes // 2):
            return None
        return StopRule(window, 2 * window)

    def _make_batch(self, rows: NDArray[np.intp], n_words: int) -> Batch:
        """Return documents with the commonest `n_words` words, and all their tokens.

        Only a linear likelihood can do without the others.
        """
        linear = self.parts.likelihood.linear
        counts = self.counts.batch(rows, n_words if linear else self.counts.n_features)
        where = torch.from_numpy(rows).to(self._like.device)
        return Batch(where, CountTensor(counts, self._like, self.counts.tokens[rows]))

    @property
    def unseen(self) -> int | None:
        """Number of the batch that is set aside in this pass, if any."""
        wanted = any(part.learns_from_unseen() for _, part in self.parts.items())
        enough = len(self._batches) >= self.settings.least_batches
        early = self.epoch < self.settings.unseen_passes * (self.n_passes or 0)
        return 0 if wanted and enough and early else None

    def _seen(self) -> NDArray[np.intp]:
        """Return the documents that the words learn from in this pass."""
        rows = np.arange(self.n_documents)
        if self.unseen is None:
            return rows
        return np.delete(rows, self._batches[self.unseen])

    def batch(self, number: int, n_words: int) -> Batch:
        """Return a batch; those of a corpus in memory are made once per stage."""
        if not self.counts.in_memory:
            return self._make_batch(self._batches[number], n_words)
        if self._cached_words != n_words:
            self._cache.clear()
            self._cached_words = n_words
        if number not in self._cache:
            self._cache[number] = self._make_batch(self._batches[number], n_words)
        return self._cache[number]

    def documents(self, n_words: int) -> Iterator[Batch]:
        """Go once through the documents that the words learn from in this pass."""
        if self.counts.in_memory:
            for number in range(len(self._batches)):
                if number != self.unseen:
                    yield self.batch(number, n_words)
            return
        rows = self._seen()
        for some in np.array_split(rows, -(-len(rows) // self.settings.block)):
            yield self._make_batch(some, n_words)

    def documents_with(self, n_words: int) -> Tensor:
        """Count the documents that have each of the commonest words, once per stage."""
        made_for = n_words, self.unseen
        if self._frequencies_for != made_for:
            self._frequencies = self.totals.new_zeros(n_words)
            for batch in self.documents(n_words):
                found = batch.counts.document_frequencies()
                self._frequencies += found[:n_words]
            self._frequencies_for = made_for
        return self._frequencies

    def _sample(self) -> NDArray[np.intp]:
        rows, size = self._seen(), self.settings.sample
        if len(rows) <= size:
            return rows
        source = generator(self.seed, Stream.SAMPLE)
        return np.sort(rows[torch.randperm(len(rows), generator=source)[:size].numpy()])

    def begin(self) -> None:
        """Start from latent semantic analysis, unless a checkpoint was restored."""
        if self.table.n_words:
            return
        n_words, n = self.stages[0].n_words, self.n_documents
        k, block = self.table.n_components, self.settings.block
        sample = self.counts.batch(self._sample(), n_words)
        start = semantic_start(sample, k, self.seed, self._like)
        centre = self.prior.start(self._like.new_zeros(1, k))
        for begin in range(0, n, block):
            rows = np.arange(begin, min(begin + block, n))
            counts = self.counts.batch(rows, n_words)
            embedded = start.embed(counts, self.prior.scale)
            self.q.mean[begin : begin + block] = centre + embedded
        self._grow(n_words)
        squares = self.table.loadings[:n_words].square()
        spread = (self.totals[:n_words, None] * squares).sum(dim=0)
        spread = spread / self.totals.sum().clamp(min=1)
        tokens = torch.from_numpy(self.counts.tokens).to(self._like)[:, None]
        family = self.parts.covariance
        for begin in range(0, n, block):
            some = slice(begin, min(begin + block, n))
            information = family.from_diagonal(0.3 * tokens[some] * spread)
            self.q[some] = family.with_information(
                self.q.mean[some], self.prior, information
            )

    def _rare_bias(self, n_words: int) -> Tensor:
        """Share what the row of the rare words has among them."""
        return self._log_shares(n_words) + self.table.bias[n_words]

    def _log_shares(self, n_words: int) -> Tensor:
        """Return the log probabilities of rare words among themselves, by counts."""
        rare = self.totals[n_words:].clamp(min=1e-3)
        shared: Tensor = rare.log() - rare.sum().log()
        return shared

    def _grow(self, n_words: int) -> None:
        """Start loadings of the words up to `n_words`; the row after is all others."""
        before, k = self.table.n_words, self.table.n_components
        rows = self._sample()
        counts = CountTensor(damped(self.counts.batch(rows, n_words)), self._like)
        where = torch.from_numpy(rows).to(self._like.device)
        mean = self.q.mean[where]
        loadings, shift = first_loadings(counts, mean, self.parts.loadings)
        if before == 0:
            self.table.bias[0] = 0.0
        bias = self._rare_bias(before)
        noise = standard_normals(
            (n_words - before, k),
            generator(self.seed, Stream.NEW_WORDS, before),
            self._like,
        )
        learned = shift[before:] if self.table.learn_bias else 0.0
        self.table.grow(
            n_words,
            loadings[before:] + self.init_scale * noise,
            bias[: n_words - before] + learned,
            bias[n_words - before :],
        )

    def _stage(self) -> tuple[Stage, int]:
        """Return the stage of the next pass, and the passes of it that are done."""
        done = self.epoch
        for stage in self.stages[:-1]:
            if done < stage.n_passes:
                return stage, done
            done -= stage.n_passes
        return self.stages[-1], done

    def one_pass(self) -> PassSums:
        """Visit every batch once."""
        stage, done = self._stage()
        n_words, settings = stage.n_words, self.settings
        if self.table.n_words != n_words:
            self._grow(n_words)
        source = generator(self.seed, Stream.ORDER, self.epoch)
        batches = torch.randperm(len(self._batches), generator=source).tolist()
        unseen = self.unseen
        totals, n_tokens = self.totals, float(self.counts.tokens[self._seen()].sum())
        if unseen is not None:
            counts = self.counts.batch(self._batches[unseen], self.counts.n_features)
            totals = totals - CountTensor(counts, self._like).word_totals()
        step = MinibatchStep(
            self.table.prefix(n_words),
            self.parts,
            self.prior,
            self.q,
            self.effective_tokens,
            settings,
            documents=self.documents(n_words),
            totals=totals,
            log_shares=self._log_shares(n_words),
            documents_with=self.documents_with(n_words),
            n_tokens=n_tokens,
        )
        progress = self.epoch / max(1, (self.n_passes or 0) - 1)
        change = settings.last_damping - settings.first_damping
        damping = settings.first_damping + change * progress
        regular = self.epoch == 0 or (done + 1) % settings.curved_every == 0
        curved = regular or done == stage.n_passes - 1
        k = self.table.n_components
        for number, batch in enumerate(batches):
            key = generator(self.seed, Stream.NOISE, self.epoch, number)
            noise = standard_normals((len(self._batches[batch]), k), key, self._like)
            if number % settings.basis_every == 0:
                step.update_basis()
            part = (done * len(batches) + number + 1) / (stage.n_passes * len(batches))
            step.visit(
                self.batch(batch, n_words),
                noise,
                damping,
                stage.rate(part),
                curved,
                unseen=batch == unseen,
            )
        self._learn_parts(n_words)
        penalty = self.parts.loadings.penalty(self.table.loadings[:n_words])
        return PassSums(
            float(step.bound) + self._rare_part(n_words), float(step.kl), penalty
        )

    def _learn_parts(self, n_words: int) -> None:
        """Let parts learn from the documents just visited, or from the unseen ones."""
        linear = self.parts.likelihood.linear
        words = self.table.loadings[:n_words], self.table.bias[:n_words]
        if not linear:
            words = self._sorted_words()

        def posteriors() -> Iterator[tuple[CountTensor, Gaussians]]:
            for batch in self.documents(n_words):
                yield batch.counts, self.q[batch.rows]

        learned = learn_parts(self.parts, *words, posteriors())
        if self.unseen is not None:
            n_words = self.counts.n_features
            rows, counts = self._make_batch(self._batches[self.unseen], n_words)
            found = [(counts, self.q[rows])]
            learn_parts(self.parts, *self._sorted_words(), found, unseen=True)
            learned = True
        if learned:
            self.prior = self.parts.prior.tensors(self.table.n_components, self._like)

    def _rare_part(self, n_words: int) -> float:
        """Return what the choice among the folded words adds to the likelihood.

        Nothing where the likelihood has seen each of them.
        """
        if not self.parts.likelihood.linear:
            return 0.0
        rare = self.counts.totals[n_words:]
        rare = rare[rare > 0]
        return float((rare * np.log(rare / rare.sum())).sum()) if len(rare) else 0.0

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that training moves in place, for a checkpoint."""
        posterior = {f"posterior.{k}": v for k, v in self.q.tensors().items()}
        tensors = {"table": self.table.tensor, "n_words": self.table.size}
        if not self.parts.likelihood.linear:
            tensors["effective_tokens"] = self.effective_tokens
        return tensors | posterior

    def optimizers(self) -> Mapping[str, Optimizer]:
        """Return the optimizers by name, for a checkpoint."""
        return self.table.optimizers()

    def restore(self, state: dict[str, Tensor], history: list[dict[str, Any]]) -> None:
        """Restore the state that :meth:`state` returned, and its history."""
        # The seed may be the checkpoint's.
        self._batches = self._draw_batches()
        self._cache.clear()
        super().restore(state, history)
        self.prior = self.parts.prior.tensors(self.table.n_components, self._like)
