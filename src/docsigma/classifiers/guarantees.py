"""What held-out documents promise: prediction sets, risk and p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from docsigma._array_checks import Floats
from docsigma.classifiers.settings import CUTS, ENOUGH, MANY
from docsigma.exceptions import InputError

COLUMNS = ("true", "top", "lengths", "familiarity", "is_cut")


@dataclass(frozen=True)
class Guarantees:
    r"""Labelled documents that nothing was fitted to, and what follows from them.

    Each promise is about documents drawn as these were. A new document is compared with
    those of its length: of as many words within a power of two, or of the nearest
    lengths until there are a hundred. Cut copies of longer documents help out where
    whole ones are too few.

    Attributes
    ----------
    true, top : ndarray of shape (n,)
        Probabilities of the true class and of the most probable one.
    lengths : ndarray of shape (n,)
        Words, known or not: unknown ones are what tells a document of no class.
    familiarity : ndarray of shape (n,)
        How much each document is like those of training.
    is_cut : ndarray of shape (n,)
        1 for a cut copy of a longer document, else 0.

    Examples
    --------
    >>> one = np.ones(3)
    >>> held_out = Guarantees(np.array([0.9, 0.4, 0.8]), 0.9 * one, one, one, 0 * one)
    >>> held_out.sets([[0.7, 0.3], [0.5, 0.5]], [1, 1], coverage=0.7)
    array([[ True, False],
           [ True,  True]])
    """

    true: Floats
    top: Floats
    lengths: Floats
    familiarity: Floats
    is_cut: Floats

    @classmethod
    def of_array(cls, array: Any) -> Self:
        """Restore what :meth:`to_array` returned."""
        return cls(*np.asarray(array, dtype=np.float64))

    @classmethod
    def without_labels(cls, lengths: Floats, familiarity: Floats, cut: Any) -> Self:
        """Make what promises p-values and nothing else."""
        unknown = np.full(len(lengths), np.nan)
        return cls(unknown, unknown, lengths, familiarity, cut)

    def to_array(self) -> Floats:
        """Return the documents as an array of five rows, for files."""
        return np.stack([getattr(self, name) for name in COLUMNS])

    def __len__(self) -> int:
        """Whole documents."""
        return int((self.is_cut == 0).sum())

    def rows_like(
        self, lengths: Any, enough: int = MANY
    ) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return rows of new documents, and those to compare them with, by length.

        With fewer than `enough` whole documents of a length, cut ones take their place.
        """
        own, new = band_of(self.lengths), band_of(lengths)
        return [
            (np.flatnonzero(new == band), self._near(np.abs(own - band), enough))
            for band in np.unique(new)
        ]

    def _near(self, distance: NDArray[Any], enough: int) -> NDArray[Any]:
        """Return documents of the nearest lengths, and cut ones if they are few."""
        own = distance == 0
        whole = own & (self.is_cut == 0)
        if whole.sum() >= enough:
            return np.flatnonzero(whole)
        if own.sum() >= MANY:
            return np.flatnonzero(own)
        every = np.flatnonzero(self.is_cut == 0)
        order = every[np.argsort(distance[every], kind="stable")]
        last = distance[order[min(MANY, len(order)) - 1]]
        return np.asarray(order[distance[order] <= last])

    def sets(
        self, probabilities: Any, lengths: Any, coverage: float = 0.9
    ) -> NDArray[np.bool_]:
        r"""Return which classes may be right, documents x classes.

        Split conformal prediction: a class is in the set if its probability is at least
        the :math:`\lceil (n + 1) c \rceil`-th largest that the true classes of the n
        documents of that length have. So a set has the true class with a probability of
        at least c, whatever the classifier. The most probable class is always in the
        set, so that coverage is no less than accuracy; with too few documents to
        promise anything all classes are.
        """
        if not 0 < coverage < 1:
            raise InputError(f"`coverage` must be between 0 and 1, got {coverage:g}")
        values = np.asarray(probabilities, dtype=np.float64)
        chosen = values >= values.max(axis=1, keepdims=True)
        for rows, like in self.rows_like(lengths):
            true = np.sort(self.true[like])
            rank = int(np.ceil((len(true) + 1) * coverage - 1e-9))
            least = true[len(true) - rank] if rank <= len(true) else 0.0
            chosen[rows] |= values[rows] >= least
        return np.asarray(chosen)

    def reject(self, risk: float, confidence: float = 0.9) -> float:
        r"""Return the least probability at which to answer; a person takes the rest.

        With the probability `confidence` over the draw of these documents, at most the
        share `risk` of the answers is wrong. It is infinite where so few documents
        cannot show that: no wrong answer among 45 shows 5 % at 90 %.

        Learn then Test: a threshold under which n documents are answered and k of the
        answers wrong is safe if :math:`P(\mathrm{Bin}(n, r) \le k) \le 1 - c`.
        Thresholds are tested one after the other, each at the full level, until one
        fails: from the highest one on that a quarter of the risk would pass nine times
        in ten. The proof needs that lower thresholds are no safer than higher ones.
        """
        for name, value in (("risk", risk), ("confidence", confidence)):
            if not 0 < value < 1:
                raise InputError(f"`{name}` must be between 0 and 1, got {value:g}")
        whole = self.is_cut == 0
        order = np.argsort(-self.top[whole], kind="stable")
        top, true = self.top[whole][order], self.true[whole][order]
        wrong, n = np.cumsum(true < top), np.arange(1, len(top) + 1)
        # Documents of equal probability are answered together.
        last = np.append(top[1:] != top[:-1], True)
        allowed = _most_wrong(n, risk, 1 - confidence)
        strong = np.asarray(binom.cdf(allowed, n, risk / 4)) >= 0.9
        start = np.argmax(strong if strong.any() else allowed >= 0)
        able = np.flatnonzero(last & (allowed >= 0) & (n > start))
        safe = able[np.logical_and.accumulate(wrong[able] <= allowed[able])]
        return float(top[safe[-1]]) if len(safe) else float("inf")

    def p_values(self, familiarity: Any, lengths: Any = None) -> Floats:
        r"""Return p-values of documents being drawn as these were.

        :math:`(1 + m) / (1 + n)` for m of n documents that are no more familiar: those
        of that length, or without `lengths` all. Of known documents at most the share p
        has a p-value of p or less.
        """
        familiarity = np.asarray(familiarity, dtype=np.float64)
        found = np.ones(len(familiarity))
        pairs = [(np.arange(len(found)), np.flatnonzero(self.is_cut == 0))]
        for rows, like in pairs if lengths is None else self.rows_like(lengths, ENOUGH):
            ranked = np.sort(self.familiarity[like])
            less = np.searchsorted(ranked, familiarity[rows], side="right")
            found[rows] = (1 + less) / (1 + len(ranked))
        return found


def band_of(lengths: Any) -> NDArray[np.intp]:
    """Return the power of two that each length has reached."""
    lengths = np.maximum(np.asarray(lengths, dtype=np.float64), 1.0)
    return np.asarray(np.floor(np.log2(lengths)), dtype=np.intp)


def with_cut_copies(texts: Sequence[str], lengths: Any) -> tuple[list[str], list[int]]:
    """Return texts with copies cut to lengths that few of them have, and their rows.

    `lengths` are those of the whole texts, in words; the rows of copies are those of
    the texts that they were cut from.
    """
    every, rows = list(texts), list(range(len(texts)))
    words = [text.split() for text in texts]
    for n_words in CUTS:
        if (band_of(lengths) == band_of(n_words)).sum() >= MANY:
            continue
        longer = [row for row, each in enumerate(words) if len(each) > n_words]
        every += [" ".join(words[row][:n_words]) for row in longer]
        rows += longer
    return every, rows


def _most_wrong(n: NDArray[Any], risk: float, level: float) -> NDArray[Any]:
    """Return the most wrong answers of n that still show the risk; -1 for none."""
    most = binom.ppf(level, n, risk)
    return np.asarray(most - (binom.cdf(most, n, risk) > level))
