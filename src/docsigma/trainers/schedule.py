"""The stages of the minibatch trainer: which words it trains in which passes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from docsigma.counts.sorted_counts import SortedCounts
    from docsigma.trainers.settings import MinibatchSettings


class Stage(NamedTuple):
    """Passes over the corpus with the commonest words; the rest are merged into one."""

    n_words: int  # words with their own loadings
    n_passes: int
    rates: tuple[float, float]  # of T at the beginning and the end; a cosine between

    def rate(self, done: float) -> float:
        """Return the learning rate after a fraction `done` of the stage."""
        high, low = self.rates
        return low + 0.5 * (high - low) * (1 + math.cos(math.pi * done))


def stage_after(n_passes: int, stages: list[Stage]) -> tuple[Stage, int]:
    """Return the stage after `n_passes` passes, and how many of them it has done."""
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
    *,
    at_once: bool = False,
) -> list[Stage]:
    """Plan the stages: the commonest words first, if that saves much time.

    Rare words are most of the vocabulary and few of the tokens. While their loadings
    are zero, merging them into one word is exact, and a pass costs a fraction. With
    `at_once`, all words are trained in all passes.
    """
    head = counts.covering(settings.head_tokens)
    first = int(max_iter * settings.head_passes)
    n_words = counts.n_features
    end = (rate, rate * settings.end)
    if at_once or first == 0 or head > settings.head_words * n_words:
        return [Stage(n_words, max_iter, end)]
    whole = Stage(n_words, max_iter - first, end)
    return [Stage(head, first, end), whole]
