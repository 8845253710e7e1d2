"""A mixture of Gaussians, learned from what documents say about their embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from docsigma._array_checks import Floats
from docsigma.classifiers._class_gaussians import (
    ClassGaussians,
    fit_mixture,
    overall,
)
from docsigma.classifiers._factors import Information
from docsigma.posterior import GaussianPosterior

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from docsigma.classifiers._factors import Factors

# A document says at most as much as this many words would if they were independent:
# words of one text repeat each other. Of 30, 100, 300 and no limit, this one was best
# on training texts of Switchboard, search snippets and 20 Newsgroups; on the other
# three, no more than 0.03 in the Rand index is lost.
MOST_WORDS = 100.0
# Share of all variance that lies within groups when EM starts: half, as for classes
# with labels. Of 0.1, 0.2 and 0.5 it has the most evidence on held-out texts of five of
# six corpora. The Rand index with labels is that of 0.1 or better, within 0.01, and
# 0.13 better where there are most labels (`python benchmarks/group_settings.py`).
WITHIN = 0.5
# Fits from other starts, of which the likeliest is kept: 0.04 to 0.06 in the Rand index
# better than one on three of six corpora, and the same on the rest.
N_STARTS = 3
# Documents that numbers of groups are compared on, and the share of them held out.
MOST_COMPARED = 4000
HELD_OUT = 0.25


@dataclass(frozen=True)
class Mixture:
    """Groups as Gaussians with one covariance, and their shares of the documents."""

    classes: ClassGaussians
    log_shares: Tensor

    @classmethod
    def fit(
        cls,
        information: Information,
        factors: Factors,
        n_groups: int,
        seed: int,
        n_starts: int | None = None,
    ) -> Mixture:
        """Fit a number of groups to documents, by EM from several starts."""
        every = torch.ones(len(factors)).to(factors.size)
        everything = overall(information, factors, every)
        centre, covariance = everything[0], everything[1:]
        one = ClassGaussians(information, centre[None], WITHIN * covariance)
        linear, precision, between = one.of_class_means(
            factors, centre, (1 - WITHIN) * covariance
        )
        # Estimates of each document's group mean, by their directions.
        points = np.sqrt(between) * linear / (1 + between * precision)
        points = normalize(points)
        best, likeliest = None, -np.inf
        for start in range(n_starts or N_STARTS):
            kmeans = KMeans(n_groups, n_init=1, random_state=seed + start)
            codes = torch.from_numpy(kmeans.fit_predict(points)).long()
            members = torch.nn.functional.one_hot(codes, n_groups).to(every)
            classes = fit_mixture(information, factors, members, everything, WITHIN)
            found = cls(classes, (members.mean(dim=0) + 1e-9).log())
            for _ in range(2):
                shares = found.proba(factors).mean(dim=0)
                found = cls(classes, (shares + 1e-9).log())
            value = float(found.evidence(factors).mean())
            if best is None or value > likeliest:
                best, likeliest = found, value
        assert best is not None
        return best

    def _scores(self, factors: Factors) -> Tensor:
        return self.classes.scores(factors) + self.log_shares

    def proba(self, factors: Factors) -> Tensor:
        """Return the probability of each group, documents x groups."""
        return self._scores(factors).softmax(dim=1)

    def evidence(self, factors: Factors) -> Tensor:
        """Return the log evidence of documents, up to a constant of their own."""
        found = self._scores(factors).logsumexp(dim=1)
        return found + self.classes.constants(factors)


def documents_as_factors(
    posterior: GaussianPosterior | NDArray[Any], information: Information | None = None
) -> tuple[Information, Factors]:
    """Return what documents say, each at most as much as :data:`MOST_WORDS` words."""
    every, cpu = np.ones(len(posterior)), torch.device("cpu")
    if isinstance(posterior, GaussianPosterior):
        information = information or Information.of(posterior, cpu, every)
        factors = information.factors(posterior)
    else:
        points = np.asarray(posterior, dtype=np.float64)
        information = information or Information.exact(points, cpu, every)
        factors = information.factors_of_points(points)
    return information, factors.times(1 / (1 + factors.size / MOST_WORDS))


def choose_number(information: Information, factors: Factors, seed: int) -> int:
    """Return the number of groups that held-out documents ask for.

    Numbers grow by about a half until the evidence falls twice, up to two documents per
    group. Of those whose evidence is within a standard error of the best, the least is
    returned.
    """
    order = np.random.default_rng(seed).permutation(len(factors))[:MOST_COMPARED]
    known, held_out = np.split(order, [int((1 - HELD_OUT) * len(order))])
    found: dict[int, Floats] = {}
    number, means = 1, list[float]()
    while number <= max(1, len(known) // 2):
        mixture = Mixture.fit(information, factors[known], number, seed, 1)
        found[number] = mixture.evidence(factors[held_out]).numpy()
        means.append(float(found[number].mean()))
        if means[-3:] == sorted(means[-3:], reverse=True) and len(means) > 2:
            break
        number = max(number + 1, int(1.5 * number))
    best = max(found, key=lambda number: found[number].mean())
    for number, evidence in found.items():
        lost = found[best] - evidence
        if lost.mean() <= lost.std() / max(len(lost), 1) ** 0.5:
            return number
    return best
