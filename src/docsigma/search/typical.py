"""Whether a query is like anything in an index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from docsigma._array_checks import Floats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Documents per length: p-values are multiples of a hundredth.
MOST = 99


@dataclass(frozen=True)
class TypicalMatches:
    """How well beginnings of the documents match another document.

    Attributes
    ----------
    found : dict of int to ndarray
        Number of words, a power of two, to the sorted best matches of texts that were
        cut to so many words.
    """

    found: dict[int, Floats]

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        matches: Callable[[list[str], list[int]], Floats],
        random_state: int = 0,
    ) -> Self:
        """Cut documents, and have them matched with all except their own rows."""
        random = np.random.default_rng(random_state)
        words = [text.split() for text in texts]
        lengths = np.array([len(each) for each in words])
        found, size = {}, 1
        while len(rows := np.flatnonzero(lengths >= size)):
            chosen = random.permutation(rows)[:MOST].tolist()
            parts = [" ".join(words[row][:size]) for row in chosen]
            found[size] = np.sort(matches(parts, chosen))
            size *= 2
        return cls(found)

    def p_value(self, match: float, n_words: int) -> float:
        """Return the share of texts about as long that match no better.

        Between two lengths it is interpolated in the logarithm of the length. Of
        queries like beginnings of the documents, at most the share p has a p-value of p
        or less. Nothing speaks against an empty text.
        """
        if not n_words or not self.found:
            return 1.0
        known = min(n_words, max(self.found))
        size = 2 ** (known.bit_length() - 1)
        more = np.log2(known / size)
        longer = self._share(match, 2 * size) if more else 0.0
        return float((1 - more) * self._share(match, size) + more * longer)

    def _share(self, match: float, size: int) -> float:
        like = self.found.get(size, np.zeros(0))
        less = int(np.searchsorted(like, match, side="right"))
        return (1 + less) / (1 + len(like))

    def as_json(self) -> dict[str, list[float]]:
        """Return what a file keeps."""
        return {str(size): best.tolist() for size, best in self.found.items()}

    @classmethod
    def of_json(cls, found: dict[str, Any]) -> Self:
        """Restore what :meth:`as_json` returned."""
        return cls({int(size): np.array(best) for size, best in found.items()})
