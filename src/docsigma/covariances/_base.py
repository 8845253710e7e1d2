"""The contract of a covariance family, and of the Gaussians it makes."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

from docsigma._base import Part

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from docsigma.kernels import SoftmaxMoments
    from docsigma.priors import PriorTensors


class Gaussians(ABC):
    r"""Posteriors :math:`q(w_d) = N(\nu_d, \Sigma_d)` of some documents."""

    mean: Tensor  # (n, K)
    # Attributes that are tensors with one row per document.
    names: ClassVar[tuple[str, ...]]
    # Whether documents are points: no variance, and the prior's density as divergence.
    is_point: ClassVar[bool] = False

    @property
    @abstractmethod
    def family(self) -> CovarianceFamily:
        """The family of these posteriors."""

    @property
    @abstractmethod
    def variance(self) -> Tensor:
        r"""Diagonal of :math:`\Sigma`, of shape (n, K)."""

    @property
    @abstractmethod
    def precision(self) -> Tensor:
        r"""Diagonal of :math:`\Sigma^{-1}`, of shape (n, K)."""

    @property
    def log_precision(self) -> Tensor:
        """Logarithm of :attr:`precision`."""
        return self.precision.log()

    @abstractmethod
    def points(self, noise: Tensor) -> Tensor:
        """Turn standard normals of shape (n or 1, R, K) into draws (n, R, K)."""

    @abstractmethod
    def trace(self, prior: PriorTensors) -> Tensor:
        r"""Return :math:`\mathrm{tr}(\Lambda\Sigma)` per document, float64."""

    @abstractmethod
    def log_determinant(self) -> Tensor:
        r"""Return :math:`\log|\Sigma|` per document, float64."""

    @abstractmethod
    def tilted(self, centre: Tensor) -> Tensor:
        r"""Return the factor of the word features in the bound on the log-sum-exp.

        The inner product is :math:`t(\nu - \Sigma a) + \tfrac12 t^\top\Sigma t`.
        """

    @abstractmethod
    def square(self, vectors: Tensor) -> Tensor:
        r"""Return :math:`v^\top\Sigma v` per document, float64."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name, each with one row per document."""
        return {name: getattr(self, name) for name in self.names}

    def like(self, tensors: dict[str, Tensor]) -> Self:
        """Return posteriors of the same family with other tensors."""
        other = copy.copy(self)
        vars(other).update(tensors)
        return other

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return ``mean`` and ``variance`` or ``covariance``, for users."""

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, rows: slice | Tensor) -> Self:
        return self.like({k: v[rows] for k, v in self.tensors().items()})

    def __setitem__(self, rows: slice | Tensor, other: Gaussians) -> None:
        for name, value in other.tensors().items():
            self.tensors()[name][rows] = value.to(self.mean.dtype)

    @abstractmethod
    def halfway(self, other: Gaussians) -> Self:
        """Return these means with the average of both precisions."""

    def with_mean(self, mean: Tensor) -> Self:
        """Return the same covariances around other means."""
        return self.like({**self.tensors(), "mean": mean})

    def towards(self, other: Gaussians, step: Tensor) -> Self:
        """Return the posteriors a fraction `step` (n, 1) of the way to `other`."""
        theirs, moved = other.tensors(), {}
        for name, mine in self.tensors().items():
            moved[name] = mine + _column(step, mine) * (theirs[name] - mine)
        return self.like(moved)

    def where(self, condition: Tensor, other: Gaussians) -> Self:
        """Return these where `condition` (n, 1) holds, else `other`."""
        theirs, chosen = other.tensors(), {}
        for name, mine in self.tensors().items():
            chosen[name] = mine.where(_column(condition, mine), theirs[name])
        return self.like(chosen)


def _column(values: Tensor, like: Tensor) -> Tensor:
    return values if like.ndim == 2 else values[..., None]


class CovarianceFamily(Part):
    """The form of the posteriors' covariances, and how the E-step updates them."""

    # Whether the primitive must return second moments too.
    second_moments: ClassVar[bool] = False
    # Whether :meth:`spread` keeps only one variance per dimension.
    diagonal: ClassVar[bool] = False
    # Whether its posteriors are points.
    is_point: ClassVar[bool] = False

    @abstractmethod
    def constant(self, n: int, k: int, variance: float, like: Tensor) -> Gaussians:
        """Return n posteriors with mean zero and the same variance."""

    @abstractmethod
    def word_features(self, loadings: Tensor) -> Tensor:
        """Return the features per word that :meth:`Gaussians.tilted` multiplies."""

    @abstractmethod
    def spread(self, moments: SoftmaxMoments, n_components: int) -> Tensor:
        """Return the covariance of t under the tilted words, in the family's form."""

    def from_diagonal(self, information: Tensor) -> Tensor:
        """Return a diagonal (n, K) in the form of :meth:`spread`."""
        return information

    @abstractmethod
    def with_information(
        self, mean: Tensor, prior: PriorTensors, information: Tensor
    ) -> Gaussians:
        r"""Return posteriors of precision :math:`\Lambda` plus `information`.

        The latter has the form of :meth:`spread`.
        """
