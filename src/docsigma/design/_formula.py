"""Formulas of covariates, such as ``party + spline(year)``."""

from __future__ import annotations

import ast
from typing import NamedTuple

from docsigma.exceptions import InputError

# Functions per spline; fewer if there are fewer distinct numbers.
SPLINE_FUNCTIONS = 10


class FactorSpec(NamedTuple):
    """A factor as a formula names it: its column, and its kind if that is given."""

    column: str
    kind: str | None = None
    n_functions: int = SPLINE_FUNCTIONS


def parse_formula(formula: str) -> list[list[FactorSpec]]:
    """Return the terms of a formula, each a list of factors whose product it is.

    ``a + b`` has both, ``a:b`` their interaction, ``a * b`` both and their interaction.
    ``spline(x)`` is a smooth function of x, ``spline(x, 5)`` one of five functions, and
    ``C(x)`` takes numbers for categories. A constant counts for nothing.

    Examples
    --------
    >>> for term in parse_formula("party + spline(year)"):
    ...     print(term)
    [FactorSpec(column='party', kind=None, n_functions=10)]
    [FactorSpec(column='year', kind='spline', n_functions=10)]
    """
    try:
        from formulaic import Formula
        from formulaic.errors import FormulaicError
    except ImportError as error:
        raise InputError(
            "formulas need formulaic: pip install 'docsigma[covariates]'; without a "
            "formula, all columns of a table are covariates"
        ) from error
    try:
        terms = list(Formula(formula))
    except (FormulaicError, SyntaxError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"the formula {formula!r} cannot be read: {reason}; one is "
            "'party + spline(year)'"
        ) from error
    found = []
    for term in terms:
        if not hasattr(term, "factors"):
            raise InputError(
                f"the formula {formula!r} must only name covariates, without `~`: one "
                "is 'party + spline(year)'"
            )
        factors = [factor.expr for factor in term.factors if factor.expr != "1"]
        if factors:
            found.append([_factor(formula, text) for text in factors])
    if not found:
        raise InputError(f"the formula {formula!r} names no column")
    return found


def formula_columns(formula: str) -> list[str]:
    """Return the columns that a formula names.

    Examples
    --------
    >>> formula_columns("party * spline(year)")
    ['party', 'year']
    """
    specs = [spec for term in parse_formula(formula) for spec in term]
    return list(dict.fromkeys(spec.column for spec in specs))


def _factor(formula: str, text: str) -> FactorSpec:
    """Return a factor: a column, or a function of one."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        # A column with other characters, which the formula has in backquotes.
        return FactorSpec(text)
    if isinstance(tree, ast.Name):
        return FactorSpec(tree.id)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.args:
        first, rest, name = tree.args[0], tree.args[1:], tree.func.id
        rest += [keyword.value for keyword in tree.keywords]
        column = ast.unparse(first)
        if name == "C" and not rest:
            return FactorSpec(column, "category")
        if name == "spline" and not rest:
            return FactorSpec(column, "spline")
        if name == "spline" and len(rest) == 1 and isinstance(rest[0], ast.Constant):
            n = rest[0].value
            if isinstance(n, int) and not isinstance(n, bool) and n >= 1:
                return FactorSpec(column, "spline", n)
            raise InputError(
                f"the number of functions of {text!r} must be 1 or more, got {n!r}"
            )
    raise InputError(
        f"the formula {formula!r} has {text!r}, and a term must be a column, "
        "spline(column), spline(column, 5) or C(column)"
    )
