"""How the minibatch trainer steps, and which words it trains in which passes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docsigma.counts.sorted_counts import SortedCounts


@dataclass(frozen=True)
class MinibatchSettings:
    """How the minibatch trainer steps; the defaults hold for every corpus tried."""

    # Passes over a corpus of `small` documents or more.
    passes: int = 11
    # Fewer documents get more passes, by the square root of what is missing ...
    small: int = 10_000
    # ... up to this many.
    most_passes: int = 100
    # Learning rate of T at the start.
    rate: float = 0.04
    # Components beyond which steps get smaller and passes more.
    large: int = 100
    # A small corpus has ten batches to a pass, of this many documents at the least.
    least_batch: int = 32
    # Documents that the start is made from.
    sample: int = 20_000
    # Documents in a block of a sparse pass over counts on disk.
    block: int = 8192
    # Part of a Newton step that posteriors go in the first pass, and in the last.
    first_damping: float = 0.6
    last_damping: float = 0.4
    # Longest step of a posterior's mean, in standard deviations of the prior.
    reach: float = 2.0
    # Batches after which the words' covariance is computed again.
    basis_every: int = 12
    # Variances move in the first pass, the last of a stage and every so many: the
    # others save a product.
    curved_every: int = 8
    # Longest step of T, in Newton steps.
    newton: float = 0.7
    # Words in fewer documents than this go faster: their gradients have less noise.
    common: float = 100.0
    # How much faster at the most.
    rare_word_rate: float = 5.0
    # The words that hold this part of the tokens are trained first ...
    head_tokens: float = 0.955
    # ... where they are at most this part of the vocabulary ...
    head_words: float = 0.6
    # ... in this part of the passes.
    head_passes: float = 0.4
    # Learning rate at the end of the two stages, against that at their beginning.
    head_end: float = 0.3
    end: float = 0.04
    # Part of the passes in which a batch is set aside, if a part learns from unseen
    # documents: later, words change little and would rather see all of them ...
    unseen_passes: float = 0.5
    # ... and batches below which none is: too few documents would be left.
    least_batches: int = 4
    # The stop rule compares this many passes at the least.
    window: int = 2

    def n_passes(self, n_documents: int, n_components: int) -> int:
        """Return the number of passes: more for a small corpus or a large K."""
        factor = math.sqrt(max(1.0, self.small / max(1, n_documents)))
        factor *= math.pow(max(1.0, n_components / self.large), 0.75)
        return min(self.most_passes, math.ceil(self.passes * factor))

    def learning_rate(self, n_components: int) -> float:
        """Return the first rate: a step moves a logit by about K times as much."""
        return self.rate * min(1.0, self.large / n_components)

    def batch_size(self, n_documents: int, most: int) -> int:
        """Return the size of batches: ten of them to a pass over a small corpus."""
        return min(most, max(self.least_batch, n_documents // 10))


@dataclass(frozen=True)
class Stage:
    """Passes over the corpus with the commonest words only; the rest is one word.

    Attributes
    ----------
    n_words : int
        Words with loadings of their own.
    n_passes : int
        Passes.
    rates : tuple of two floats
        Learning rate of T at the beginning and at the end; a cosine between.
    """

    n_words: int
    n_passes: int
    rates: tuple[float, float]

    def rate(self, done: float) -> float:
        """Return the learning rate after a part `done` of the stage."""
        high, low = self.rates
        return low + 0.5 * (high - low) * (1 + math.cos(math.pi * done))


def stage_after(n_passes: int, stages: list[Stage]) -> tuple[Stage, int]:
    """Return the stage after so many passes, and how many of them were its own."""
    for stage in stages[:-1]:
        if n_passes < stage.n_passes:
            return stage, n_passes
        n_passes -= stage.n_passes
    return stages[-1], n_passes


def plan_stages(
    counts: SortedCounts,
    max_iter: int,
    rate: float,
    settings: MinibatchSettings,
) -> list[Stage]:
    """Divide passes: the commonest words first, where that saves much.

    Rare words are most of the vocabulary and few of the tokens. As long as their
    loadings are zero they are one word to the model, exactly, and a pass costs a
    fraction.
    """
    head = counts.covering(settings.head_tokens)
    first = int(max_iter * settings.head_passes)
    n_words = counts.n_features
    end = (rate, rate * settings.end)
    if first == 0 or head > settings.head_words * n_words:
        return [Stage(n_words, max_iter, end)]
    whole = Stage(n_words, max_iter - first, end)
    return [Stage(head, first, (rate, rate * settings.head_end)), whole]
