"""Documents as Gaussians."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from docsigma._tensors import read_tensors, write_tensors
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

__all__ = ["GaussianPosterior"]

Array = NDArray[np.floating[Any]]
KIND = "gaussian-posterior"


class GaussianPosterior:
    r"""One Gaussian a document: :math:`q(w_d) = N(\nu_d, \Sigma_d)`.

    The covariance is diagonal (give `variance`) or full (give `covariance`). The
    object is immutable; slicing gives a new one.

    Parameters
    ----------
    mean : array of shape (n_documents, n_components)
        Where the documents lie.
    variance : array of shape (n_documents, n_components), default=None
        Diagonal of the covariance.
    covariance : array, default=None
        Full covariances, of shape (n_documents, n_components, n_components), instead
        of `variance`.

    Attributes
    ----------
    mean, variance, log_std : arrays of shape (n_documents, n_components)
        Means, variances of each dimension, half the log of the latter.
    covariance : array or None
        The full covariances, None for a diagonal posterior.
    total_variance : array of shape (n_documents,)
        Trace of the covariance: one number that says how unsure we are.

    Examples
    --------
    >>> import numpy as np
    >>> q = GaussianPosterior(np.zeros((2, 3)), np.array([[1.0] * 3, [0.1] * 3]))
    >>> q.total_variance.round(3).tolist()
    [3.0, 0.3]
    >>> q[1:].kl(prior_precision=10.0).round(6).tolist()
    [0.0]
    """

    def __init__(
        self,
        mean: ArrayLike,
        variance: ArrayLike | None = None,
        *,
        covariance: ArrayLike | None = None,
    ) -> None:
        self.mean = _floats("mean", mean, 2)
        if (variance is None) == (covariance is None):
            raise InputError("give one of `variance` and `covariance`, not both")
        self.covariance: Array | None = None
        if covariance is not None:
            self.covariance = _floats("covariance", covariance, 3)
            _same("covariance", self.covariance, (*self.mean.shape, self.mean.shape[1]))
            self.variance = np.diagonal(self.covariance, axis1=1, axis2=2).copy()
        else:
            self.variance = _floats("variance", variance, 2)
            _same("variance", self.variance, self.mean.shape)
        if not (self.variance > 0).all():
            row, column = np.argwhere(~(self.variance > 0))[0]
            value = self.variance[row, column]
            raise InputError(
                f"`variance` must be positive, got {value:g} in row {row}, "
                f"column {column}"
            )
        for array in (self.mean, self.variance, self.covariance):
            if array is not None:
                array.flags.writeable = False

    def __len__(self) -> int:
        return int(self.mean.shape[0])

    def __repr__(self) -> str:
        kind = "diagonal" if self.covariance is None else "full"
        return (
            f"GaussianPosterior({len(self)} documents, {self.n_components} "
            f"components, {kind} covariance)"
        )

    def __getitem__(self, rows: slice | ArrayLike) -> GaussianPosterior:
        """Give the posteriors of `rows`; one integer keeps the document axis."""
        index = rows if isinstance(rows, slice) else np.atleast_1d(np.asarray(rows))
        if self.covariance is not None:
            return GaussianPosterior(
                self.mean[index], covariance=self.covariance[index]
            )
        return GaussianPosterior(self.mean[index], self.variance[index])

    @property
    def n_components(self) -> int:
        """Size of an embedding."""
        return int(self.mean.shape[1])

    @property
    def log_std(self) -> Array:
        """Log of the standard deviation of each dimension."""
        result: Array = 0.5 * np.log(self.variance)
        return result

    @property
    def total_variance(self) -> Array:
        """Trace of the covariance, one number a document."""
        result: Array = self.variance.sum(axis=1)
        return result

    def _log_determinant(self) -> Array:
        if self.covariance is None:
            return np.asarray(np.log(self.variance.astype(np.float64)).sum(axis=1))
        return np.asarray(np.linalg.slogdet(self.covariance.astype(np.float64))[1])

    def kl(self, prior_precision: float = 1.0) -> Array:
        r"""Divergence to the prior :math:`N(0, I/\lambda)`, in nats a document.

        Examples
        --------
        >>> q = GaussianPosterior([[1.0]], [[1.0]])
        >>> q.kl(prior_precision=1.0).tolist()
        [0.5]
        """
        lam = float(prior_precision)
        if not lam > 0:
            raise InputError(f"`prior_precision` must be positive, got {lam:g}")
        square = np.square(self.mean, dtype=np.float64).sum(axis=1)
        trace = self.variance.sum(axis=1, dtype=np.float64)
        constant = self.n_components * (np.log(lam) + 1.0)
        result: Array = 0.5 * (
            lam * (trace + square) - self._log_determinant() - constant
        )
        return result

    def entropy(self) -> Array:
        """Differential entropy, in nats a document.

        Examples
        --------
        >>> GaussianPosterior([[0.0]], [[1.0]]).entropy().round(4).tolist()
        [1.4189]
        """
        constant = self.n_components * (np.log(2 * np.pi) + 1.0)
        result: Array = 0.5 * (constant + self._log_determinant())
        return result

    def draws(self, n_draws: int, random_state: int | None = None) -> Array:
        """Draw embeddings.

        Returns
        -------
        array of shape (n_draws, n_documents, n_components)

        Examples
        --------
        >>> q = GaussianPosterior([[0.0, 5.0]], [[1.0, 0.01]])
        >>> q.draws(1000, random_state=0).shape
        (1000, 1, 2)
        """
        if n_draws < 1:
            raise InputError(f"`n_draws` must be at least 1, got {n_draws}")
        random = np.random.default_rng(random_state)
        noise = random.standard_normal((n_draws, *self.mean.shape))
        if self.covariance is None:
            spread = noise * np.sqrt(self.variance)
        else:
            factor = np.linalg.cholesky(self.covariance.astype(np.float64))
            spread = np.einsum("dij,rdj->rdi", factor, noise)
        result: Array = (self.mean + spread).astype(self.mean.dtype)
        return result

    @classmethod
    def concatenate(cls, parts: Sequence[GaussianPosterior]) -> GaussianPosterior:
        """Join posteriors, one set of documents after the other.

        Examples
        --------
        >>> q = GaussianPosterior([[0.0]], [[1.0]])
        >>> len(GaussianPosterior.concatenate([q, q, q]))
        3
        """
        if not parts:
            raise InputError("there are no posteriors to concatenate")
        widths = {part.n_components for part in parts}
        if len(widths) > 1:
            first, second, *_ = sorted(widths)
            raise InputError(
                f"cannot concatenate posteriors of {first} and {second} components"
            )
        mean = np.concatenate([part.mean for part in parts])
        if all(part.covariance is None for part in parts):
            return cls(mean, np.concatenate([part.variance for part in parts]))
        full = [part._full_covariance() for part in parts]
        return cls(mean, covariance=np.concatenate(full))

    def _full_covariance(self) -> Array:
        if self.covariance is not None:
            return self.covariance
        return self.variance[:, :, None] * np.eye(self.n_components)

    def to_arrays(self) -> dict[str, Array]:
        """Give ``mean`` and ``variance`` (or ``covariance``) by name."""
        if self.covariance is not None:
            return {"mean": self.mean, "covariance": self.covariance}
        return {"mean": self.mean, "variance": self.variance}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, ArrayLike]) -> GaussianPosterior:
        """Make a posterior of what :meth:`to_arrays` gave."""
        if "mean" not in arrays:
            raise InputError(f"no `mean` among the arrays {sorted(arrays)}")
        return cls(
            arrays["mean"],
            arrays.get("variance"),
            covariance=arrays.get("covariance"),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the posterior to one safetensors file."""
        write_tensors(path, self.to_arrays(), {"kind": KIND})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GaussianPosterior:
        """Read what :meth:`save` wrote; no code is run."""
        arrays, metadata = read_tensors(path)
        if metadata.get("kind") != KIND:
            raise InputError(f"{path} holds no docsigma posterior")
        return cls.from_arrays(arrays)


def _floats(name: str, values: ArrayLike | None, dimensions: int) -> Array:
    array = np.array(values)
    if array.ndim != dimensions:
        raise InputError(
            f"`{name}` must have {dimensions} dimensions, got {array.ndim}"
        )
    if not np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise InputError(
            f"`{name}` must be finite, got {array[tuple(where)]} at {where}"
        )
    return array


def _same(name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise InputError(f"`{name}` must have the shape {shape}, got {array.shape}")
