"""Settings of the E-step: each number with its reason.

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
    """Settings of the Newton loop; the defaults hold for every corpus tried."""

    # Fraction of a Newton step taken while the true curvature is unknown. Whole steps
    # save up to a tenth of the passes on two corpora, and cost up to a fifth on the
    # rest.
    damping: float = 0.8
    # Factor on the step length from two gradients, for the curvature changes on the
    # way: without it, 1 to 5 % more passes. Without the two gradients, 3 to 16 % more.
    caution: float = 0.9
    # Bounds on that length. No document of the five corpora reaches them; loadings
    # that are nearly equal or very large do not converge without.
    shortest_length: float = 0.3
    longest_length: float = 2.0
    # Share of a document's own words in its curvature; the rest has the shape of the
    # corpus's. A share of 0 takes up to 3.5 times the passes, 0.8 1.4 times.
    own_part: float = 0.4
    # Longest step, in standard deviations of the prior: no document of the five corpora
    # reaches it, but nothing else limits a step if the curvature is misjudged.
    reach: float = 3.0
    # From a vocabulary this large, the first steps use only the frequent words: without
    # them up to 2.2 times the passes on 20 Newsgroups.
    large_vocabulary: int = 2**14
    # Number of those steps. Ten save up to 6 % of the passes, and cost a quarter of
    # one each.
    frequent_steps: int = 5
    # The frequent words are one in four. A half saves 1 pass in 4 and costs 1.25, an
    # eighth costs 1 in 4 and saves 0.6.
    frequent_part: int = 4
    # Documents still open at this pass converge slowly: from then on steps are
    # extrapolated from the last ones. On the five corpora few get this far, and none
    # needs it; nearly equal columns of loadings do (tests/estep/test_newton.py).
    patience: int = 12
    # Documents per block: their logits of one tile of words fill the cache.
    chunk: int = 4096
    # A GPU needs more: launching a kernel takes longer than a small one runs.
    gpu_chunk: int = 2**17
    # If the bound changed by less than this fraction of the gain that the slope
    # predicted, the slopes at both ends of the step decide ...
    unclear: float = 0.5
    # ... up to a change of this many nats.
    most_unclear: float = 0.05
    # They also decide within this many rounding errors of the bound.
    rounding: float = 16.0
    # A step that lowers the bound is halved until it is this short; then the document
    # stays at its current point.
    shortest_step: float = 1.0 / 64
    # A document that misses the tolerance by up to this fraction of it is nearly done:
    # its answer is blended with the next, so that none jumps when rounding decides.
    ramp: float = 0.1
    # A block is reduced to its open documents when they are fewer than this fraction.
    alive: float = 0.7


@dataclass(frozen=True)
class FullSettings:
    """Settings for full covariances."""

    # Draws in many dimensions: in 100 of them, where full covariances gain 5.5 nats per
    # document of 20 Newsgroups, twice as many gain 0.02 more, half as many 0.05 less.
    n_draws: int = 16
    # In few dimensions draws are cheap and less informative: this many coordinates.
    coordinates: int = 1024
    # But never more draws than this.
    most_draws: int = 256
    # Maximum number of passes; usually three suffice.
    max_iter: int = 10
    # Matrices and draws of a block of documents, in bytes.
    memory: int = 2**30

    def draws(self, n_components: int) -> int:
        """Return the number of draws, which is even."""
        wanted = max(self.n_draws, self.coordinates // n_components)
        return 2 * (min(wanted, self.most_draws) // 2)

    def rows(self, like: Tensor, n_draws: int) -> int:
        """Return the number of documents per block, for loadings `like`."""
        k = like.shape[1]
        # A step holds about eight matrices and five arrays of draws per document.
        numbers = 8 * k * k + 5 * k * n_draws
        return max(1, self.memory // (like.element_size() * numbers))
