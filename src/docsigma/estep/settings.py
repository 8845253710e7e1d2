"""How posteriors are found: each number with its reason.

`benchmarks/estep_settings.py` counts passes and bound without each, on five corpora
(`benchmarks/results/estep-settings.json`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class NewtonSettings:
    """How the loop steps; the defaults hold for every corpus tried."""

    # Part of a Newton step taken while nothing is known of the true curvature. Whole
    # steps save up to a tenth of the passes on two corpora, cost up to a fifth on the
    # others.
    damping: float = 0.8
    # A little less than the curvature that two gradients have shown, for it changes on
    # the way: without, 1 to 5 % more passes. Without the two gradients, 3 to 16 % more.
    caution: float = 0.9
    # Bounds on the length that they give. No document of the five corpora comes to
    # them; loadings that are nearly equal or very large do not converge without.
    shortest_length: float = 0.3
    longest_length: float = 2.0
    # Part of a document's curvature that its own words have; the rest has the shape of
    # the corpus's. Nothing takes up to 3.5 times the passes, twice as much 1.4 times.
    own_part: float = 0.4
    # Longest step, in standard deviations of the prior: no document of the five corpora
    # wants a longer one, but nothing else holds one where the curvature is misjudged.
    reach: float = 3.0
    # From a vocabulary this large, the first steps see the frequent words only: without
    # them 1.6 to 2 times the passes on 20 Newsgroups.
    large_vocabulary: int = 2**14
    # How many steps those are. Ten save 1 to 4 % of the passes, and cost a quarter of
    # one each.
    frequent_steps: int = 5
    # The frequent words: one in so many. A half saves 1 pass in 4 and costs 1.25, an
    # eighth costs 1 in 4 and saves 0.6.
    frequent_part: int = 4
    # Documents still open at this pass converge slowly: from then on steps are
    # extrapolated from the last ones. On the five corpora few come as far, and none
    # needs it; nearly equal columns of loadings do (tests/estep/test_newton.py).
    patience: int = 12
    # Documents at once: their logits of one tile of words fill the cache.
    chunk: int = 4096
    # A GPU wants many: starting a kernel takes longer than a small one runs.
    gpu_chunk: int = 2**17
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
    # A block is cut down to its open documents when they are fewer than this part.
    alive: float = 0.7


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
