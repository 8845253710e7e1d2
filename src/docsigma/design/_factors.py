"""How one column of a table becomes covariates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from docsigma.design._cells import as_category, as_numbers
from docsigma.exceptions import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Factor(ABC):
    """One column of a table as one or more covariates."""

    kind: ClassVar[str]
    column: str

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the covariates."""

    @abstractmethod
    def encode(self, cells: Sequence[Any]) -> Array:
        """Return covariates, one row per cell, NaN where it is missing or unknown."""

    def to_dict(self) -> dict[str, Any]:
        """Return the factor for JSON."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class Category(Factor):
    """A category: one covariate per level, 1 where the document has it.

    No level is left out as a reference: the weights have a proper prior, under which
    all levels are alike, and every difference of two can be asked for.
    """

    kind: ClassVar[str] = "category"
    levels: list[str]

    @classmethod
    def learn(cls, column: str, cells: Sequence[Any]) -> Self:
        """Return the factor with the levels of a column."""
        found = {as_category(cell) for cell in cells} - {None}
        _check_varied(column, sorted(map(str, found)))
        return cls(column, sorted(str(level) for level in found))

    @property
    def names(self) -> list[str]:
        """Names of the covariates."""
        return [f"{self.column}={level}" for level in self.levels]

    def encode(self, cells: Sequence[Any]) -> Array:
        """Return one column per level."""
        place = {level: i for i, level in enumerate(self.levels)}
        found = np.full((len(cells), len(self.levels)), np.nan)
        for row, cell in enumerate(cells):
            level = as_category(cell)
            if level in place:
                found[row] = 0.0
                found[row, place[level]] = 1.0
        return found


@dataclass(frozen=True)
class Number(Factor):
    """A number or a date, divided by its standard deviation."""

    kind: ClassVar[str] = "number"
    centre: float
    scale: float

    @classmethod
    def learn(cls, column: str, cells: Sequence[Any]) -> Self:
        """Return the factor with mean and standard deviation of a column."""
        numbers = numbers_of(column, cells)
        known = numbers[~np.isnan(numbers)]
        _check_varied(column, np.unique(known).tolist())
        return cls(column, float(known.mean()), float(known.std()))

    @property
    def names(self) -> list[str]:
        """Names of the covariates."""
        return [self.column]

    def encode(self, cells: Sequence[Any]) -> Array:
        """Return one column."""
        numbers = numbers_of(self.column, cells)
        return ((numbers - self.centre) / self.scale)[:, None]


@dataclass(frozen=True)
class Spline(Factor):
    r"""A smooth function of a number or a date: natural cubic splines.

    The functions are orthogonal and have variance 1 over the documents; the first is
    the smoothest, nearly a line, and each has a turn more. The i-th is divided by i.
    So under one prior for all weights, their sum is about a random walk, smooth where
    few documents say otherwise, and the number of functions hardly matters if it
    suffices. Beyond the numbers of the training, a function stays at its last value.
    """

    kind: ClassVar[str] = "spline"
    knots: list[float]
    values: list[list[float]]

    @classmethod
    def learn(cls, column: str, cells: Sequence[Any], n_functions: int) -> Self:
        """Return the factor with knots at the quantiles of a column."""
        numbers = numbers_of(column, cells)
        known = numbers[~np.isnan(numbers)]
        distinct = np.unique(known)
        _check_varied(column, distinct.tolist())
        n = min(n_functions, len(distinct) - 1)
        knots = np.quantile(distinct, np.linspace(0, 1, n + 1))
        basis = CubicSpline(knots, np.eye(n + 1), bc_type="natural")
        # Over the documents: the mean and the covariance of the functions of the knots.
        at = basis(known)
        mean = at.mean(axis=0)
        gram = (at - mean).T @ (at - mean) / len(at)
        # The integral of products of second derivatives, which are linear in between.
        bend = basis(knots, 2)
        step = np.diff(knots)[:, None, None]
        left, right = bend[:-1], bend[1:]
        rough = sum(
            weight * np.einsum("ip,iq->ipq", a, b)
            for a, b, weight in ((left, left, 2), (left, right, 1), (right, left, 1))
        ) + 2 * np.einsum("ip,iq->ipq", right, right)
        roughness = (step * rough / 6).sum(axis=0)
        # Without the constant function, which has no variance.
        values, vectors = np.linalg.eigh(gram)
        keep = values > 1e-10 * values[-1]
        root = vectors[:, keep] / np.sqrt(values[keep])
        order = np.linalg.eigh(root.T @ roughness @ root)[1]
        functions = root @ order
        functions = functions - mean @ functions
        functions *= np.sign(functions[-1] - functions[0] + 1e-300)
        functions = functions / np.arange(1, functions.shape[1] + 1)
        return cls(column, knots.tolist(), functions.tolist())

    @property
    def names(self) -> list[str]:
        """Names of the covariates."""
        return [f"spline({self.column})[{i}]" for i in range(len(self.values[0]))]

    def encode(self, cells: Sequence[Any]) -> Array:
        """Return one column per function."""
        numbers = numbers_of(self.column, cells)
        inside = np.clip(numbers, self.knots[0], self.knots[-1])
        curve = CubicSpline(self.knots, np.array(self.values), bc_type="natural")
        known = ~np.isnan(inside)
        found = np.full((len(inside), len(self.values[0])), np.nan)
        found[known] = curve(inside[known])
        return found


def numbers_of(column: str, cells: Sequence[Any]) -> Array:
    """Return the numbers of a column, NaN where missing, or refuse other cells."""
    numbers = as_numbers(cells)
    if numbers is None:
        wrong = next(cell for cell in cells if as_numbers([cell]) is None)
        raise InputError(
            f"column `{column}` of the covariates must have numbers or dates, got "
            f"{wrong!r:.60}"
        )
    return numbers


def _check_varied(column: str, values: list[Any]) -> None:
    if len(values) < 2:
        what = f"always {values[0]!r}" if values else "empty in all documents"
        raise InputError(
            f"column `{column}` of the covariates is {what}, so it cannot explain how "
            "documents differ: leave it out"
        )


KINDS: dict[str, type[Factor]] = {
    kind.kind: kind for kind in (Category, Number, Spline)
}
