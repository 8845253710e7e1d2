"""Topics of a corpus as groups of its documents, and what none of them explains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from docsigma._array_checks import Floats
from docsigma.models.topics import Cluster, cluster_documents

if TYPE_CHECKING:
    from docsigma.models._count_model import CountModel
    from docsigma.posterior import GaussianPosterior

# Documents that are compared with all topics at once.
BLOCK = 8192


@dataclass(frozen=True)
class Groups:
    """Topics as Gaussians with a shared diagonal covariance.

    Attributes
    ----------
    clusters : list of Cluster
        Size, words, typical documents and members of each, largest first.
    centres : ndarray of shape (n_topics, n_components)
        Means of their members' means.
    variance : ndarray of shape (n_components,)
        Of the members' means around their centres.
    """

    clusters: list[Cluster]
    centres: Floats
    variance: Floats

    @classmethod
    def fit(
        cls,
        model: CountModel,
        posterior: GaussianPosterior,
        n_topics: int,
        n_words: int = 8,
    ) -> Groups:
        """Group documents; there are no more topics than documents."""
        n_topics = min(n_topics, len(posterior))
        clusters = cluster_documents(model, posterior, n_topics, n_words)
        mean = posterior.mean.astype(np.float64)
        centres = np.stack([mean[c.members].mean(axis=0) for c in clusters])
        scatter = np.zeros(mean.shape[1])
        for cluster, centre in zip(clusters, centres, strict=True):
            scatter += np.square(mean[cluster.members] - centre).sum(axis=0)
        # A spread of nothing, as of copies of one document, still divides.
        floor = 1e-6 * posterior.variance.mean(axis=0, dtype=np.float64)
        return cls(clusters, centres, scatter / len(mean) + floor)

    def __len__(self) -> int:
        return len(self.centres)

    def members(self) -> NDArray[np.intp]:
        """Return the topic of each document that the topics were made from."""
        found = np.empty(sum(c.size for c in self.clusters), dtype=np.intp)
        for number, cluster in enumerate(self.clusters):
            found[cluster.members] = number
        return found

    def nearest(self, points: Floats) -> NDArray[np.intp]:
        """Return the topic whose centre is nearest to each point."""
        square = np.square(self.centres).sum(axis=1)
        found = (square - 2 * points @ self.centres.T).argmin(axis=1)
        return np.asarray(found, dtype=np.intp)

    def distances(self, posterior: GaussianPosterior) -> Floats:
        r"""Return how far each document is from the topic that explains it best.

        The root of :math:`\min_c \sum_k (\nu_k - \mu_{ck})^2 / (\sigma_k^2 + s_k^2) /
        K`: a document whose place is not known is not far from anything, as its own
        variance :math:`s^2` counts.
        """
        found = np.empty(len(posterior))
        for start in range(0, len(posterior), BLOCK):
            rows = slice(start, start + BLOCK)
            weight = 1 / (self.variance + posterior.variance[rows].astype(np.float64))
            mean = posterior.mean[rows].astype(np.float64)
            squares: Any = (
                (weight * mean**2).sum(axis=1)[:, None]
                - 2 * (weight * mean) @ self.centres.T
                + weight @ np.square(self.centres).T
            )
            found[rows] = squares.min(axis=1)
        return np.asarray(np.sqrt(np.maximum(found, 0) / posterior.n_components))


def ranks(values: Floats, among: Floats) -> Floats:
    """Return the share of `among` that is below each value, from 0 to 1."""
    place = np.searchsorted(np.sort(among), values, side="left")
    return np.asarray(place / max(1, len(among)))
