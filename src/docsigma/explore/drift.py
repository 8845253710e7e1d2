"""Two batches of documents: what grew, and what nothing explains."""

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
# Share of the old documents that counts as unexplained: those furthest from any topic.
UNEXPLAINED = 0.02


@dataclass(frozen=True)
class Interval:
    """A number and where it lies with a probability of 90 per cent."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, draws: Floats) -> Interval:
        """Return the median of draws, and their 5th and 95th percentile."""
        low, value, high = np.quantile(draws, [0.05, 0.5, 0.95])
        return cls(float(value), float(low), float(high))


@dataclass(frozen=True)
class TopicShift:
    """A topic in both batches, its shares from 0 to 1.

    Attributes
    ----------
    words : list of str
        What it is about.
    old, new, change : Interval
        Its share of either batch, and the difference.
    grew : bool or None
        Whether the share surely rose (True) or fell (False); None if it may be chance.
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
    """What a new batch has that an old one had not.

    Attributes
    ----------
    topics : list of TopicShift
        Topics of both batches, the greatest change first.
    unexplained_old, unexplained_new : Interval
        Shares of documents that are further from every topic of the old batch than all
        but 2 per cent of the old documents that the topics were not made from.
    unexplained_rows : list of int
        Documents of the new batch that are furthest away, furthest first.
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

    Intervals hold both doubts: where each document lies, by draws from its Gaussian,
    and which documents happened to be in the batch, by a Dirichlet draw of the shares
    given the counts.

    Parameters
    ----------
    model : CountModel
        Names the topics.
    old, new : GaussianPosterior
        The batches, embedded by `model`.
    n_topics, n_words : int
        Topics of both batches together, and words that name one.
    random_state : int, default=0
        Decides the draws.
    """
    for name, batch in (("old", old), ("new", new)):
        # Half of the old one is compared with the other half.
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
    # Few draws of the documents, as they are averaged over; many of the shares.
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
    """Return shares of both batches beyond the topics of half of the old one."""
    order = random.permutation(len(old))
    made, held_out = order[: len(old) // 2], order[len(old) // 2 :]
    groups = Groups.fit(model, old[made], n_topics, 1)
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
