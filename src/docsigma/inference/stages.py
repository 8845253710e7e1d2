"""Which words the fast solver trains in which passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docsigma.inference.sorted_words import SortedWords

__all__ = ["Stage", "plan_stages"]

# Words that hold this part of the tokens are trained first, where they are few enough.
HEAD_TOKENS, HEAD_WORDS, HEAD_PASSES = 0.955, 0.6, 0.4
# Learning rate at the end of the two stages, against that at their beginning.
HEAD_END, END = 0.3, 0.04


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


def plan_stages(words: SortedWords, max_iter: int, rate: float) -> list[Stage]:
    """Divide passes: the commonest words first, where that saves much.

    Rare words are most of the vocabulary and few of the tokens. As long as their
    loadings are zero they are one word to the model, exactly, and a pass costs a
    fraction.
    """
    head = words.covering(HEAD_TOKENS)
    first = int(max_iter * HEAD_PASSES)
    whole = Stage(words.n_features, max_iter - first, (rate, rate * END))
    if head > HEAD_WORDS * words.n_features or first == 0:
        return [Stage(words.n_features, max_iter, (rate, rate * END))]
    return [Stage(head, first, (rate, rate * HEAD_END)), whole]
