"""The two halves of NVDM: an encoder of counts and a softmax decoder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.functional import embedding_bag

from docsigma.covariances import DiagonalGaussians
from docsigma.objective import document_bound, kl_divergence
from docsigma.priors import IsotropicPrior
from docsigma.random import Stream, generator, standard_normals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scipy.sparse import csr_matrix
    from torch import Tensor

    from docsigma.counts import Counts


PRIOR = IsotropicPrior(1.0)
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
# Documents encoded at once.
BLOCK = 8192
# A document unlike all others must not get a variance that float32 cannot hold.
LARGEST_LOG_STD = 10.0


@dataclass(frozen=True)
class CountBatch:
    """Counts of some documents, as lists of words; nothing dense.

    Attributes
    ----------
    words : Tensor of shape (nnz,)
        Column of each count, document after document.
    values : Tensor of shape (nnz,)
        The counts.
    offsets : Tensor of shape (n + 1,)
        Where each document begins, and the end.
    n_tokens : Tensor of shape (n,)
        Sum of each document's counts.
    """

    words: Tensor
    values: Tensor
    offsets: Tensor
    n_tokens: Tensor

    @classmethod
    def from_csr(cls, counts: csr_matrix, like: Tensor) -> CountBatch:
        """Put counts into tensors of the dtype and the device of `like`."""
        tokens = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        return cls(
            torch.from_numpy(counts.indices.astype(np.int64)).to(like.device),
            torch.from_numpy(counts.data).to(like),
            torch.from_numpy(counts.indptr.astype(np.int64)).to(like.device),
            torch.from_numpy(tokens).to(like),
        )

    def shuffled(self, order: Tensor) -> CountBatch:
        """Return all documents in another order."""
        first, lengths = self.offsets[order], self.offsets.diff()[order]
        offsets = torch.zeros_like(self.offsets)
        torch.cumsum(lengths, 0, out=offsets[1:])
        shift = torch.repeat_interleave(
            first - offsets[:-1], lengths, output_size=len(self.words)
        )
        entries = shift + torch.arange(len(shift), device=shift.device)
        return CountBatch(
            self.words[entries], self.values[entries], offsets, self.n_tokens[order]
        )

    def split(self, size: int) -> Iterator[CountBatch]:
        """Return `size` documents at a time, as views."""
        n_documents = len(self.n_tokens)
        starts = range(0, n_documents, size)
        bounds = self.offsets[[*starts, n_documents]].tolist()
        for start, (begin, end) in zip(starts, pairwise(bounds), strict=True):
            stop = min(start + size, n_documents)
            yield CountBatch(
                self.words[begin:end],
                self.values[begin:end],
                self.offsets[start : stop + 1] - begin,
                self.n_tokens[start:stop],
            )

    def project(self, table: Tensor) -> Tensor:
        """Return ``x @ table`` for every document, of shape (n, columns)."""
        return embedding_bag(
            self.words,
            table,
            self.offsets,
            mode="sum",
            per_sample_weights=self.values,
            include_last_offset=True,
        )


def encoder_shapes(
    n_features: int, n_components: int, hidden_units: int, n_layers: int
) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array of the encoder, by name.

    Examples
    --------
    >>> shapes = encoder_shapes(2000, 50, hidden_units=500, n_layers=2)
    >>> shapes["hidden1.weight"], shapes["hidden2.weight"], shapes["mean.weight"]
    ((2000, 500), (500, 500), (500, 50))
    """
    shapes: dict[str, tuple[int, ...]] = {}
    widths = [n_features] + [hidden_units] * n_layers
    for layer, (before, after) in enumerate(pairwise(widths), start=1):
        shapes[f"hidden{layer}.weight"] = (before, after)
        shapes[f"hidden{layer}.bias"] = (after,)
    for head in ("mean", "log_std"):
        shapes[f"{head}.weight"] = (hidden_units, n_components)
        shapes[f"{head}.bias"] = (n_components,)
    return shapes


