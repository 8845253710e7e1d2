"""Comparison of two batches of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import false_discovery_control, norm

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError
from docsigma.groups.gaussians import Groups

if TYPE_CHECKING:
    from docsigma.models._count_model import CountModel
    from docsigma.posterior import GaussianPosterior

# Expected share of false alarms among the topics that are said to have changed.
LEVEL = 0.05
# Share of the old documents, the furthest from any topic, that counts as unexplained.
UNEXPLAINED = 0.02


@dataclass(frozen=True)
class Interval:
    """A number and its interval of 90 per cent."""

    value: float
    low: float
    high: float

    @classmethod
    def normal(cls, value: float, error: float, low: float, high: float) -> Interval:
        """Return the interval of an estimate with this standard error."""
        ends = np.clip([value - 1.645 * error, value + 1.645 * error], low, high)
        return cls(float(value), *ends.tolist())

    @classmethod
    def of(cls, draws: Floats) -> Interval:
        """Return the median of draws, and their 5th and 95th percentiles."""
        low, value, high = np.quantile(draws, [0.05, 0.5, 0.95])
        return cls(float(value), float(low), float(high))


@dataclass(frozen=True)
class TopicShift:
    """A topic in both batches, its shares from 0 to 1.

    Attributes
    ----------
    words : list of str
        Words that describe the topic.
    old, new, change : Interval
        Its share of either batch, and the difference.
    p_value : float
        Chance of a change as large if there was none.
    grew : bool or None
        True or False if the share changed, by the p-values of all topics
        (Benjamini-Hochberg at 0.05); None if that may be chance.
    typical : list of int
        Rows of the new batch that are nearest to it.
    """

    words: list[str]
    old: Interval
    new: Interval
    change: Interval
    p_value: float
    grew: bool | None
    typical: list[int]


@dataclass(frozen=True)
class Drift:
    """Differences between a new batch and an old one.

    Attributes
    ----------
    topics : list of TopicShift
        Topics of both batches, the greatest change first.
    unexplained_old, unexplained_new : Interval
        Shares of documents further from the topics of one half of the old batch than 98
        per cent of the other half.
    unexplained_rows : list of int
        Unexplained documents of the new batch, furthest first.
    """

    topics: list[TopicShift]
    unexplained_old: Interval
    unexplained_new: Interval
    unexplained_rows: list[int]


def compare_batches(
    model: CountModel,
    old: GaussianPosterior,
    new: GaussianPosterior,
    *,
    n_topics: int = 10,
    n_words: int = 8,
    counts: Any = None,
    random_state: int = 0,
) -> Drift:
    """Compare the topics of two batches of documents.

    The batches are embedded by `model`. Shares are those that make the documents
    likeliest, so that short documents, which fit several topics, are not counted as if
    they were divided among these. Their errors cover the uncertainty of embeddings and
    that of the sample of documents. With `counts`, those of the old documents and then
    of the new ones, topics are described by the words of their documents; and what is
    compared are documents of the same lengths, from which random words are left out in
    the batch of the longer ones, since short documents look different for that alone.
    """
    for name, batch in (("old", old), ("new", new)):
        # One half of the old batch is compared with the other.
        if len(batch) < 4:
            raise InputError(
                f"the {name} batch has {len(batch)} documents: at least 4 are needed"
            )
    random = np.random.default_rng(random_state)
    if counts is not None:
        counts = sp.csr_matrix(counts)
        cut = equal_lengths(counts[: len(old)], counts[len(old) :], random)
        old, new = (model.posterior(batch) for batch in cut)
    together = type(old).concatenate([old, new])
    groups = Groups.fit(model, together, min(n_topics, len(together)), n_words, counts)
    likelihoods = groups.likelihoods(together)
    parts = likelihoods[: len(old)], likelihoods[len(old) :]
    shares, errors = zip(*map(estimate_shares, parts), strict=True)
    change, error = shares[1] - shares[0], np.hypot(*errors)
    p_values = 2 * norm.sf(np.abs(change) / error)
    changed = false_discovery_control(p_values) <= LEVEL
    of = groups.of[len(old) :]
    places = np.unique(groups.of, return_inverse=True)[1][len(old) :]
    away = np.square(new.mean - groups.centres[places]).sum(axis=1)
    order = np.argsort(away + new.total_variance, kind="stable")
    topics = []
    for place, group in enumerate(groups.found):
        typical = order[of[order] == group.number][:3].tolist()
        before, after = (
            Interval.normal(share[place], wide[place], 0.0, 1.0)
            for share, wide in zip(shares, errors, strict=True)
        )
        moved = Interval.normal(change[place], error[place], -1.0, 1.0)
        grew = bool(change[place] > 0) if changed[place] else None
        p = float(p_values[place])
        topics.append(TopicShift(group.words, before, after, moved, p, grew, typical))
    topics.sort(key=lambda topic: -abs(topic.change.value))
    return Drift(topics, *_unexplained(model, old, new, n_topics, random))


def equal_lengths(
    old: sp.csr_matrix, new: sp.csr_matrix, random: np.random.Generator
) -> list[sp.csr_matrix]:
    """Return two batches of one distribution of lengths.

    A document keeps as many of its words, drawn at random, as the document of the same
    rank of length in the other batch has, or all if it has no more.
    """
    lengths = [np.asarray(batch.sum(axis=1)).ravel() for batch in (old, new)]
    result = []
    for batch, own, other in zip((old, new), lengths, lengths[::-1], strict=True):
        ranks = (np.argsort(np.argsort(own, kind="stable")) + 0.5) / len(own)
        target = np.quantile(other, ranks, method="nearest").astype(np.int64)
        found = batch.copy()
        for row in np.flatnonzero(target < own).tolist():
            some = slice(found.indptr[row], found.indptr[row + 1])
            amounts = found.data[some].astype(np.int64)
            kept = random.multivariate_hypergeometric(amounts, target[row])
            found.data[some] = kept
        found.eliminate_zeros()
        result.append(found)
    return result


def estimate_shares(likelihoods: Floats) -> tuple[Floats, Floats]:
    r"""Return the likeliest shares of groups, and their standard errors.

    With the likelihood :math:`L_{ig}` of document i in group g, they maximise
    :math:`\sum_i \log \sum_g \pi_g L_{ig}`, as if half a document more of each group
    had been seen. The errors are those of the inverse information on the simplex.
    """
    n_groups = likelihoods.shape[1]
    shares = np.full(n_groups, 1 / n_groups)
    for _ in range(200):
        before = shares
        joint = likelihoods * shares
        shares = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0) + 0.5
        shares = shares / shares.sum()
        if np.abs(shares - before).max() < 1e-6:
            break
    slopes = likelihoods / (likelihoods @ shares)[:, None]
    information = slopes.T @ slopes + np.diag(0.5 / shares**2)
    # Directions in which shares add up to 0.
    basis = np.linalg.svd(np.ones((1, n_groups)))[2][1:]
    inverse = basis.T @ np.linalg.pinv(basis @ information @ basis.T) @ basis
    return shares, np.sqrt(np.maximum(np.diag(inverse), 1e-12))


def _unexplained(
    model: CountModel,
    old: GaussianPosterior,
    new: GaussianPosterior,
    n_topics: int,
    random: np.random.Generator,
) -> tuple[Interval, Interval, list[int]]:
    """Return the unexplained shares of both batches, and rows of the new one."""
    known, held_out = np.array_split(random.permutation(len(old)), [len(old) // 2])
    groups = Groups.fit(model, old[known], min(n_topics, len(known)), 1)
    before, after = groups.distances(old[held_out]), groups.distances(new)
    limit = np.quantile(before, 1 - UNEXPLAINED, method="higher")
    found = []
    for distances in (before, after):
        beyond = int((distances > limit).sum())
        share = (beyond + 0.5, len(distances) - beyond + 0.5)
        found.append(Interval.of(random.beta(*share, size=4000)))
    furthest = np.argsort(-after, kind="stable")
    rows = [int(row) for row in furthest[:20] if after[row] > limit]
    return found[0], found[1], rows
