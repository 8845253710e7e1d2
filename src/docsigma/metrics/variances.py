"""Whether the variances of embeddings are right, tested without labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from docsigma.posterior import GaussianPosterior

    Embed = Callable[[csr_matrix], GaussianPosterior]

# Known words of a part, unless others are given.
LENGTHS = (10, 25, 100)
# Stand in for the lengths that too few documents have.
SHARES = (0.25, 0.5)
# With fewer documents the intervals are too narrow.
FEWEST = 30
# Standard errors to either side of an interval of 90 per cent.
STANDARD_ERRORS = 1.6449
# A dimension whose variance falls by less than this share has no ratio, only rounding.
LEAST_FALL = 1e-4
_NAMES = {0.25: "quarter", 0.5: "half"}


@dataclass(frozen=True, eq=False)
class PartRatio:
    """The ratio for one kind of part and one length.

    Attributes
    ----------
    kind : {"first", "random"}
        Whether a part is the first known words of a document, or random ones.
    length : int or float
        Known words of a part, or the share of the document's.
    n_documents : int
        Documents that are long enough.
    ratio, low, high : float
        The ratio of the sums over documents and dimensions, and its interval of 90 per
        cent.
    by_dimension : ndarray of shape (n_components, 3)
        The same three numbers for each dimension; NaN where the variance hardly falls.
    """

    kind: str
    length: float
    n_documents: int
    ratio: float
    low: float
    high: float
    by_dimension: Floats

    @property
    def size(self) -> str:
        """The length in words: "10 words", "half"."""
        if self.length >= 1:
            return f"{self.length:g} words"
        return _NAMES.get(self.length, f"{100 * self.length:g} %")


@dataclass(frozen=True, eq=False)
class VarianceCalibration:
    r"""How far means move when the rest of a document is read, against what was said.

    For an exact posterior, a part of a document and the whole obey, per dimension,

    .. math::

        E (\nu_{\mathrm{part}} - \nu_{\mathrm{whole}})^2
        = E s^2_{\mathrm{part}} - E s^2_{\mathrm{whole}}

    The ratio of the left side to the right one is 1 if the variances are right. Above 1
    the variances of parts are too small: the embeddings are too sure.

    ``str`` gives a table.

    Attributes
    ----------
    parts : list of PartRatio
    n_documents : int
        Documents that were given.
    """

    parts: list[PartRatio]
    n_documents: int

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table: part, documents, ratio, interval, middle of dimensions.

        The last is the range of the ratios of single dimensions, without the lowest and
        the highest five per cent.
        """
        return [
            (
                f"{part.kind} {part.size}",
                str(part.n_documents),
                f"{part.ratio:.2f}",
                f"{part.low:.2f} to {part.high:.2f}",
                "{:.2f} to {:.2f}".format(
                    *np.nanquantile(part.by_dimension[:, 0], [0.05, 0.95])
                ),
            )
            for part in self.parts
        ]

    def __str__(self) -> str:
        names = ("part", "documents", "ratio", "90 %", "dimensions")
        lines = [
            f"{part:<18}{n:>9}{ratio:>8}{interval:>16}{dimensions:>16}"
            for part, n, ratio, interval, dimensions in (names, *self.rows())
        ]
        return "\n".join([*lines, "Above 1: too sure. Below 1: not sure enough."])

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as a dictionary for JSON."""
        parts = [asdict(part) for part in self.parts]
        for part in parts:
            part["by_dimension"] = part["by_dimension"].tolist()
        return {"n_documents": self.n_documents, "level": 0.9, "parts": parts}

    def plot(self) -> Figure:
        """Draw the ratios and their intervals, with a dot for each dimension."""
        from docsigma.metrics.plots import plot_variance_ratios

        return plot_variance_ratios(self)


def calibrate_variances(
    embed: Embed,
    counts: csr_matrix,
    order: Sequence[NDArray[np.intp]] | None = None,
    *,
    lengths: Sequence[float] = LENGTHS,
    random_state: int = 0,
) -> VarianceCalibration:
    """Compare the Gaussians of parts of documents with those of the whole documents.

    A document takes part at a length if it has twice as many known words, and at a
    share if its part has a word. Where fewer than 30 documents are long enough, a
    quarter and half of all documents replace the length.

    Parameters
    ----------
    embed : function
        From counts to a GaussianPosterior, such as the `posterior` of a model.
    counts : csr_matrix of shape (n_documents, n_words)
        Whole numbers.
    order : sequence of int arrays, default=None
        The known words of each document in order, as columns of `counts`. Without it
        there are no first words, only random ones.
    lengths : sequence, default=(10, 25, 100)
        Known words of a part (int), or shares of a document of at most 0.5 (float).
    random_state : int, default=0
        Seed of the random words, which are drawn without replacement.

    Returns
    -------
    VarianceCalibration
    """
    _check_lengths(lengths)
    n_tokens, tokens = _tokens(counts)
    used = _usable(lengths, n_tokens)
    random = np.random.default_rng(random_state)
    rows = np.repeat(np.arange(len(n_tokens)), n_tokens)
    shuffled = np.lexsort((random.random(len(rows)), rows))
    orders = {"random": tokens[shuffled]}
    if order is not None:
        orders = {"first": np.concatenate([*order, np.zeros(0, np.intp)])} | orders
        if not np.array_equal([len(one) for one in order], n_tokens):
            raise InputError("`order` and `counts` differ in the words of a document")
    whole = embed(counts)
    starts = np.cumsum(n_tokens) - n_tokens
    position = np.arange(len(rows)) - starts[rows]
    found = []
    for kind, columns in orders.items():
        for length in used:
            sizes = _sizes(length, n_tokens)
            chosen = np.flatnonzero(sizes)
            kept = position < sizes[rows]
            ones = np.ones(int(kept.sum()), dtype=counts.dtype)
            part = csr_matrix((ones, (rows[kept], columns[kept])), shape=counts.shape)
            ratios = _ratios(embed(part[chosen]), whole[chosen])
            ratio, low, high = ratios[0].tolist()
            found.append(
                PartRatio(kind, length, len(chosen), ratio, low, high, ratios[1:])
            )
    return VarianceCalibration(found, len(n_tokens))


def _check_lengths(lengths: Sequence[Any]) -> None:
    if not len(lengths):
        raise InputError("`lengths` is empty: no parts to test")
    for length in lengths:
        whole = isinstance(length, Integral) and not isinstance(length, bool)
        share = isinstance(length, float) and 0 < length <= 0.5
        if not share and not (whole and length >= 1):
            raise InputError(
                "`lengths` must be whole numbers of 1 or more, or shares above 0 and "
                f"at most 0.5, got {length!r}"
            )


def _tokens(counts: csr_matrix) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the number of tokens of each document, and the columns of all tokens."""
    times = counts.data.astype(np.intp)
    if not np.array_equal(times, counts.data):
        value = counts.data[times != counts.data][0]
        raise InputError(f"the counts must be whole numbers, got {value:g}")
    starts = np.concatenate([[0], np.cumsum(times)])[counts.indptr]
    return np.diff(starts), np.repeat(counts.indices, times).astype(np.intp)