class NVDMNetwork:
    r"""Encoder and decoder (Miao, Yu and Blunsom, 2016).

    The encoder is a perceptron on raw counts with two linear heads,

    .. math::
        \pi = g(\ldots g(x W_1 + c_1) \ldots), \qquad
        \mu = \pi W_\mu + c_\mu, \qquad
        \log\sigma = \pi W_\sigma + c_\sigma,

    the decoder is :math:`\theta = \mathrm{softmax}(R h + b)`.

    Parameters
    ----------
    encoder : dict of Tensors
        As :func:`encoder_shapes` names them.
    decoder : dict of Tensors
        ``loadings``, R of shape (V, K), and ``bias``, b of shape (V,).
    activation : {"relu", "sigmoid", "tanh"}
        g.
    """

    def __init__(
        self,
        encoder: dict[str, Tensor],
        decoder: dict[str, Tensor],
        activation: str,
    ) -> None:
        self.encoder = encoder
        self.decoder = decoder
        self._activate = ACTIVATIONS[activation]
        self._n_layers = sum(name.startswith("hidden") for name in encoder) // 2

    @classmethod
    def initial(
        cls,
        bias: Tensor,
        *,
        n_components: int,
        hidden_units: int,
        n_layers: int,
        activation: str,
        seed: int,
    ) -> NVDMNetwork:
        r"""Return the network that training starts from.

        Weights are normals of variance :math:`2 / (n_{in} + n_{out})` (Glorot and
        Bengio, 2010). Those of :math:`\log\sigma` are zero, so that every variance
        starts at the prior's, and `bias` is the start of b.
        """
        source = generator(seed, Stream.NETWORK)

        def glorot(shape: tuple[int, ...]) -> Tensor:
            normals = standard_normals(shape, source, bias)
            return normals * math.sqrt(2.0 / sum(shape))

        n_features = len(bias)
        shapes = encoder_shapes(n_features, n_components, hidden_units, n_layers)
        encoder = {
            name: bias.new_zeros(shape)
            if len(shape) == 1 or name.startswith("log_std")
            else glorot(shape)
            for name, shape in shapes.items()
        }
        loadings = glorot((n_features, n_components))
        decoder = {"loadings": loadings, "bias": bias.clone()}
        return cls(encoder, decoder, activation)

    @property
    def n_components(self) -> int:
        """K."""
        return int(self.decoder["loadings"].shape[1])

    def encode(self, batch: CountBatch) -> DiagonalGaussians:
        """Return the posterior of every document: one pass forward."""
        hidden = batch.project(self.encoder["hidden1.weight"])
        hidden = self._activate(hidden + self.encoder["hidden1.bias"])
        for layer in range(2, self._n_layers + 1):
            hidden = self._activate(self._linear(f"hidden{layer}", hidden))
        log_std = self._linear("log_std", hidden)
        log_std = log_std.clamp(-LARGEST_LOG_STD, LARGEST_LOG_STD)
        return DiagonalGaussians(self._linear("mean", hidden), log_std)

    def encode_counts(self, counts: csr_matrix | Counts) -> DiagonalGaussians:
        """Encode any number of documents, a block of them at a time."""
        like = self.decoder["bias"]
        starts = range(0, max(1, counts.shape[0]), BLOCK)
        parts = [
            self.encode(CountBatch.from_csr(counts[start : start + BLOCK], like))
            for start in starts
        ]
        return DiagonalGaussians(
            torch.cat([q.mean for q in parts]), torch.cat([q.log_std for q in parts])
        )

    def _linear(self, name: str, hidden: Tensor) -> Tensor:
        weight, bias = (self.encoder[f"{name}.{part}"] for part in ("weight", "bias"))
        return hidden @ weight + bias

    def log_likelihood(self, batch: CountBatch, points: Tensor) -> Tensor:
        r"""Return :math:`\log p(x|h)` at points of shape (n, draws, K).

        .. math::
            \sum_j x_j \log\theta_j =
            x \cdot b + (x R) \cdot h - N \log\sum_j \exp(b_j + R_j h)

        Returns
        -------
        Tensor of shape (n, draws)
        """
        loadings, bias = self.decoder["loadings"], self.decoder["bias"]
        lse = torch.logsumexp(points @ loadings.t() + bias, dim=-1)
        linear = torch.einsum("dk,drk->dr", batch.project(loadings), points)
        score = batch.project(bias[:, None])
        return score + linear - batch.n_tokens[:, None] * lse

    def bound(self, batch: CountBatch, noise: Tensor) -> tuple[Tensor, Tensor]:
        r"""Return each document's bound, and its KL to the prior; both float64.

        .. math::
            \mathcal{L}_d = \frac1S \sum_s \log p(x_d | \mu_d + \sigma_d \odot
            \epsilon_{ds}) - D_{KL}(q_d \,\|\, N(0, I))

        Parameters
        ----------
        batch : CountBatch
            The documents.
        noise : Tensor of shape (n, draws, K)
            Standard normal draws.

        Returns
        -------
        tuple of two Tensors of shape (n,)
        """
        q = self.encode(batch)
        likelihood = self.log_likelihood(batch, q.points(noise))
        kl = kl_divergence(q, PRIOR.tensors(self.n_components, q.mean))
        return document_bound(likelihood.mean(dim=1).double(), kl), kl
