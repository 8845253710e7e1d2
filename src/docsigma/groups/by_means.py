"""Groups of similar documents, and the words that describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.cluster import KMeans

from docsigma.exceptions import InputError
from docsigma.models.components import centred_loadings, strongest_words
from docsigma.posterior import GaussianPosterior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.models._count_model import CountModel


@dataclass(frozen=True)
class Group:
    """A group of similar documents.

    Attributes
    ----------
    size : int
        Number of documents.
    words : list of str
        Words that are likelier here than in the whole, strongest first.
    nearest : list of int
        Rows of the three documents nearest to the centre, those without a known word
        last.
    mean_total_variance : float or None
        Mean total variance of the documents; None if they are points.
    members : ndarray of int
        Rows of the documents.
    """

    size: int
    words: list[str]
    nearest: list[int]
    mean_total_variance: float | None
    members: NDArray[np.intp] = field(repr=False)


def group_by_means(
    model: CountModel,
    posterior: GaussianPosterior | NDArray[Any],
    n_clusters: int = 10,
    n_words: int = 10,
) -> list[Group]:
    """Group documents by k-means on their means; return the largest group first.

    A group is described by the words that are likelier at its centre than at the mean
    of all documents, as in the paper's topic discovery.

    Parameters
    ----------
    model : BayesianSMM, SMM or NVDM
        The model, with its vocabulary.
    posterior : GaussianPosterior, or array of shape (n_documents, n_components)
        The documents; an array if the model gives points.
    n_clusters : int, default=10
        Number of groups.
    n_words : int, default=10
        Words per group.
    """
    if not 1 <= n_clusters <= len(posterior):
        raise InputError(
            f"`n_clusters` must be from 1 to the {len(posterior)} documents, got "
            f"{n_clusters}"
        )
    total_variance, means = None, posterior
    silent = np.zeros(len(posterior))
    if isinstance(posterior, GaussianPosterior):
        total_variance, means = posterior.total_variance, posterior.mean
        if posterior.n_tokens is not None:
            silent = (posterior.n_tokens == 0).astype(np.float64)
    means = np.asarray(means, dtype=np.float64)
    unigram, centred = centred_loadings(model)
    kmeans = KMeans(n_clusters, n_init=4, random_state=model.seed_).fit(means)
    result = []
    for number, centre in enumerate(kmeans.cluster_centers_):
        members = np.flatnonzero(kmeans.labels_ == number)
        distance = np.square(means[members] - centre).sum(axis=1)
        logits = centred @ (centre - means.mean(axis=0))
        words = strongest_words(model, unigram, logits, n_words)
        nearest = members[np.lexsort((distance, silent[members]))[:3]].tolist()
        mean = None
        if total_variance is not None:
            mean = float(total_variance[members].mean())
        result.append(Group(len(members), words, nearest, mean, members))
    return sorted(result, key=lambda group: -group.size)


def group_numbers(groups: Sequence[Group]) -> NDArray[np.intp]:
    """Return the number of each document's group."""
    found = np.empty(sum(group.size for group in groups), dtype=np.intp)
    for number, group in enumerate(groups):
        found[group.members] = number
    return found
