"""Comparison of two batches of documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import false_discovery_control, hypergeom, norm

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError
from docsigma.groups.gaussians import Groups
from docsigma.models.components import known_words
from docsigma.text.familiarity import familiarity_of_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docsigma.models._count_model import CountModel
    from docsigma.posterior import GaussianPosterior

# Expected share of false alarms among the topics that are said to have changed.
LEVEL = 0.05
# Share of the old documents, the least familiar, that counts as unexplained.
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
class WordShift:
    """A word that another share of the documents has: old and new share, and p-value.

    The p-value is Fisher's; words are told by those of all words (Benjamini-Hochberg).
    """

    word: str
    old: float
    new: float
    p_value: float


@dataclass(frozen=True)
class Drift:
    """Differences between a new batch and an old one.

    Attributes
    ----------
    topics : list of TopicShift
        Topics of both batches, the greatest change first: as many as were asked for,
        and of finer ones those that changed.
    words : list of WordShift
        Words that changed, the surest first; none without counts.
    unexplained_old, unexplained_new : Interval
        Shares of documents whose words are less likely than those of 98 per cent of the
        old documents; without counts, documents further from the topics of one half of
        the old batch than 98 per cent of the other half.
    unexplained_rows : list of int
        Unexplained documents of the new batch, the least likely first.
    """

    topics: list[TopicShift]
    words: list[WordShift]
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
    n_unknown: Any = None,
    random_state: int = 0,
) -> Drift:
    """Compare the topics of two batches of documents.

    The batches are embedded by `model`. `n_topics` topics are compared, and as many
    finer ones as the root of the number of documents: a new subject in a few documents
    is a topic of its own only among those. Shares are those that make the documents
    likeliest, so that short documents, which fit several topics, are not counted as if
    they were divided among these. Their errors cover the uncertainty of embeddings and
    that of the sample of documents. With `counts`, those of the old documents and then
    of the new ones, topics are described by the words of their documents; and what is
    compared are documents of the same lengths, from which random words are left out in
    the batch of the longer ones, since short documents look different for that alone.
    `n_unknown` is the number of words in each document that the model does not know:
    they make it less familiar.
    """
    for name, batch in (("old", old), ("new", new)):
        # One half of the old batch is compared with the other.
        if len(batch) < 4:
            raise InputError(
                f"the {name} batch has {len(batch)} documents: at least 4 are needed"
            )
    random, words = np.random.default_rng(random_state), list[WordShift]()
    if counts is not None:
        counts = sp.csr_matrix(counts)
        none = np.zeros(counts.shape[0])
        unknown = np.asarray(none if n_unknown is None else n_unknown, dtype=np.float64)
        every = sp.hstack([counts, sp.csr_matrix(unknown[:, None])], format="csr")
        every = equal_lengths(every[: len(old)], every[len(old) :], random)
        cut = [batch[:, :-1] for batch in every]
        old, new = (model.posterior(batch) for batch in cut)
        scores = [
            -familiarity_of_counts(model, batch[:, :-1], batch[:, -1].toarray()[:, 0])[
                0
            ]
            for batch in every
        ]
        words = _changed_words(known_words(model).words, *cut)
    together = type(old).concatenate([old, new])
    numbers = min(n_topics, len(together)), max(n_topics, int(len(together) ** 0.5))
    coarse, fine = (
        Groups.fit(model, together, min(number, len(together)), n_words, counts)
        for number in numbers
    )
    listed = _compare(coarse, old, new) + _compare(fine, old, new)
    changed = false_discovery_control([topic.p_value for topic in listed]) <= LEVEL
    topics = [
        replace(topic, grew=topic.change.value > 0 if moved else None)
        for place, (topic, moved) in enumerate(zip(listed, changed, strict=True))
        if moved or place < len(coarse)
    ]
    topics.sort(key=lambda topic: -abs(topic.change.value))
    if counts is None:
        scores = _distances(model, old, new, n_topics, random)
    return Drift(topics, words, *_unexplained(scores, random))


def _compare(
    groups: Groups, old: GaussianPosterior, new: GaussianPosterior
) -> list[TopicShift]:
    """Return the shares of groups in both batches, before any is said to have changed.

    A p-value is the larger of two: of the change and its error, which know how unsure
    documents are, and Fisher's of the numbers of documents whose likeliest group it is,
    which is exact for small groups.
    """
    both = type(old).concatenate([old, new])
    likelihoods = groups.likelihoods(both)
    parts = likelihoods[: len(old)], likelihoods[len(old) :]
    shares, errors = zip(*map(estimate_shares, parts), strict=True)
    change, error = shares[1] - shares[0], np.hypot(*errors)
    of = groups.of[len(old) :]
    places = np.unique(groups.of, return_inverse=True)[1][len(old) :]
    sizes = np.array([group.size for group in groups.found])
    inside = np.bincount(places, minlength=len(sizes))
    exact = fisher_p_values(inside, sizes, len(new), len(both))
    p_values = np.maximum(exact, 2 * norm.sf(np.abs(change) / error))
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
        p = float(p_values[place])
        topics.append(TopicShift(group.words, before, after, moved, p, None, typical))
    return topics


def fisher_p_values(inside: Any, sizes: Any, n_new: int, n: int) -> Floats:
    """Return p-values of finding `inside` of `sizes` documents among `n_new` of `n`.

    Twice that of the nearer side.
    """
    drawn = hypergeom(n, sizes, n_new)
    nearer = np.minimum(drawn.cdf(inside), drawn.sf(inside - 1))
    return np.asarray(np.minimum(2 * nearer, 1.0))


def _changed_words(
    words: Sequence[str], old: sp.csr_matrix, new: sp.csr_matrix
) -> list[WordShift]:
    """Return words that another share of the new documents has, by all their p-values.

    Documents of one distribution of lengths are compared.
    """
    before, after = (np.bincount(m.indices, minlength=m.shape[1]) for m in (old, new))
    used = np.flatnonzero(before + after)
    if not len(used):
        return []
    n_old, n_new = old.shape[0], new.shape[0]
    before, after = before[used], after[used]
    p_values = fisher_p_values(after, before + after, n_new, n_old + n_new)
    changed = np.flatnonzero(false_discovery_control(p_values) <= LEVEL)
    order = changed[np.argsort(p_values[changed], kind="stable")]
    columns = (used, before / n_old, after / n_new, p_values)
    rows = zip(*(column[order].tolist() for column in columns), strict=True)
    return [WordShift(words[word], *numbers) for word, *numbers in rows]


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


def _distances(
    model: CountModel,
    old: GaussianPosterior,
    new: GaussianPosterior,
    n_topics: int,
    random: np.random.Generator,
) -> list[Floats]:
    """Return distances of one half of the old batch, and the new, from the other's."""
    known, held_out = np.array_split(random.permutation(len(old)), [len(old) // 2])
    groups = Groups.fit(model, old[known], min(n_topics, len(known)), 1)
    return [groups.distances(batch) for batch in (old[held_out], new)]


def _unexplained(
    scores: list[Floats], random: np.random.Generator
) -> tuple[Interval, Interval, list[int]]:
    """Return the unexplained shares of both batches, and rows of the new one.

    `scores` of both are large where a document is strange.
    """
    before, after = scores
    limit = np.quantile(before, 1 - UNEXPLAINED, method="higher")
    found = []
    for each in scores:
        beyond = int((each > limit).sum())
        share = (beyond + 0.5, len(each) - beyond + 0.5)
        found.append(Interval.of(random.beta(*share, size=4000)))
    strangest = np.argsort(-after, kind="stable")
    rows = [int(row) for row in strangest[:20] if after[row] > limit]
    return found[0], found[1], rows
