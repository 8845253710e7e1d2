"""Random numbers: explicit generators, the same on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["antithetic_normals", "generator", "standard_normals"]


def generator(*key: int) -> torch.Generator:
    """Give a CPU generator that depends on the numbers in `key` and nothing else.

    Training takes one a pass, ``generator(seed, epoch)``: a resumed run needs no
    generator state to go on with the same draws.
    """
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def standard_normals(
    shape: tuple[int, ...], source: torch.Generator, like: Tensor
) -> Tensor:
    """Draw on the CPU, so that every device sees the same numbers."""
    return torch.randn(shape, generator=source, dtype=like.dtype).to(like.device)


def antithetic_normals(
    n_draws: int, n_components: int, source: torch.Generator, like: Tensor
) -> Tensor:
    """Draw pairs of opposite points, scaled so that their second moment is one.

    The mean over the draws is zero and, for an even number of draws, the mean
    square of each dimension is one: the first two moments carry no noise.

    Returns
    -------
    Tensor of shape (n_draws, n_components)

    Examples
    --------
    >>> like = torch.empty(0, dtype=torch.float64)
    >>> noise = antithetic_normals(4, 3, generator(0), like)
    >>> torch.allclose(noise.mean(dim=0), torch.zeros(3).double())
    True
    """
    half = standard_normals((-(-n_draws // 2), n_components), source, like)
    half = half / half.square().mean(dim=0).sqrt()
    pairs = torch.stack([half, -half], dim=1).reshape(-1, n_components)
    return pairs[:n_draws] if n_draws > 1 else torch.zeros_like(pairs[:1])
