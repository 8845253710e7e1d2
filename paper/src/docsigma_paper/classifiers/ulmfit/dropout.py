"""The five kinds of dropout of an AWD-LSTM, drawn from one generator."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch import Tensor, nn


@dataclass(frozen=True)
class DropoutRates:
    """How much is dropped where.

    Attributes
    ----------
    output : float
        Of the outputs of the last layer.
    hidden : float
        Of the outputs between layers.
    embedding : float
        Of the word vectors' entries.
    words : float
        Of whole words.
    weights : float
        Of the entries of the hidden-to-hidden matrices.
    """

    output: float = 0.0
    hidden: float = 0.0
    embedding: float = 0.0
    words: float = 0.0
    weights: float = 0.0

    @classmethod
    def scaled(cls, rate: float) -> DropoutRates:
        """Scale Howard and Ruder's rates, which are those of `rate` 0.4.

        Examples
        --------
        >>> DropoutRates.scaled(0.4)
        DropoutRates(output=0.4, hidden=0.3, embedding=0.4, words=0.05, weights=0.5)
        """
        parts = (1.0, 0.75, 1.0, 0.125, 1.25)
        return cls(*(round(part * rate, 12) for part in parts))


class Dropout:
    """Draws what is dropped; a network without one drops nothing.

    What is kept is divided by the probability of being kept.

    Parameters
    ----------
    rates : DropoutRates
        How much is dropped where.
    generator : torch.Generator
        Source of the draws, on the device of the network.
    """

    def __init__(self, rates: DropoutRates, generator: torch.Generator) -> None:
        self.rates = rates
        self.generator = generator

    def mask(self, shape: Sequence[int], rate: float, like: Tensor) -> Tensor:
        """Zeros with probability `rate`, else the reciprocal of what is left of 1."""
        kept = torch.empty(tuple(shape), dtype=like.dtype, device=like.device)
        return kept.bernoulli_(1 - rate, generator=self.generator).div_(1 - rate)

    def plain(self, x: Tensor, rate: float) -> Tensor:
        """Drop each entry independently."""
        return x * self.mask(x.shape, rate, x) if rate else x

    def locked(self, x: Tensor, rate: float) -> Tensor:
        """Drop the same entries of `x` (time x documents x units) at all times."""
        return x * self.mask((1, *x.shape[1:]), rate, x) if rate else x

    def words(self, vectors: Tensor, tokens: Tensor, n_words: int) -> Tensor:
        """Drop words: wherever a dropped one occurs, its vector is zero."""
        rate = self.rates.words
        return (
            vectors * self.mask((n_words, 1), rate, vectors)[tokens]
            if rate
            else vectors
        )

    @contextlib.contextmanager
    def weights(self, layers: Iterable[nn.LSTM]) -> Iterator[None]:
        """Drop entries of the hidden-to-hidden matrices while the block lasts.

        Forward and backward pass belong in the block. The dropped weights are written
        into the layers themselves, whose fast kernels want them in their place. At
        the end the whole matrices are back, and the gradients are those of them.
        """
        rate = self.rates.weights
        whole: list[tuple[Tensor, Tensor, Tensor]] = []
        try:
            with torch.no_grad():
                for layer in layers if rate else ():
                    weight = layer.get_parameter("weight_hh_l0")
                    mask = self.mask(weight.shape, rate, weight)
                    whole.append((weight, weight.clone(), mask))
                    weight.mul_(mask)
            yield
        finally:
            with torch.no_grad():
                for dropped, before, mask in whole:
                    dropped.copy_(before)
                    if dropped.grad is not None:
                        dropped.grad.mul_(mask)
