"""Documents as points: a family without variance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from docsigma.covariances._base import CovarianceFamily, Gaussians

if TYPE_CHECKING:
    import numpy as np

    from docsigma.kernels import SoftmaxMoments
    from docsigma.priors import PriorTensors


class Points(Gaussians):
    r"""Points :math:`w_d`, and the curvature of the objective around them.

    Parameters
    ----------
    mean : Tensor of shape (n, K)
        The points.
    curvature : Tensor of shape (n, K)
        Diagonal of minus the second derivative, which sets the scale of steps.
    """

    is_point: ClassVar[bool] = True
    names: ClassVar[tuple[str, ...]] = ("mean", "curvature")

    def __init__(self, mean: Tensor, curvature: Tensor) -> None:
        self.mean = mean
        self.curvature = curvature

    @property
    def family(self) -> Point:
        """The family of these posteriors."""
        return Point()

    @property
    def variance(self) -> Tensor:
        """Zeros, of shape (n, K)."""
        return torch.zeros_like(self.mean)

    @property
    def precision(self) -> Tensor:
        """The curvature, of shape (n, K)."""
        return self.curvature

    def points(self, noise: Tensor) -> Tensor:
        """Return the point itself, once per draw."""
        return self.mean[:, None, :].expand(-1, noise.shape[1], -1)

    def trace(self, prior: PriorTensors) -> Tensor:  # noqa: ARG002
        """Return zeros, float64."""
        return torch.zeros_like(self.mean[:, 0], dtype=torch.float64)

    def log_determinant(self) -> Tensor:
        """Return minus infinity, float64."""
        return torch.full_like(self.mean[:, 0], -torch.inf, dtype=torch.float64)

    def tilted(self, centre: Tensor) -> Tensor:  # noqa: ARG002
        """Return the points."""
        return self.mean

    def square(self, vectors: Tensor) -> Tensor:
        """Return zeros, float64."""
        return torch.zeros_like(vectors[:, 0], dtype=torch.float64)

    def halfway(self, other: Gaussians) -> Points:
        """Return these points with the average of both curvatures."""
        return Points(self.mean, 0.5 * (self.precision + other.precision))

    def gradients(self, prior: PriorTensors, *terms: Tensor) -> tuple[Tensor]:
        """Return the gradient of the objective in the points.

        The terms are those of :meth:`DiagonalGaussians.gradients`.
        """
        linear_gradient, tokens, first, _ = terms
        if linear_gradient.ndim == 3:
            linear_gradient, tokens = linear_gradient[:, 0], tokens[:, 0]
        slope = linear_gradient - tokens[:, None] * first.mean(dim=1)
        return (slope - prior.penalty_gradient(self.mean),)

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the points, for users."""
        return {"mean": self.mean.cpu().numpy()}


class Point(CovarianceFamily):
    """No variance at all: the most probable point of each document."""

    second_moments: ClassVar[bool] = True
    diagonal: ClassVar[bool] = True
    is_point: ClassVar[bool] = True

    def constant(self, n: int, k: int, variance: float, like: Tensor) -> Points:
        """Return n points at zero."""
        mean = like.new_zeros(n, k)
        return Points(mean, mean.new_full((n, k), 1 / variance))

    def word_features(self, loadings: Tensor) -> Tensor:
        """Return t alone."""
        return loadings

    def spread(self, moments: SoftmaxMoments, n_components: int) -> Tensor:
        """Return the variance of t under the words, (n, K)."""
        assert moments.first is not None
        assert moments.second is not None
        first, second = moments.first[:, :n_components], moments.second
        return (second[:, :n_components] - first * first).clamp_(min=0)

    def with_information(
        self, mean: Tensor, prior: PriorTensors, information: Tensor
    ) -> Points:
        """Return points whose curvature is the prior's plus `information`."""
        return Points(mean, prior.diagonal + information)
