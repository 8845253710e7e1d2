"""Training on documents that are seen once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from docsigma.counts.sorted_counts import log_unigram
from docsigma.estep import infer
from docsigma.kernels import CountTensor, SoftmaxWords, softmax_moments
from docsigma.loadings import WordGradient, WordInformation
from docsigma.objective import corpus_bound, kl_divergence
from docsigma.random import Stream, generator, standard_normals
from docsigma.trainers.lsa_start import damped, first_loadings, semantic_start
from docsigma.trainers.minibatch_step import WordTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from docsigma.covariances import Gaussians
    from docsigma.objective import Model
    from docsigma.parts import Parts
    from docsigma.trainers.settings import MinibatchSettings


class StreamTrainer:
    """The state of a training on a stream of documents.

    The objective is that of all documents so far: a batch's gradient is scaled to
    them, and the penalties count once. Parameters are those of
    :class:`~docsigma.trainers.minibatch.MinibatchTrainer`, except for two.

    Parameters
    ----------
    learning_rate : float
        Size of the first step; steps shrink with the root of their number.
    learn_bias : bool
        Whether m is learned; otherwise it is the log uni-gram of all documents so far.
    """

    def __init__(
        self,
        parts: Parts,
        like: Tensor,
        *,
        n_features: int,
        n_components: int,
        learning_rate: float,
        batch_size: int,
        learn_bias: bool,
        seed: int,
        settings: MinibatchSettings,
    ) -> None:
        self.parts = parts
        self.prior = parts.prior.tensors(n_components, like)
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.seed = seed
        self.settings = settings
        self._like = like
        self._table = WordTable(
            n_features, n_components, parts.loadings, like, learn_bias
        )
        # No words are merged here: their row never counts.
        self._table.tensor[-1, -2] = -1e4
        self._n_steps = 0
        self._totals = np.zeros(n_features)
        # Of loadings with a spread, over all documents so far.
        self._curvature: Tensor | float = 0.0
        self._started = False
        self._seconds = 0.0

    def fitted(self) -> tuple[Tensor, Tensor]:
        """Return the columns of the words and m."""
        columns = self.parts.loadings.columns(self._table.loadings)
        return columns, self._table.bias[:-1]

    def log_unigram(self) -> NDArray[np.float64]:
        """Return the log uni-gram of all documents so far."""
        return log_unigram(self._totals)

    def resume(self, model: Model, word_totals: NDArray[np.float64]) -> None:
        """Continue from a model, with the word totals of its training corpus."""
        self._table.loadings.copy_(model.loadings)
        self._table.bias[:-1] = model.bias
        if model.words is not None:
            # It includes the prior's precision, which is small and fades in time.
            self._curvature = 1 / model.words.variance
        self._totals = word_totals
        self._started = True

    def learn(self, blocks: Iterable[sp.csr_matrix]) -> dict[str, float]:
        """Pass once over some documents; return their history row."""
        started = time.perf_counter()
        bound = kl = 0.0
        n_documents = 0
        for counts in blocks:
            n_documents += counts.shape[0]
            self._totals += np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
            if not self._started:
                self._start(counts)
            elif not self._table.learn_bias:
                self._table.bias[:-1] = torch.from_numpy(self.log_unigram())
            for begin in range(0, counts.shape[0], self.batch_size):
                batch = counts[begin : begin + self.batch_size]
                if batch.nnz:
                    value, divergence = self._visit(CountTensor(batch, self._like))
                    bound += value
                    kl += divergence
        self._seconds += time.perf_counter() - started
        loadings = self._table.loadings
        return {
            "bound": corpus_bound(bound, self.parts.loadings.penalty(loadings)),
            "kl": kl / max(n_documents, 1),
            "sparsity": float((loadings == 0).double().mean()),
            "seconds": self._seconds,
        }

    def _start(self, counts: sp.csr_matrix) -> None:
        k = self._table.n_components
        start = semantic_start(counts, k, self.seed, self._like, self.settings.spare)
        mean = start.embed(counts, self.prior.scale)
        weighted = CountTensor(damped(counts), self._like)
        loadings, shift = first_loadings(
            weighted, mean, self.parts.loadings, self.settings
        )
        self._table.loadings.copy_(loadings)
        bias = torch.from_numpy(self.log_unigram()).to(self._like)
        self._table.bias[:-1] = bias + shift if self._table.learn_bias else bias
        self._started = True

    def _visit(self, counts: CountTensor) -> tuple[float, float]:
        loadings, bias = self._table.loadings, self._table.bias[:-1]
        parts, k = self.parts, self._table.n_components
        model = parts.model(loadings.contiguous(), bias.contiguous())
        found = infer(
            counts, model, parts.covariance, max_iter=self.settings.stream_passes
        )
        q, step = found.posterior, self._n_steps
        self._n_steps += 1
        source = generator(self.seed, Stream.STREAM_NOISE, step)
        noise = standard_normals((len(counts), 1, k), source, self._like)
        points = q.points(noise)[:, 0]
        words = SoftmaxWords.of_table(self._table.tensor)
        likelihood = parts.likelihood.bind(counts, model.loadings, model.bias)
        effective, tokens, at = counts, counts.n_tokens, q.mean
        if not parts.likelihood.linear:
            terms = likelihood.at(points, softmax_moments(points, words).lse)
            effective, tokens, at = terms.counts, terms.tokens, points
        moments = softmax_moments(
            points, words, weights=tokens, workspace=self._table.workspace
        )
        assert moments.loading_gradient is not None
        assert moments.bias_gradient is not None
        scale = float(self._totals.sum()) / float(counts.n_tokens.sum())
        rate = self.learning_rate / (1 + step / self.settings.stream_slowing) ** 0.5
        self._table.ascent.ascend(
            loadings,
            WordGradient(
                scale * effective.backproject(at),
                moments.loading_gradient[:-1],
                scale,
                rate,
                information=self._information(counts, q),
            ),
        )
        if self._table.learn_bias:
            totals = effective.word_totals()
            excess = (totals - moments.bias_gradient[:-1])[:, None]
            self._table.bias_ascent.ascend(
                self._table.tensor[:-1, -2:-1], excess * scale, rate * self.prior.scale
            )
        return float(found.bound.sum()), float(kl_divergence(q, self.prior).sum())

    def _information(self, counts: CountTensor, q: Gaussians) -> WordInformation | None:
        """Return the sums over documents so far that loadings with variances need."""
        if not self.parts.loadings.has_variance:
            return None
        totals = torch.from_numpy(self._totals).to(self._like)
        second = counts.backproject(q.mean.square() + q.variance)
        self._curvature = second + self._curvature
        return WordInformation(self._curvature, totals[:, None])
