"""Comparison of two batches of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError
from docsigma.groups.gaussians import Groups

if TYPE_CHECKING:
    from docsigma.models._count_model import CountModel
    from docsigma.posterior import GaussianPosterior

# Draws of the embeddings, and of the shares given them.
DRAWS = 400
# Share of the old documents, the furthest from any topic, that counts as unexplained.
UNEXPLAINED = 0.02


@dataclass(frozen=True)
class Interval:
    """A number and its interval of 90 per cent."""

    value: float
    low: float
    high: float

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
    grew : bool or None
        True if the interval of `change` is above 0, False if below, else None.
    typical : list of int
        Rows of the new batch that are nearest to it.
    """

    words: list[str]
    old: Interval
    new: Interval
    change: Interval
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
    random_state: int = 0,
) -> Drift:
    """Compare the topics of two batches of documents.

    The batches are embedded by `model`. Intervals cover the uncertainty of embeddings,
    by draws from their Gaussians, and that of the sample of documents, by Dirichlet
    draws of the shares given the counts.
    """
    for name, batch in (("old", old), ("new", new)):
        # One half of the old batch is compared with the other.
        if len(batch) < 4:
            raise InputError(
                f"the {name} batch has {len(batch)} documents: at least 4 are needed"
            )
    random = np.random.default_rng(random_state)
    groups = Groups.fit(model, type(old).concatenate([old, new]), n_topics, n_words)
    shares = [_share_draws(groups, batch, random) for batch in (old, new)]
    change = shares[1] - shares[0]
    of = groups.nearest(new.mean.astype(np.float64))
    away = np.square(new.mean - groups.centres[of]).sum(axis=1)
    order = np.argsort(away + new.total_variance, kind="stable")
    topics = []
    for number, group in enumerate(groups.found):
        moved = Interval.of(change[:, number])
        grew = True if moved.low > 0 else False if moved.high < 0 else None
        before, after = (Interval.of(share[:, number]) for share in shares)
        typical = order[of[order] == number][:3].tolist()
        topics.append(TopicShift(group.words, before, after, moved, grew, typical))
    topics.sort(key=lambda topic: -abs(topic.change.value))
    return Drift(topics, *_unexplained(model, old, new, n_topics, random))


def _share_draws(
    groups: Groups, batch: GaussianPosterior, random: np.random.Generator
) -> Floats:
    """Return draws of the topics' shares of a batch, draws x topics."""
    std = np.sqrt(batch.variance.astype(np.float64))
    result = np.empty((DRAWS, len(groups)))
    # Fewer draws of the documents, as the shares average over them.
    inner = 10
    for start in range(0, DRAWS, inner):
        points = batch.mean + std * random.standard_normal(std.shape)
        counts = np.bincount(groups.nearest(points), minlength=len(groups))
        result[start : start + inner] = random.dirichlet(counts + 0.5, inner)
    return result


def _unexplained(
    model: CountModel,
    old: GaussianPosterior,
    new: GaussianPosterior,
    n_topics: int,
    random: np.random.Generator,
) -> tuple[Interval, Interval, list[int]]:
    """Return the unexplained shares of both batches, and rows of the new one."""
    known, held_out = np.array_split(random.permutation(len(old)), [len(old) // 2])
    groups = Groups.fit(model, old[known], n_topics, 1)
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
