"""The contract of a prior, and its arithmetic."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from docsigma._base import Part
from docsigma.posterior import GaussianPrior

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docsigma.covariances import Gaussians
    from docsigma.kernels import CountTensor
    from docsigma.objective import Model


class Prior(Part):
    r"""A prior :math:`p(w) = N(m_0, \Lambda^{-1})`; a kind defines both.

    Its mean may depend on covariates of the document (`takes_covariates`).
    """

    # Whether documents have covariates, on which their prior means depend.
    takes_covariates: ClassVar[bool] = False
    # Names of the learned attributes, without the trailing underscore.
    learned: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def gaussian(self, n_components: int) -> GaussianPrior:
        """Return the mean and the precision for embeddings of that size."""

    def tensors(
        self,
        n_components: int,
        like: Tensor,
        covariates: Tensor | None = None,  # noqa: ARG002
    ) -> PriorTensors:
        """Return the prior on the device and in the dtype of `like`.

        With `covariates` (n, P), it is that of n documents.
        """
        return PriorTensors(self.gaussian(n_components), like)

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the learned arrays; none before training."""
        names = [name for name in self.learned if hasattr(self, f"{name}_")]
        return {name: getattr(self, f"{name}_") for name in names}

    def set_arrays(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Restore what :meth:`arrays` returned."""
        for name in self.learned:
            if name in arrays:
                setattr(self, f"{name}_", np.array(arrays[name]))


class LearnedPrior(Prior):
    """A prior that is learned from the documents' posteriors; initially isotropic."""

    learns: ClassVar[bool] = True

    def __init__(
        self, precision: float = 10.0, pseudo_documents: float = 100.0
    ) -> None:
        self.precision = precision
        self.pseudo_documents = pseudo_documents

    def gaussian(self, n_components: int) -> GaussianPrior:
        """Return the mean and the precision for embeddings of that size."""
        if not self.arrays():
            return GaussianPrior.isotropic(self.precision, n_components)
        return self._learned_gaussian()

    @abstractmethod
    def _learned_gaussian(self) -> GaussianPrior:
        """Return the learned prior."""

    @abstractmethod
    def moments(self, q: Gaussians) -> dict[str, Tensor]:
        """Return the sums over posteriors that :meth:`update` needs."""

    def sums(
        self,
        counts: CountTensor,  # noqa: ARG002
        q: Gaussians,
        model: Model,  # noqa: ARG002
    ) -> dict[str, Tensor]:
        """Return :meth:`moments` of the documents' posteriors."""
        return self.moments(q)


class PriorTensors:
    r"""A Gaussian prior as the objective needs it.

    Attributes
    ----------
    precision : float or Tensor of shape (K,) or (K, K)
        :math:`\Lambda`.
    diagonal : float or Tensor of shape (K,)
        Its diagonal.
    mean : Tensor of shape (K,) or (n, K), or None
        :math:`m_0`, of all documents or one per document; None is zero.
    scale : float
        A typical standard deviation, which limits steps.
    """

    def __init__(self, gaussian: GaussianPrior, like: Tensor) -> None:
        self.gaussian = gaussian
        self.precision: float | Tensor
        self.diagonal: float | Tensor
        if gaussian.form == "isotropic":
            self.precision = self.diagonal = float(gaussian.precision)
        else:
            self.precision = torch.tensor(gaussian.precision).to(like)
            self.diagonal = torch.tensor(gaussian.precision_diagonal()).to(like)
        moved = gaussian.mean.any()
        self._mean = torch.tensor(gaussian.mean).to(like) if moved else None
        self.scale = float((1 / gaussian.precision_diagonal()).mean()) ** 0.5
        self.log_determinant = gaussian.log_determinant()

    @property
    def mean(self) -> Tensor | None:
        """The mean; None is zero."""
        return self._mean

    def __getitem__(self, rows: slice | Tensor) -> PriorTensors:
        """Return the prior of some documents: the same if they share one mean."""
        if self._mean is None or self._mean.ndim == 1:
            return self
        some = copy.copy(self)
        some._mean = self._mean[rows]
        return some

    def times(self, vectors: Tensor) -> Tensor:
        r"""Return :math:`\Lambda v` per row."""
        precision = self.precision
        if isinstance(precision, float) or precision.ndim == 1:
            return precision * vectors
        return vectors @ precision.to(vectors)

    def penalty_gradient(self, points: Tensor) -> Tensor:
        r"""Return :math:`\Lambda(w - m_0)`, the gradient of half of :meth:`square`."""
        return self.times(points if self.mean is None else points - self.mean)

    def square(self, points: Tensor) -> Tensor:
        r"""Return :math:`(w - m_0)^\top\Lambda(w - m_0)` per point, float64."""
        away = points if self.mean is None else points - self.mean
        if isinstance(self.precision, float):
            return self.precision * away.square().sum(dim=-1, dtype=torch.float64)
        return (self.times(away) * away).sum(dim=-1, dtype=torch.float64)

    def matrix(self, like: Tensor) -> Tensor:
        r"""Return :math:`\Lambda` as a matrix, in the dtype of `like`."""
        return torch.tensor(self.gaussian.precision_matrix()).to(like)

    def start(self, like: Tensor) -> Tensor:
        """Return the mean once per row of `like`."""
        nothing = torch.zeros_like(like)
        return nothing if self.mean is None else nothing + self.mean

    def whiten(self, covariance: Tensor) -> tuple[Tensor, Tensor | None]:
        r"""Return :math:`L^{-1} C L^{-\top}` and :math:`L^{-\top}`, for float64 CPU C.

        :math:`\Lambda = L L^\top`. If the precision is one number, which does not
        change eigenvectors, C and None are returned.
        """
        if isinstance(self.precision, float):
            return covariance, None
        matrix = torch.tensor(self.gaussian.precision_matrix())
        factor = torch.linalg.cholesky(matrix)
        half = torch.linalg.solve_triangular(factor, covariance, upper=False)
        white = torch.linalg.solve_triangular(factor, half.t(), upper=False)
        unit = torch.eye(len(matrix), dtype=matrix.dtype)
        back = torch.linalg.solve_triangular(factor.t(), unit, upper=True)
        return 0.5 * (white + white.t()), back

    @property
    def unit(self) -> float:
        """The precision in the basis of :meth:`whiten`."""
        return self.precision if isinstance(self.precision, float) else 1.0
