"""Training of NVDM: the decoder and the encoder by turns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from docsigma.counts import as_counts
from docsigma.exceptions import InputError
from docsigma.random import Stream, generator, standard_normals
from docsigma.trainers._base import PassSums, StopRule, Trainer
from docsigma_paper.models.nvdm_network import CountBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scipy.sparse import csr_matrix
    from torch import Tensor

    from docsigma.counts import Counts
    from docsigma_paper.models.nvdm_network import NVDMNetwork


# Five rounds against the five before.
STOP = StopRule(window=5)
# Batches whose noise is drawn together.
NOISES = 64


class NVDMTrainer(Trainer):
    """The state of a training in rounds.

    A round is `alternate_passes` passes over the corpus that move the decoder alone,
    and as many that move the encoder alone. A pass goes through the documents in
    minibatches, in its own random order; a step of Adam follows the mean of the
    batch's bounds. An epoch of the history is a round; its bound and its KL are those
    met in the last pass, each document's at the weights of the time.

    Parameters
    ----------
    counts : csr_matrix or Counts
        The training documents.
    network : NVDMNetwork
        Where training starts; moved in place.
    alternate_passes : int
        Passes of each half in a round.
    learning_rate : float
        Adam's step size.
    batch_size : int
        Documents in a minibatch.
    n_draws : int
        Draws per document and step.
    seed : int
        With the numbers of round and pass, decides the order and the noise.
    """

    def __init__(
        self,
        counts: csr_matrix | Counts,
        network: NVDMNetwork,
        *,
        alternate_passes: int,
        learning_rate: float,
        batch_size: int,
        n_draws: int,
        seed: int,
    ) -> None:
        super().__init__(seed)
        self.counts = as_counts(counts)
        self.network = network
        self.alternate_passes = alternate_passes
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_draws = n_draws
        # Counts in memory go to the device at once: no step then waits for a copy.
        self._corpus: CountBatch | None = None
        if self.counts.in_memory:
            self._corpus = CountBatch.from_csr(self.counts[:], network.decoder["bias"])
        self._halves = {"decoder": network.decoder, "encoder": network.encoder}
        self._optimizers = {
            half: torch.optim.Adam(tensors.values(), lr=learning_rate, fused=True)
            for half, tensors in self._halves.items()
        }

    @property
    def n_documents(self) -> int:
        """Documents of the corpus."""
        return int(self.counts.shape[0])

    def fitted(self) -> tuple[Tensor, Tensor]:
        """Return R and b of the decoder."""
        decoder = self.network.decoder
        return decoder["loadings"].detach(), decoder["bias"].detach()

    def stop_rule(self) -> StopRule:
        """Return the same rule throughout."""
        return STOP

    def one_pass(self) -> PassSums:
        """Make one round: all passes of the decoder, then all of the encoder."""
        bound = kl = 0.0
        for turn, half in enumerate(self._halves):
            for number in range(self.alternate_passes):
                bound, kl = self._pass(half, turn * self.alternate_passes + number)
        if not math.isfinite(bound):
            raise InputError(
                f"training diverged in round {self.epoch + 1}, the bound is {bound}; "
                f"`learning_rate` should be less than {self.learning_rate:g}"
            )
        return PassSums(bound, kl, 0.0)

    def _pass(self, half: str, number: int) -> tuple[float, float]:
        """Move one half through all documents; return the sums of bound and KL."""
        source = generator(self.seed, Stream.NETWORK, 1 + self.epoch, number)
        like, _ = self.fitted()
        for name, tensors in self._halves.items():
            for tensor in tensors.values():
                tensor.requires_grad_(name == half)
        optimizer = self._optimizers[half]
        order = torch.randperm(self.n_documents, generator=source)
        # Summed on the device: a look at every step would make it wait.
        sums = torch.zeros(2, dtype=torch.float64, device=like.device)
        batches, noises = self._batches(order, like), self._noises(source, like)
        for batch, noise in zip(batches, noises, strict=True):
            bound, kl = self.network.bound(batch, noise)
            optimizer.zero_grad()
            torch.autograd.backward(-bound.mean())
            optimizer.step()
            sums += torch.stack([bound.detach().sum(), kl.detach().sum()])
        optimizer.zero_grad()
        for tensor in self._halves[half].values():
            tensor.requires_grad_(False)
        total, divergence = sums.tolist()
        return total, divergence

    def _batches(self, order: Tensor, like: Tensor) -> Iterator[CountBatch]:
        if self._corpus is not None:
            yield from self._corpus.shuffled(order.to(like.device)).split(
                self.batch_size
            )
            return
        for rows in torch.split(order, self.batch_size):
            yield CountBatch.from_csr(self.counts[rows.numpy()], like)

    def _noises(self, source: torch.Generator, like: Tensor) -> Iterator[Tensor]:
        """Draw for many batches at a time: few copies to the device, little memory."""
        at_once = self.batch_size * NOISES
        for start in range(0, self.n_documents, at_once):
            n_documents = min(at_once, self.n_documents - start)
            shape = (n_documents, self.n_draws, self.network.n_components)
            noise = standard_normals(shape, source, like)
            yield from torch.split(noise, self.batch_size)
