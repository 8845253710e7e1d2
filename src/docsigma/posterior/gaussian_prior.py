"""The Gaussian prior over document embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from docsigma._array_checks import check_finite
from docsigma.exceptions import InputError

Array = NDArray[np.float64]
FORMS = ("isotropic", "diagonal", "full")


@dataclass(frozen=True, init=False, repr=False, eq=False)
class GaussianPrior:
    r"""A prior :math:`p(w) = N(m_0, \Lambda^{-1})` over document embeddings.

    Instances are immutable. Two are equal if their means and precision matrices are,
    whatever the form of the precision.

    Parameters
    ----------
    mean : array of shape (n_components,) or (n_documents, n_components)
        :math:`m_0`: one for all documents, or one per document.
    precision : float or array of shape (n_components,) or (n_components, n_components)
        :math:`\Lambda`: one number for all dimensions, one per dimension, or a
        symmetric positive definite matrix.

    Attributes
    ----------
    mean : array of float64
        As given.
    precision : array of float64
        As given: of shape (), (n_components,) or (n_components, n_components).

    Examples
    --------
    >>> prior = GaussianPrior([0.0, 1.0], [4.0, 2.0])
    >>> prior
    GaussianPrior(2 components, diagonal precision)
    >>> prior.precision_matrix().tolist()
    [[4.0, 0.0], [0.0, 2.0]]
    >>> prior == GaussianPrior([0.0, 1.0], [[4.0, 0.0], [0.0, 2.0]])
    True
    """

    mean: Array
    precision: Array

    def __init__(self, mean: ArrayLike, precision: ArrayLike) -> None:
        # Frozen: attributes can only be set by object's __setattr__.
        object.__setattr__(self, "mean", _checked_mean(mean))
        checked = _checked_precision(precision, self.n_components)
        object.__setattr__(self, "precision", checked)
        for array in (self.mean, self.precision):
            array.flags.writeable = False

    @classmethod
    def isotropic(cls, precision: float, n_components: int) -> GaussianPrior:
        r"""Return the prior :math:`N(0, I/\lambda)` of the paper."""
        return cls(np.zeros(n_components), float(precision))

    def __repr__(self) -> str:
        value = f" {self.precision:g}" if self.form == "isotropic" else ""
        return (
            f"GaussianPrior({self.n_components} components, {self.form} "
            f"precision{value})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GaussianPrior):
            return NotImplemented
        return self.difference(other) is None

    def __hash__(self) -> int:
        # Only the mean: equal priors may hold their precisions in different forms.
        return hash(tuple(self.mean.tolist()))

    @property
    def n_components(self) -> int:
        """Size of an embedding."""
        return int(self.mean.shape[-1])

    @property
    def n_documents(self) -> int | None:
        """Number of documents, if each has its own mean; None if they share one."""
        return None if self.mean.ndim == 1 else len(self.mean)

    def select(self, rows: slice | NDArray[Any]) -> GaussianPrior:
        """Return the prior of some documents: the same if they share one mean."""
        if self.n_documents is None:
            return self
        return GaussianPrior(self.mean[rows], self.precision)

    @property
    def form(self) -> str:
        """The form of the precision: "isotropic", "diagonal" or "full"."""
        return FORMS[self.precision.ndim]

    def of_groups(self, codes: NDArray[np.intp], names: NDArray[Any]) -> GaussianPrior:
        """Return the prior of groups of documents, which must share their mean.

        `codes` has the group of each document as its position in `names`.
        """
        _, first = np.unique(codes, return_index=True)
        means = self.mean[first]
        apart = np.flatnonzero((self.mean != means[codes]).any(axis=1))
        if len(apart):
            group = codes[apart[0]]
            raise InputError(
                "pieces of one document must have the same covariates, but the prior "
                f"means of rows {first[group]} and {apart[0]} of {names[group]} differ"
            )
        return GaussianPrior(means, self.precision)

    def precision_diagonal(self) -> Array:
        """Return the diagonal of the precision, of shape (n_components,)."""
        if self.form == "full":
            return self.precision.diagonal().copy()
        return np.broadcast_to(self.precision, self.n_components).copy()

    def precision_matrix(self) -> Array:
        """Return the precision as a matrix, whatever its form."""
        if self.form == "full":
            return self.precision.copy()
        return np.diag(self.precision_diagonal())

    def times_precision(self, vectors: ArrayLike) -> Array:
        r"""Return :math:`\Lambda v` for each row :math:`v`, or for one vector."""
        rows = np.asarray(vectors, dtype=np.float64)
        if self.form == "full":
            return np.asarray(rows @ self.precision)
        return np.asarray(rows * self.precision)

    def log_determinant(self) -> float:
        r"""Return :math:`\log|\Lambda|`."""
        if self.form == "full":
            return float(np.linalg.slogdet(self.precision)[1])
        return float(np.log(self.precision_diagonal()).sum())

    def difference(self, other: GaussianPrior) -> str | None:
        """Return the first difference from `other` in words; None if it is equal."""
        if self is other:
            return None
        if self.n_components != other.n_components:
            return f"{self.n_components} and {other.n_components} components"
        if "full" in (self.form, other.form):
            precisions = self.precision_matrix(), other.precision_matrix()
        else:
            precisions = self.precision_diagonal(), other.precision_diagonal()
        if self.n_documents != other.n_documents:
            shapes = f"{list(self.mean.shape)} and {list(other.mean.shape)}"
            return f"means of the shapes {shapes}"
        pairs = {"mean": (self.mean, other.mean), "precision": precisions}
        for name, (ours, theirs) in pairs.items():
            places = np.argwhere(ours != theirs)
            if len(places):
                at = tuple(places[0].tolist())
                return f"{name} {ours[at]} and {theirs[at]} at {list(at)}"
        return None


def check_same_prior(
    one: GaussianPrior, other: GaussianPrior, first: int, second: int
) -> None:
    """Refuse to concatenate the parts `first` and `second` if their priors differ."""
    difference = one.difference(other)
    if difference is not None:
        raise InputError(
            "cannot concatenate posteriors made under different priors: parts "
            f"{first} and {second} have {difference}"
        )


def stack_priors(
    priors: Sequence[GaussianPrior], sizes: Sequence[int]
) -> GaussianPrior:
    """Return the prior of the documents of several, with a mean per document."""
    nowhere = np.zeros(priors[0].n_components)
    for i, prior in enumerate(priors):
        check_same_prior(
            GaussianPrior(nowhere, priors[0].precision),
            GaussianPrior(nowhere, prior.precision),
            0,
            i,
        )
    means = [
        np.broadcast_to(prior.mean, (n, prior.n_components))
        for prior, n in zip(priors, sizes, strict=True)
    ]
    return GaussianPrior(np.concatenate(means), priors[0].precision)


def _checked_mean(values: ArrayLike) -> Array:
    mean = np.array(values, dtype=np.float64)
    if mean.ndim not in (1, 2) or not mean.shape[-1]:
        raise InputError(
            "`mean` of a prior must have the shape (n_components,) or (n_documents, "
            f"n_components), got {mean.shape}"
        )
    check_finite("`mean` of a prior", mean)
    return mean


def _checked_precision(values: ArrayLike, n_components: int) -> Array:
    precision = np.array(values, dtype=np.float64)
    allowed = [(), (n_components,), (n_components, n_components)]
    if precision.shape not in allowed:
        vector, matrix = allowed[1:]
        raise InputError(
            f"`precision` of a prior must be a number or have the shape {vector} or "
            f"{matrix}, got {precision.shape}"
        )
    check_finite("`precision` of a prior", precision)
    diagonal = precision.diagonal() if precision.ndim == 2 else precision
    if not (diagonal > 0).all():
        place = np.argwhere(~(diagonal > 0))[0].tolist()
        where = f" at {place * 2 if precision.ndim == 2 else place}" if place else ""
        raise InputError(
            f"`precision` of a prior must be positive, got "
            f"{diagonal[tuple(place)]:g}{where}"
        )
    return _symmetric(precision) if precision.ndim == 2 else precision


def _symmetric(precision: Array) -> Array:
    """Return the matrix made exactly symmetric, if it is positive definite."""
    scale = np.sqrt(precision.diagonal())
    # Rounding of a product in float32.
    slack = 1e-5 * np.outer(scale, scale)
    apart = np.abs(precision - precision.T) > slack
    if apart.any():
        i, j = np.argwhere(apart)[0].tolist()
        raise InputError(
            f"`precision` of a prior must be symmetric, got {precision[i, j]} at "
            f"{[i, j]} and {precision[j, i]} at {[j, i]}"
        )
    precision = (precision + precision.T) / 2
    try:
        np.linalg.cholesky(precision)
    except np.linalg.LinAlgError as error:
        smallest = np.linalg.eigvalsh(precision)[0]
        raise InputError(
            "`precision` of a prior must be positive definite, its smallest "
            f"eigenvalue is {smallest:g}"
        ) from error
    return precision
