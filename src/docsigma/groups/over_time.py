"""Shares of groups of documents over time, with intervals."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from docsigma.design import as_numbers
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from docsigma.groups.gaussians import Groups

Floats = NDArray[np.float64]
# Lengths of a period in years, of which the shortest is taken that makes at most
# MOST_PERIODS: a month, a quarter, a year, ...
LENGTHS = (1 / 12, 1 / 4, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
MOST_PERIODS = 24


@dataclass(frozen=True)
class SharesOverTime:
    """Shares of groups per period.

    Attributes
    ----------
    periods : list of str
        From the first to the last that has documents.
    starts : array of shape (n_periods,)
        Where each begins, in years or in the unit of the times.
    names : list of str
        The groups.
    sizes : array of shape (n_periods,)
        Documents per period.
    shares, low, high : arrays of shape (n_periods, n_groups)
        Expected shares of the documents, and the ends of intervals.
    level : float
        Probability of each interval, taken alone.
    """

    periods: list[str]
    starts: Floats
    names: list[str]
    sizes: NDArray[np.intp]
    shares: Floats
    low: Floats
    high: Floats
    level: float

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one row per group and period; ``pandas.DataFrame`` makes a table."""
        return [
            {
                "topic": name,
                "period": period,
                "documents": int(self.sizes[p]),
                "share": float(self.shares[p, g]),
                "low": float(self.low[p, g]),
                "high": float(self.high[p, g]),
            }
            for g, name in enumerate(self.names)
            for p, period in enumerate(self.periods)
        ]

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a figure with one panel per group, written to `path` if given."""
        from docsigma.metrics.trend_plots import plot_shares

        return plot_shares(self, path)


def shares_over_time(
    groups: Groups,
    documents: Any,
    times: Sequence[Any],
    units: Sequence[Any] | None = None,
    level: float = 0.9,
) -> SharesOverTime:
    r"""Return the share of each group per period, with intervals.

    A document counts for each group with its probability of being of it. The interval
    is that of a binomial share under Jeffreys's prior; where documents of one unit (a
    speech, an author) are more alike than others, with as many independent documents
    as give the variance between units. It is widened to the share itself, where that is
    next to 0 or to 1.

    Parameters
    ----------
    groups : Groups
    documents : GaussianPosterior or array
        The documents, as ``Groups.assign`` takes them.
    times : list of numbers, dates or strings of these
        When each document was written; those without a time are left out.
    units : list, default=None
        What each document is a part of; None means that all are independent.
    level : float, default=0.9
    """
    if not 0 < level < 1:
        raise InputError(f"`level` must be between 0 and 1, got {level}")
    cells = list(times)
    if len(cells) != len(documents):
        raise InputError(
            f"`times` has {len(cells)} entries, and there are {len(documents)} "
            "documents"
        )
    numbers = as_numbers(cells)
    if numbers is None:
        wrong = next(cell for cell in cells if as_numbers([cell]) is None)
        raise InputError(f"`times` must be numbers or dates, got {wrong!r:.60}")
    known = np.flatnonzero(~np.isnan(numbers))
    if not len(known):
        raise InputError("`times` has no time of any document")
    if units is not None and len(units) != len(cells):
        raise InputError(
            f"`units` has {len(units)} entries, and there are {len(cells)} documents"
        )
    proba = groups.proba(documents)[known]
    whole = all(n.is_integer() for n in numbers[known].tolist())
    codes, starts, periods = _periods(numbers[known], whole)
    sizes = np.bincount(codes, minlength=len(starts))
    kept = np.flatnonzero(sizes)
    shares = np.zeros((len(kept), proba.shape[1]))
    effective = np.zeros_like(shares)
    unit = np.arange(len(known))
    if units is not None:
        named = np.array([str(units[row]) for row in known.tolist()])
        unit = np.unique(named, return_inverse=True)[1]
    for row, period in enumerate(kept):
        some = codes == period
        shares[row] = proba[some].mean(axis=0)
        effective[row] = _independent(proba[some], unit[some])
    tail = (1 - level) / 2
    with_a, with_b = shares * effective + 0.5, (1 - shares) * effective + 0.5
    return SharesOverTime(
        [periods[period] for period in kept],
        starts[kept],
        [group.name for group in groups.found],
        sizes[kept],
        shares,
        np.minimum(shares, beta.ppf(tail, with_a, with_b)),
        np.maximum(shares, beta.ppf(1 - tail, with_a, with_b)),
        level,
    )


def _independent(proba: Floats, units: NDArray[np.intp]) -> Floats:
    """Return the number of independent documents per group, at most all."""
    n, share = len(proba), proba.mean(axis=0)
    _, codes = np.unique(units, return_inverse=True)
    n_units = int(codes.max()) + 1
    if n_units == n:
        return np.full(len(share), float(n))
    sums = np.zeros((n_units, proba.shape[1]))
    np.add.at(sums, codes, proba - share)
    if n_units == 1:
        # Nothing is known of how units differ: one document.
        return np.ones(len(share))
    variance = n_units / (n_units - 1) * np.square(sums).sum(axis=0) / n**2
    spread = share * (1 - share)
    found = spread / np.maximum(variance, 1e-300)
    return np.asarray(np.clip(found, 1.0, float(n)))


def _periods(
    numbers: Floats, whole: bool
) -> tuple[NDArray[np.intp], Floats, list[str]]:
    """Return the period of each number, and all periods: their starts and names."""
    low, high = float(numbers.min()), float(numbers.max())
    lengths = [length for length in LENGTHS if length >= 1 or not whole]
    for length in lengths:
        first = np.floor(low / length + 1e-9)
        n = int(np.floor(high / length + 1e-9) - first) + 1
        if n <= MOST_PERIODS:
            break
    codes = (np.floor(numbers / length + 1e-9) - first).astype(np.intp)
    starts = (first + np.arange(n)) * length
    return codes, starts, [_name(start, length) for start in starts.tolist()]


def _name(start: float, length: float) -> str:
    if length < 1:
        month = round((start % 1) * 12) % 12 + 1
        day = datetime.date(round(start - (month - 1) / 12), month, 1)
        if length < 1 / 8:
            return f"{day:%Y-%m}"
        return f"{day.year} Q{(month - 1) // 3 + 1}"
    if length == 1:
        return f"{start:.0f}"
    return f"{start:.0f}-{start + length - 1:.0f}"
