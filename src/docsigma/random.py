"""Random numbers: explicit generators, the same on every device."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import torch
from torch import Tensor


class Stream(IntEnum):
    """Purpose of random numbers; no two streams share any."""

    LOADINGS = 0
    BATCHES = 1
    ORDER = 2
    NOISE = 3
    NEW_WORDS = 4
    SEMANTIC_START = 5
    STREAM_NOISE = 6
    EVIDENCE = 7
    CLIMB = 8
    NETWORK = 10
    SAMPLE = 11
    UNSEEN = 12


def generator(
    seed: int, stream: Stream, first: int = 0, second: int = 0
) -> torch.Generator:
    """Return a CPU generator that depends only on these four numbers.

    Training uses one per pass or batch, ``generator(seed, Stream.NOISE, epoch,
    batch)``, so a resumed run continues with the same draws without a saved state.
    The key always has three words of 32 bits, so no two keys coincide.

    Examples
    --------
    >>> one, other = (generator(0, Stream.NOISE, epoch) for epoch in (0, 1))
    >>> one.initial_seed() == other.initial_seed()
    False
    """
    key = (int(stream), first, second)
    if not all(0 <= word < 2**32 for word in key):
        raise ValueError(f"the words of a key must have 32 bits, got {key}")
    source = np.random.SeedSequence(seed, spawn_key=key)
    state = source.generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def standard_normals(
    shape: tuple[int, ...], source: torch.Generator, like: Tensor
) -> Tensor:
    """Draw on the CPU, so that the numbers are the same for every device."""
    return torch.randn(shape, generator=source, dtype=like.dtype).to(like.device)


def antithetic_normals(
    n_draws: int, n_components: int, source: torch.Generator, like: Tensor
) -> Tensor:
    """Draw pairs of opposite points, scaled so that their second moment is one.

    The mean over the draws is zero and, for an even number of draws, the mean
    square of each dimension is one: the first two moments carry no noise.

    Examples
    --------
    >>> like = torch.empty(0, dtype=torch.float64)
    >>> noise = antithetic_normals(4, 3, generator(0, Stream.EVIDENCE), like)
    >>> torch.allclose(noise.mean(dim=0), torch.zeros(3).double())
    True
    """
    half = standard_normals((-(-n_draws // 2), n_components), source, like)
    half = half / half.square().mean(dim=0).sqrt()
    pairs = torch.stack([half, -half], dim=1).reshape(-1, n_components)
    return pairs[:n_draws] if n_draws > 1 else torch.zeros_like(pairs[:1])