def _sizes(length: float, n_tokens: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the number of words of the part of each document; 0: takes no part."""
    if length < 1:
        return (n_tokens * length).astype(np.intp)
    return np.where(n_tokens >= 2 * length, int(length), 0)


def _usable(lengths: Sequence[float], n_tokens: NDArray[np.intp]) -> list[float]:
    """Return the lengths that enough documents have, and shares for the others."""

    def n_long_enough(length: float) -> int:
        return int(np.count_nonzero(_sizes(length, n_tokens)))

    used = [length for length in lengths if n_long_enough(length) >= FEWEST]
    if len(used) < len(lengths):
        shares = [share for share in SHARES if share not in used]
        used += [share for share in shares if n_long_enough(share) >= FEWEST]
    if not used:
        raise InputError(
            f"at least {FEWEST} documents of 2 known words are needed to test "
            f"variances, and {n_long_enough(0.5)} of the {len(n_tokens)} have so many"
        )
    return used


def _ratios(part: GaussianPosterior, whole: GaussianPosterior) -> Floats:
    """Return ratio, low and high: of all dimensions together, then of each.

    The standard error is that of a ratio of sums over documents (delta method); the
    interval is symmetric in the logarithm, since ratios are skewed and positive.
    """
    moved = np.square(part.mean.astype(np.float64) - whole.mean)
    fallen = part.variance.astype(np.float64) - whole.variance
    known = fallen.sum(axis=0) > LEAST_FALL * part.variance.sum(axis=0)
    if not known.any():
        raise InputError(
            "no variance falls when more of a document is known: the model has "
            "learned nothing, and there is nothing to test"
        )
    moved = np.column_stack([moved.sum(axis=1), np.where(known, moved, np.nan)])
    fallen = np.column_stack([fallen.sum(axis=1), np.where(known, fallen, np.nan)])
    n = len(moved)
    ratio = moved.sum(axis=0) / fallen.sum(axis=0)
    residual = moved - ratio * fallen
    spread = np.sqrt(n / (n - 1) * np.square(residual).sum(axis=0))
    error = spread / moved.sum(axis=0)
    away = np.exp(STANDARD_ERRORS * error)
    return np.column_stack([ratio, ratio / away, ratio * away])
