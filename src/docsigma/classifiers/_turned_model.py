"""A model along axes in which classes are easy to tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma.covariances import Diagonal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma._array_checks import Floats
    from docsigma.classifiers._labels import TrainingLabels
    from docsigma.models._count_model import CountModel


def within_class_axes(
    means: NDArray[Any], labels: TrainingLabels, weights: Floats
) -> Floats:
    """Return axes in which the within-class covariance is diagonal, as columns.

    `means` and `weights` have the labelled documents first. Few labels say little about
    it, so that the covariance of all documents counts as one document per dimension.
    """
    means = means.astype(np.float64)
    known = means[: len(labels.kept)]
    centres = labels.membership @ known / labels.class_weights[:, None]
    residuals = (known - centres[labels.codes]) * np.sqrt(labels.weights)[:, None]
    away = means - np.average(means, axis=0, weights=weights)
    total = away.T @ (weights[:, None] * away) / weights.sum()
    scatter = residuals.T @ residuals + means.shape[1] * total
    return np.asarray(np.linalg.eigh(scatter)[1])


def can_turn(model: CountModel) -> bool:
    """Whether a model stays itself along other axes, and its posteriors gain by it.

    That is, its posteriors are diagonal, and its prior is alike all around.
    """
    parts: Any = getattr(model, "parts_", None)
    if parts is None or not isinstance(parts.covariance, Diagonal):
        return False
    prior = parts.prior.gaussian(len(model.components_))
    return prior.form == "isotropic" and not prior.mean.any()
