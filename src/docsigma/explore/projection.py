"""Projection of Gaussians to two dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError
from docsigma.workers.text_batches import granted_threads

if TYPE_CHECKING:
    from docsigma.posterior import GaussianPosterior


def arrange_by_neighbours(mean: Floats, random_state: int = 0) -> Floats:
    """Return places on a plane where neighbours lie together, by t-SNE.

    Only neighbourhoods are kept: distances, directions and ellipses mean nothing there.
    """
    try:
        from openTSNE import TSNE
    except ImportError as error:
        raise InputError(
            "the map of neighbours needs openTSNE: pip install docsigma[neighbours]"
        ) from error
    if len(mean) < 10:
        raise InputError(
            f"the map of neighbours needs 10 documents or more, there are {len(mean)}"
        )
    layout = TSNE(
        # Each document has three times as many neighbours.
        perplexity=min(30, (len(mean) - 1) / 3),
        initialization="pca",
        n_jobs=granted_threads(),
        random_state=random_state,
    )
    return np.asarray(layout.fit(mean), dtype=np.float64)


@dataclass(frozen=True)
class Projection:
    r"""A linear map onto two axes, which maps Gaussians to Gaussians.

    A document :math:`N(\nu, \Sigma)` becomes :math:`N(A^T (\nu - c), A^T \Sigma A)`.

    Attributes
    ----------
    centre : ndarray of shape (n_components,)
        The point that becomes the origin.
    axes : ndarray of shape (n_components, 2)
        Orthonormal columns.
    """

    centre: Floats
    axes: Floats

    @classmethod
    def principal(cls, mean: Floats) -> Projection:
        """Return the projection onto the two principal axes of the means.

        The largest entry of each axis is positive, so that no run mirrors the map.
        A single component is drawn along a line.

        Examples
        --------
        >>> mean = np.array([[0.0, 0.0, 3.0], [0.0, 1.0, -3.0], [0.0, -1.0, 0.0]])
        >>> Projection.principal(mean).axes.round(1).T.tolist()
        [[0.0, -0.2, 1.0], [0.0, 1.0, 0.2]]
        """
        mean = np.asarray(mean, dtype=np.float64)
        centre = mean.mean(axis=0) if len(mean) else np.zeros(mean.shape[1])
        away = mean - centre
        vectors = np.linalg.eigh(away.T @ away)[1][:, ::-1][:, :2]
        if vectors.shape[1] < 2:
            vectors = np.hstack([vectors, np.zeros_like(vectors)])
        strongest = np.abs(vectors).argmax(axis=0)
        signs = np.where(vectors[strongest, [0, 1]] < 0, -1.0, 1.0)
        return cls(centre, vectors * signs)

    def points(self, mean: Floats) -> Floats:
        """Return the means on the map, documents x 2."""
        return np.asarray((mean - self.centre) @ self.axes)

    def covariances(self, posterior: GaussianPosterior) -> Floats:
        """Return the covariances on the map as columns xx, xy, yy."""
        x, y = self.axes.T
        if posterior[:1].covariance is None:
            weights = np.stack([x * x, x * y, y * y], axis=1)
            return np.asarray(posterior.variance.astype(np.float64) @ weights)
        parts = [np.empty((0, 3))]
        # 4096 full covariances of 100 dimensions take a third of a gigabyte.
        for start in range(0, len(posterior), 4096):
            full = posterior[start : start + 4096].covariance
            assert full is not None
            flat = np.einsum("ia,dij,jb->dab", self.axes, full, self.axes)
            parts.append(flat.reshape(-1, 4)[:, [0, 1, 3]])
        return np.concatenate(parts)
