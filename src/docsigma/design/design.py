"""From a table to a matrix of covariates."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docsigma.design._cells import as_numbers, is_missing, read_table
from docsigma.design._factors import KINDS, Category, Factor, Number, Spline
from docsigma.design._formula import FactorSpec, parse_formula
from docsigma.exceptions import InputError

Array = NDArray[np.float64]
# The posterior of the weights has this many numbers squared per component.
MOST_COVARIATES = 300


@dataclass(frozen=True)
class Design:
    """How the columns of a table become covariates.

    A missing cell counts as the average of the training documents, and so does a level
    of a category that these did not have; a warning says how many there are.

    Attributes
    ----------
    formula : str or None
        None means all columns.
    factors : list of Factor
        One per column and function.
    terms : list of lists of int
        The factors whose products are covariates.
    means : array of shape (n_covariates,)
        Of the training documents.

    Examples
    --------
    >>> table = {"party": ["a", "b", "a", "b"], "year": [1900, 1910, 1920, 1930]}
    >>> design, matrix = Design.learn(table)
    >>> design.names
    ['party=a', 'party=b', 'year']
    >>> matrix.round(2).tolist()[0]
    [0.5, -0.5, -1.34]
    >>> design.matrix([{"party": "b", "year": 1915}]).tolist()
    [[-0.5, 0.5, 0.0]]
    """

    formula: str | None
    factors: list[Factor]
    terms: list[list[int]]
    means: Array

    @classmethod
    def learn(cls, table: Any, formula: str | None = None) -> tuple[Design, Array]:
        """Return the design of a training table, and its covariates."""
        columns = read_table(table)
        if formula is None:
            specs = [[FactorSpec(name)] for name in columns]
            if not specs:
                raise InputError("`covariates` has no columns")
        else:
            specs = parse_formula(formula)
        unique = list(dict.fromkeys(spec for term in specs for spec in term))
        factors = [_learn_factor(spec, columns) for spec in unique]
        terms = [[unique.index(spec) for spec in term] for term in specs]
        n_covariates = sum(
            int(np.prod([len(factors[i].names) for i in term])) for term in terms
        )
        if n_covariates > MOST_COVARIATES:
            sizes = {f.column: len(f.names) for f in factors}
            largest = max(sizes, key=lambda name: sizes[name])
            raise InputError(
                f"the table makes {n_covariates} covariates, and at most "
                f"{MOST_COVARIATES} are supported: `{largest}` alone has "
                f"{sizes[largest]}"
            )
        design = cls(formula, factors, terms, np.zeros(n_covariates))
        raw = design._products(columns)
        means = np.nanmean(raw, axis=0)
        design = cls(formula, factors, terms, means)
        design._warn(columns)
        return design, design._fill(raw)

    @property
    def columns(self) -> list[str]:
        """The columns of the table that are used."""
        return list(dict.fromkeys(factor.column for factor in self.factors))

    @property
    def names(self) -> list[str]:
        """Names of the covariates."""
        found: list[str] = []
        for term in self.terms:
            names = [""]
            for i in term:
                own = self.factors[i].names
                names = [f"{a}:{b}" if a else b for a in names for b in own]
            found += names
        return found

    def matrix(self, table: Any) -> Array:
        """Return the covariates of a table's rows, less their training means."""
        columns = read_table(table)
        raw = self._products(columns)
        self._warn(columns)
        return self._fill(raw)

    def at(self, **values: Any) -> Array:
        """Return the covariates where some columns have these values, one row each.

        The rest of the columns are at their averages. A value may be a list.
        """
        cells = {
            k: list(v) if isinstance(v, list | tuple | np.ndarray) else [v]
            for k, v in values.items()
        }
        for name in cells:
            if name not in self.columns:
                raise InputError(
                    f"the model has no covariate {name!r}: it has "
                    f"{', '.join(self.columns)}"
                )
        n = max(map(len, cells.values()))
        cells = {k: v * n if len(v) == 1 else v for k, v in cells.items()}
        rows = []
        for term, part in self._parts():
            if not any(self.factors[i].column in cells for i in term):
                rows.append(np.zeros((n, part.stop - part.start)))
                continue
            encoded = []
            for i in term:
                factor = self.factors[i]
                if factor.column in cells:
                    found = factor.encode(cells[factor.column])
                    self._check_known(factor, cells[factor.column], found)
                else:
                    found = np.repeat(self._average(i)[None], n, axis=0)
                encoded.append(found)
            rows.append(_product(encoded) - self.means[part])
        return np.concatenate(rows, axis=1)

    def levels(self, column: str) -> list[str] | None:
        """Return the levels of a category; None for a number."""
        for factor in self.factors:
            if factor.column == column and isinstance(factor, Category):
                return factor.levels
        return None

    def range(self, column: str) -> tuple[float, float]:
        """Return the smallest and largest value of a number, or about them."""
        for factor in self.factors:
            if factor.column == column and isinstance(factor, Spline):
                return factor.knots[0], factor.knots[-1]
        for factor in self.factors:
            if factor.column == column and isinstance(factor, Number):
                reach = 1.75 * factor.scale
                return factor.centre - reach, factor.centre + reach
        raise InputError(
            f"the model has no number {column!r} among its covariates: it has "
            f"{', '.join(self.columns)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the design for JSON."""
        return {
            "formula": self.formula,
            "factors": [factor.to_dict() for factor in self.factors],
            "terms": self.terms,
            "means": self.means.tolist(),
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Design:
        """Invert :meth:`to_dict`."""
        factors = []
        for given in found["factors"]:
            own = dict(given)
            factors.append(KINDS[own.pop("kind")](**own))
        return cls(found["formula"], factors, found["terms"], np.array(found["means"]))

    def _parts(self) -> list[tuple[list[int], slice]]:
        """Return each term with its columns of the matrix."""
        found, start = [], 0
        for term in self.terms:
            size = int(np.prod([len(self.factors[i].names) for i in term]))
            found.append((term, slice(start, start + size)))
            start += size
        return found

    def _average(self, number: int) -> Array:
        """Return a factor's average row, from a term that it is alone in."""
        for term, part in self._parts():
            if term == [number]:
                return self.means[part]
        factor = self.factors[number]
        if isinstance(factor, Category):
            return np.full(len(factor.levels), 1 / len(factor.levels))
        return np.zeros(len(factor.names))

    def _products(self, columns: Mapping[str, list[Any]]) -> Array:
        for name in self.columns:
            if name not in columns:
                raise InputError(
                    f"the covariates need a column `{name}`, and the columns are "
                    f"{', '.join(columns)}"
                )
        encoded = [factor.encode(columns[factor.column]) for factor in self.factors]
        return np.concatenate(
            [_product([encoded[i] for i in term]) for term in self.terms], axis=1
        )

    def _fill(self, raw: Array) -> Array:
        return np.nan_to_num(raw - self.means, nan=0.0)

    def _warn(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Warn of missing cells and levels that the training documents did not have."""
        for factor in {f.column: f for f in self.factors}.values():
            cells = columns[factor.column]
            gone = np.array([is_missing(cell) for cell in cells], dtype=bool)
            unknown = np.isnan(factor.encode(cells)).any(axis=1) & ~gone
            without = f"documents without `{factor.column}`"
            first = cells[int(unknown.argmax())] if unknown.any() else None
            other = (
                f"documents with a `{factor.column}` that no training document has, "
                f"such as {first!r:.40}"
            )
            for what, rows in ((without, gone), (other, unknown)):
                if rows.any():
                    warnings.warn(
                        f"{what}: {rows.sum()} of {len(cells)}; they count as the "
                        "average there",
                        UserWarning,
                        stacklevel=3,
                    )

    def _check_known(self, factor: Factor, cells: Sequence[Any], found: Array) -> None:
        wrong = np.isnan(found).any(axis=1)
        if wrong.any():
            cell, levels = cells[int(wrong.argmax())], self.levels(factor.column) or []
            raise InputError(
                f"`{factor.column}` has no level {cell!r}: it has {', '.join(levels)}"
            )


def _learn_factor(spec: FactorSpec, columns: Mapping[str, list[Any]]) -> Factor:
    if spec.column not in columns:
        raise InputError(
            f"the covariates need a column `{spec.column}`, and the columns are "
            f"{', '.join(columns)}"
        )
    cells = columns[spec.column]
    if spec.kind == "spline":
        return Spline.learn(spec.column, cells, spec.n_functions)
    if spec.kind == "category" or as_numbers(cells) is None:
        return Category.learn(spec.column, cells)
    return Number.learn(spec.column, cells)


def _product(factors: Sequence[Array]) -> Array:
    """Return all products of one column of each factor, row by row."""
    found = factors[0]
    for other in factors[1:]:
        found = (found[:, :, None] * other[:, None, :]).reshape(len(found), -1)
    return found
