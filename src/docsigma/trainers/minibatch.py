"""The minibatch trainer: Newton steps on posteriors, and the commonest words first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from docsigma.kernels import CountTensor
from docsigma.random import Stream, generator, standard_normals
from docsigma.trainers._base import (
    Documents,
    PassSums,
    StopRule,
    Trainer,
    learn_parts,
)
from docsigma.trainers.dealt_batches import DealtBatches
from docsigma.trainers.kept_posteriors import repeated
from docsigma.trainers.lsa_start import damped, first_loadings, semantic_start
from docsigma.trainers.minibatch_step import (
    Batch,
    MinibatchStep,
    WordTable,
    log_shares,
)
from docsigma.trainers.schedule import stage_after

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from docsigma.counts.sorted_counts import SortedCounts
    from docsigma.covariances import Gaussians
    from docsigma.kernels import Views
    from docsigma.optimizers import Optimizer
    from docsigma.parts import Parts
    from docsigma.priors import PriorTensors
    from docsigma.ranks import Ranks
    from docsigma.trainers.schedule import Stage
    from docsigma.trainers.settings import MinibatchSettings


class MinibatchTrainer(Trainer):
    r"""The state of a training in minibatches, and its passes.

    One visit to a batch is one pass over its words, at one draw per document:

    * posteriors take a damped Newton step with the curvature of
      :class:`~docsigma.estep.curvature.WordCurvature`. The draw changes a gradient
      by about the curvature times its distance from the mean; subtracting that removes
      most of the noise;
    * T takes a step of its ascent, proximal Adam for point loadings. The linear
      half of T's gradient, :math:`X^\top\nu`, is kept exactly for the whole corpus as
      posteriors move; only the other half, and the difference of effective counts from
      counts, are estimated from the batch. For a word in few documents that removes
      nearly all noise. No step exceeds a Newton step.

    Training starts from latent semantic analysis, and with the commonest words.

    If a part learns from documents that the words are not trained on, one batch is set
    aside in the first half of the passes: its posteriors move, the words do not, and
    the part learns from it after each pass. Then it joins the rest.

    Parameters
    ----------
    counts : SortedCounts
        The training documents.
    parts : Parts
        Those that learn are changed in place.
    like : Tensor
        Sets dtype and device.
    n_components : int
    stages : list of Stage
        The planned passes.
    batch_size : int
    learn_bias : bool
        Whether m is learned.
    init_scale : float
        Standard deviation of the noise on the initial T.
    seed : int
        Seeds all draws.
    settings : MinibatchSettings
    ranks : Ranks
        The processes that train together. Each has the words and the posteriors of
        its own documents; sums over documents are over those of all processes.
    scratch : path or None
        Folder for a file that holds the posteriors instead of memory.
    views : Views or None
        The views of a document, if there are several: columns of `counts`, which are
        sorted within each of them. All words are then trained in all passes.
    given : Gaussians or None
        Posteriors of the documents that are known and stay: only the words learn.
    covariates : Tensor of shape (n_documents, P) or None
        Covariates of the documents, for the prior.
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
        ranks: Ranks = Trainer.ranks,
        scratch: Path | None = None,
        views: Views | None = None,
        given: Gaussians | None = None,
        covariates: Tensor | None = None,
    ) -> None:
        super().__init__(seed)
        self.ranks = ranks
        self.counts = counts
        self.parts: Parts = parts
        self.stages = stages
        self.batch_size = batch_size
        self.init_scale = init_scale
        self.settings = settings
        self.n_passes = sum(stage.n_passes for stage in stages)
        self._like = like
        self._covariates = covariates
        n_features = counts.n_features
        self.table = WordTable(
            n_features, n_components, parts.loadings, like, learn_bias
        )
        parts.loadings.use_rank(np.argsort(counts.order))
        self.totals = torch.from_numpy(counts.totals).to(like)
        self._scratch = scratch
        self.views = views
        self.given = given
        self._deal()
        self._cache: dict[int, Batch] = {}
        self._cached_words = 0
        self._frequencies = like.new_zeros(0)
        self._frequencies_for: tuple[int, int | None] = (0, None)

    def _deal(self) -> None:
        """Deal batches to the processes, and allocate this one's posteriors."""
        self.dealt = DealtBatches(
            self.n_documents, self.batch_size, self.seed, self.ranks
        )
        rows, k, like = self.dealt.rows, self.table.n_components, self._like
        self.prior = self._prior_of(rows)
        one = self.parts.covariance.constant(1, k, self.prior.scale**2, like)
        self.q = repeated(one, len(rows), self._scratch)
        if self.given is not None:
            self.q = self.given
        self.effective_tokens = torch.from_numpy(self.counts.tokens[rows]).to(like)

    def _prior_of(self, rows: NDArray[np.intp]) -> PriorTensors:
        """Return the prior of some documents as it is now."""
        given = self._covariates
        if given is not None:
            given = given[torch.from_numpy(rows)].to(self._like)
        return self.parts.prior.tensors(self.table.n_components, self._like, given)

    @property
    def n_documents(self) -> int:
        """Documents of the corpus."""
        return self.counts.n_documents

    def fitted(self) -> tuple[Tensor, Tensor]:
        """Return the columns of the words and m, in the order of the counts."""
        loadings, bias = self.words_now()
        columns = self.parts.loadings.columns(loadings)
        place = torch.from_numpy(np.argsort(self.counts.order)).to(columns.device)
        return columns[place], bias[place]

    def words_now(self) -> tuple[Tensor, Tensor]:
        """Return T and m of all words, commonest first."""
        n_words = self.table.n_words
        loadings, bias = self.table.loadings.clone(), self.table.bias[:-1].clone()
        loadings[n_words:] = 0.0
        if n_words < len(bias):
            bias[n_words:] = self._rare_bias(n_words)
        return loadings, bias

    def documents_now(self) -> Iterator[Documents]:
        """Yield this process's documents, with their posteriors and their prior."""
        places, block = np.arange(len(self.dealt.rows)), self.settings.block
        for some in np.array_split(places, max(1, -(-len(places) // block))):
            rows, counts = self._make_batch(some, self.counts.n_features)
            yield Documents(counts, self.q[rows], self.prior[rows])

    def moved(self) -> tuple[Tensor, Tensor]:
        """Return the loadings and m of the words that have loadings by now."""
        n_words = self.table.n_words
        return self.table.loadings[:n_words], self.table.bias[:n_words]

    def stop_rule(self) -> StopRule | None:
        """Return the rule, from half of the last stage on, with windows of a fifth."""
        last, done = stage_after(self.epoch, self.stages)
        if last is not self.stages[-1]:
            return None
        window = max(self.settings.window, last.n_passes // 5)
        if done < max(2 * window, last.n_passes // 2):
            return None
        return StopRule(window)

    def _make_batch(self, places: NDArray[np.intp], n_words: int) -> Batch:
        """Return the documents at `places` among this process's, with `n_words` words.

        They have the total number of tokens. Only a linear likelihood can do without
        the rest of the words.
        """
        rows = self.dealt.rows[places]
        linear = self.parts.likelihood.linear
        counts = self.counts.batch(rows, n_words if linear else self.counts.n_features)
        where = torch.from_numpy(places).to(self._like.device)
        tokens = self.counts.tokens[rows]
        return Batch(where, CountTensor(counts, self._like, tokens, self.views))

    @property
    def unseen(self) -> int | None:
        """Number of the batch that is set aside in this pass, if any."""
        wanted = any(part.learns_from_unseen() for _, part in self.parts.items())
        enough = len(self.dealt) >= self.settings.least_batches
        early = self.epoch < self.settings.unseen_passes * (self.n_passes or 0)
        return 0 if wanted and enough and early else None

    def _seen(self) -> NDArray[np.intp]:
        """Return the documents that the words learn from in this pass."""
        rows = np.arange(self.n_documents)
        return rows if self.unseen is None else np.delete(rows, self.dealt.first)

    def seen_tokens(self) -> tuple[Tensor, float]:
        """Return the tokens of each word, and all, that words learn from now."""
        totals, n_tokens = self.totals, float(self.counts.tokens[self._seen()].sum())
        if self.unseen is not None:
            counts = self.counts.batch(self.dealt.first, self.counts.n_features)
            totals = totals - CountTensor(counts, self._like).word_totals()
        return totals, n_tokens

    def batch(self, number: int, n_words: int) -> Batch:
        """Return a batch; those of a corpus in memory are made once per stage."""
        if not self.counts.in_memory:
            return self._make_batch(self.dealt.parts[number], n_words)
        if self._cached_words != n_words:
            self._cache.clear()
            self._cached_words = n_words
        if number not in self._cache:
            self._cache[number] = self._make_batch(self.dealt.parts[number], n_words)
        return self._cache[number]

    def documents(self, n_words: int) -> Iterator[Batch]:
        """Iterate over this process's documents that the words learn from in this pass.

        There is at least one block, maybe empty.
        """
        if self.counts.in_memory:
            for number in range(len(self.dealt)):
                if number != self.unseen:
                    yield self.batch(number, n_words)
            return
        places = np.arange(len(self.dealt.rows))
        if self.unseen is not None:
            places = np.delete(places, self.dealt.parts[self.unseen])
        n_blocks = max(1, -(-len(places) // self.settings.block))
        for some in np.array_split(places, n_blocks):
            yield self._make_batch(some, n_words)

    def documents_with(self, n_words: int) -> Tensor:
        """Count the documents that have each of the commonest words, once per stage."""
        made_for = n_words, self.unseen
        if self._frequencies_for != made_for:
            self._frequencies = self.totals.new_zeros(n_words)
            for batch in self.documents(n_words):
                found = batch.counts.document_frequencies()
                self._frequencies += found[:n_words]
            self.ranks.sum(self._frequencies)
            self._frequencies_for = made_for
        return self._frequencies

    def _sample(self) -> NDArray[np.intp]:
        rows, size = self._seen(), self.settings.sample
        if len(rows) <= size:
            return rows
        order = torch.randperm(len(rows), generator=generator(self.seed, Stream.SAMPLE))
        return np.sort(rows[order[:size].numpy()])

    def begin(self) -> None:
        """Start from latent semantic analysis, unless a checkpoint was restored."""
        if self.table.n_words:
            return
        n_words, n = self.stages[0].n_words, len(self.dealt.rows)
        if self.given is not None:
            self._grow(n_words)
            return
        k, block = self.table.n_components, self.settings.block
        sample = self.counts.batch(self._sample(), n_words)
        start = semantic_start(sample, k, self.seed, self._like, self.settings.spare)
        start = replace(start, directions=self.parts.loadings.seeded(start.directions))
        for begin in range(0, n, block):
            rows = self.dealt.rows[begin : begin + block]
            counts = self.counts.batch(rows, n_words)
            embedded = start.embed(counts, self.prior.scale)
            own = self.prior[begin : begin + block]
            self.q.mean[begin : begin + block] = own.start(embedded) + embedded
        self._grow(n_words)
        squares = self.table.loadings[:n_words].square()
        spread = (self.totals[:n_words, None] * squares).sum(dim=0)
        spread = spread / self.totals.sum().clamp(min=1)
        tokens, family = self.effective_tokens, self.parts.covariance
        for begin in range(0, n, block):
            some = slice(begin, min(begin + block, n))
            information = family.from_diagonal(0.3 * tokens[some, None] * spread)
            self.q[some] = family.with_information(
                self.q.mean[some], self.prior[some], information
            )

    def _rare_bias(self, n_words: int) -> Tensor:
        """Return the biases of the rare words, given the row that merges them."""
        return log_shares(self.totals, n_words) + self.table.bias[n_words]

    def _grow(self, n_words: int) -> None:
        """Start loadings of the words up to `n_words`; the next row merges the rest."""
        before, k = self.table.n_words, self.table.n_components
        rows = self._sample()
        counts = CountTensor(damped(self.counts.batch(rows, n_words)), self._like)
        mean = self.dealt.gather(self.q.mean, rows)
        loadings, shift = first_loadings(
            counts, mean, self.parts.loadings, self.settings
        )
        if before == 0:
            self.table.bias[0] = 0.0
        bias = self._rare_bias(before)
        source = generator(self.seed, Stream.NEW_WORDS, before)
        noise = standard_normals((n_words - before, k), source, self._like)
        learned = shift[before:] if self.table.learn_bias else 0.0
        self.table.grow(
            n_words,
            loadings[before:] + self.init_scale * noise,
            bias[: n_words - before] + learned,
            bias[n_words - before :],
        )
        # Other machines may round differently.
        self.ranks.first(self.table.tensor)

    def one_pass(self) -> PassSums:
        """Visit every batch once."""
        stage, done = stage_after(self.epoch, self.stages)
        n_words, settings = stage.n_words, self.settings
        if self.table.n_words != n_words:
            self._grow(n_words)
        source = generator(self.seed, Stream.ORDER, self.epoch)
        batches = torch.randperm(len(self.dealt), generator=source).tolist()
        unseen = self.unseen
        step = MinibatchStep(self, n_words)
        regular = self.epoch == 0 or (done + 1) % settings.curved_every == 0
        curved = regular or done == stage.n_passes - 1
        k = self.table.n_components
        for number, batch in enumerate(batches):
            key = generator(self.seed, Stream.NOISE, self.epoch, number)
            noise = standard_normals((self.dealt.sizes[batch], k), key, self._like)
            if number % settings.basis_every == 0:
                step.update_basis()
            part = (done * len(batches) + number + 1) / (stage.n_passes * len(batches))
            step.visit(
                self.batch(batch, n_words),
                noise[self.dealt.within[batch]],
                stage.rate(part),
                curved,
                unseen=batch == unseen,
            )
        self._learn_parts(n_words)
        penalty = self.parts.loadings.penalty(self.table.loadings[:n_words])
        # Counted once, and the same in all processes, which must agree on when to stop.
        own = 0.0 if self.ranks.rank else penalty
        sums = self.ranks.sum(
            torch.stack([step.bound, step.kl, step.kl.new_tensor(own)])
        )
        bound, kl, penalty = sums.tolist()
        if self.parts.likelihood.linear:
            # Any other likelihood has seen each of the rare words.
            bound += self.counts.rare_log_likelihood(n_words)
        return PassSums(bound, kl, penalty)

    def _learn_parts(self, n_words: int) -> None:
        """Let parts learn from the documents just visited, or from the unseen ones."""
        if self.given is not None:
            return
        words = self.table.loadings[:n_words], self.table.bias[:n_words]
        if not self.parts.likelihood.linear:
            words = self.words_now()

        def posteriors() -> Iterator[Documents]:
            for batch in self.documents(n_words):
                rows = batch.rows
                yield Documents(batch.counts, self.q[rows], self.prior[rows])

        learned = learn_parts(self.parts, *words, posteriors(), ranks=self.ranks)
        if self.unseen is not None:
            # Each process uses all of them: a part's draws depend on their order.
            rows = self.dealt.first
            counts = self.counts.batch(rows, self.counts.n_features)
            tensors = self.q.tensors().items()
            q = self.q.like({k: self.dealt.gather(v, rows) for k, v in tensors})
            counted = CountTensor(counts, self._like)
            found = [Documents(counted, q, self._prior_of(rows))]
            learn_parts(self.parts, *self.words_now(), found, unseen=True)
            learned = True
        if learned:
            self.prior = self._prior_of(self.dealt.rows)

    def tensors(self) -> dict[str, Tensor]:
        """Return the words, which training moves in place, for a checkpoint."""
        return {"table": self.table.tensor, "n_words": self.table.size}

    def document_tensors(self) -> dict[str, Tensor]:
        """Return the tensors with a row per document of this process."""
        tensors = {f"posterior.{k}": v for k, v in self.q.tensors().items()}
        if not self.parts.likelihood.linear:
            tensors["effective_tokens"] = self.effective_tokens
        return tensors

    def documents_of(self, ranks: Ranks) -> NDArray[np.intp]:
        """Return the documents whose posteriors a process has."""
        return DealtBatches(self.n_documents, self.batch_size, self.seed, ranks).rows

    def optimizers(self) -> Mapping[str, Optimizer]:
        """Return the optimizers by name, for a checkpoint."""
        return self.table.optimizers()

    def restore(self, state: dict[str, Tensor], history: list[dict[str, Any]]) -> None:
        """Restore the state that :meth:`state` returned, and its history."""
        # The seed may be the checkpoint's.
        self._deal()
        self._cache.clear()
        super().restore(state, history)
        self.prior = self._prior_of(self.dealt.rows)
