"""How much the words of one document count together, chosen on held-out documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from docsigma.classifiers._class_gaussians import Membership
    from docsigma.classifiers._likelihood_factors import LikelihoodFactors


@dataclass(frozen=True, order=True)
class Tempering:
    r"""The factor :math:`\kappa(N) = k_0 / (1 + N / \alpha)` of a document's evidence.

    Words of one document are not independent, so that its likelihood is too sure.

    Attributes
    ----------
    factor, tokens : float
        :math:`k_0` and :math:`\alpha`.
    """

    factor: float
    tokens: float

    def __call__(self, factors: LikelihoodFactors) -> LikelihoodFactors:
        return factors.tempered(self.factor, self.tokens)

    def kept(self, factors: LikelihoodFactors, membership: Membership) -> float:
        """Return the mean factor of documents."""
        weights = membership.labelled.sum(dim=1) + membership.unlabelled
        kappa = self.factor / (1 + factors.n_tokens / self.tokens)
        return float(weights @ kappa / weights.sum())


FACTORS = (0.0625, 0.125, 0.177, 0.25, 0.354, 0.5, 0.707, 1.0, 1.414, 2.0)
TOKENS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 1e9)
# What documents that cannot be spared for a choice get.
DEFAULT = Tempering(0.5, 300.0)


def choose_tempering(loss: Callable[[Tempering], float]) -> Tempering:
    """Return the tempering of the least loss, found by steps to better neighbours."""
    place = FACTORS.index(DEFAULT.factor), TOKENS.index(DEFAULT.tokens)
    known: dict[tuple[int, int], float] = {}

    def evaluate(at: tuple[int, int]) -> float:
        if at not in known:
            known[at] = loss(Tempering(FACTORS[at[0]], TOKENS[at[1]]))
        return known[at]

    while True:
        i, j = place
        near = [place, (i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]
        near += [(i - 1, j + 1), (i + 1, j - 1)]
        inside = [
            at for at in near if 0 <= at[0] < len(FACTORS) and 0 <= at[1] < len(TOKENS)
        ]
        best = min(inside, key=evaluate)
        if best == place:
            return Tempering(FACTORS[i], TOKENS[j])
        place = best


def thinned_copy(
    factors: LikelihoodFactors, random: np.random.Generator
) -> LikelihoodFactors:
    """Return each document cut to a random length, uniform in its logarithm."""

    def tensor(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Tensor:
        return torch.from_numpy(values).to(factors.observed)

    length = factors.n_tokens.clamp(min=1.0)
    share = length ** -tensor(random.random(len(factors)))
    noise = tensor(random.standard_normal(tuple(factors.observed.shape)))
    return factors.thinned(share, noise)


def given_tempering(tempering: Any) -> Tempering | None:
    """Return the tempering that a user gave, None for "auto"."""
    if isinstance(tempering, str):
        return None
    values = [float(value) for value in tempering]
    if len(values) != 2 or not all(0 < value < np.inf for value in values):
        raise InputError(
            f"`tempering` must be 'auto' or two positive numbers, got {tempering}"
        )
    return Tempering(*values)
