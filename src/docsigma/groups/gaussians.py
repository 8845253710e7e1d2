"""Groups of documents as Gaussians, and distances of documents from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma._array_checks import Floats
from docsigma.counts._base import BLOCK
from docsigma.groups.by_means import Group, group_by_means

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.models._count_model import CountModel
    from docsigma.posterior import GaussianPosterior


@dataclass(frozen=True)
class Groups:
    """Groups as Gaussians with a shared diagonal covariance.

    Attributes
    ----------
    found : list of Group
        Size, words, typical documents and members of each, largest first.
    centres : ndarray of shape (n_groups, n_components)
        Mean of each group's means.
    variance : ndarray of shape (n_components,)
        Variance of the means around their centres.
    """

    found: list[Group]
    centres: Floats
    variance: Floats

    @classmethod
    def fit(
        cls,
        model: CountModel,
        posterior: GaussianPosterior,
        n_groups: int,
        n_words: int = 8,
    ) -> Groups:
        """Group documents, into at most as many groups as there are documents."""
        n_groups = min(n_groups, len(posterior))
        found = group_by_means(model, posterior, n_groups, n_words)
        mean = posterior.mean.astype(np.float64)
        centres = np.stack([mean[group.members].mean(axis=0) for group in found])
        scatter = np.zeros(mean.shape[1])
        for group, centre in zip(found, centres, strict=True):
            scatter += np.square(mean[group.members] - centre).sum(axis=0)
        # Copies of one document have no scatter: this avoids dividing by zero.
        floor = 1e-6 * posterior.variance.mean(axis=0, dtype=np.float64)
        return cls(found, centres, scatter / len(mean) + floor)

    def __len__(self) -> int:
        return len(self.centres)

    def nearest(self, points: Floats) -> NDArray[np.intp]:
        """Return the group whose centre is nearest to each point."""
        square = np.square(self.centres).sum(axis=1)
        found = (square - 2 * points @ self.centres.T).argmin(axis=1)
        return np.asarray(found, dtype=np.intp)

    def distances(self, posterior: GaussianPosterior) -> Floats:
        r"""Return each document's distance from the group that explains it best.

        The root of :math:`\min_c \sum_k (\nu_k - \mu_{ck})^2 / (\sigma_k^2 + s_k^2) /
        K`: an uncertain document is not far from any group, since its variance
        :math:`s^2` is in the denominator.
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
