"""How posteriors are found: each number with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class NewtonSettings:
    """How the loop steps; the defaults hold for every corpus tried."""

    # Documents at once: their logits of one tile of words fill the cache.
    chunk: int = 4096
    # A GPU wants many: starting a kernel takes longer than a small one runs.
    gpu_chunk: int = 2**17
    # Part of a Newton step taken while nothing is known of the true curvature.
    damping: float = 0.8
    # Bounds on that part, once two gradients have shown the curvature.
    shortest_length: float = 0.3
    longest_length: float = 2.0
    # And a little less than what they show, for the curvature changes on the way.
    caution: float = 0.9
    # Longest step, in standard deviations of the prior.
    reach: float = 3.0
    # A bound that changed by less than this part of what the slope had promised, and by
    # less than so many nats, is judged by the slopes at both ends of the step.
    unclear: float = 0.5
    most_unclear: float = 0.05
    # So many roundings of the bound are unclear in any case.
    rounding: float = 16.0
    # A step that lowers the bound is halved until it is this short; then the document
    # stays where it is.
    shortest_step: float = 1.0 / 64
    # A document that misses the tolerance by up to this part of it is nearly done: its
    # answer there fades into the next, so that none jumps where rounding decides.
    ramp: float = 0.1
    # Documents still open at this pass converge slowly: from then on steps are
    # extrapolated from the last ones.
    patience: int = 12
    # A block is cut down to its open documents when they are fewer than this part.
    alive: float = 0.7
    # From a vocabulary this large, the first steps see the frequent words only.
    large_vocabulary: int = 2**14
    # How many steps those are; not measured, and not done, on a GPU.
    frequent_steps: int = 5
    # The frequent words: one in so many. They hold most of the tokens.
    frequent_part: int = 4


@dataclass(frozen=True)
class FullSettings:
    """How covariances that are no diagonals are found."""

    # Draws in many dimensions: in 100 of them, where full covariances gain 5.5 nats per
    # document of 20 Newsgroups, twice as many gain 0.02 more, half as many 0.05 less.
    n_draws: int = 16
    # In few dimensions draws are cheap, and each says less: this many coordinates.
    coordinates: int = 1024
    # But never more draws than this.
    most_draws: int = 256
    # Most passes; three are the rule.
    max_iter: int = 10
    # Matrices and draws of the documents at work, in bytes.
    memory: int = 2**30

    def draws(self, n_components: int) -> int:
        """Return how many draws, in pairs of opposite ones."""
        wanted = max(self.n_draws, self.coordinates // n_components)
        return 2 * (min(wanted, self.most_draws) // 2)

    def rows(self, like: Tensor, n_draws: int) -> int:
        """Return how many documents are at work at once, under words `like`."""
        k = like.shape[1]
        # About eight matrices, and five arrays of draws, are alive in a step.
        numbers = 8 * k * k + 5 * k * n_draws
        return max(1, self.memory // (like.element_size() * numbers))
