"""Columns of a table as covariates: categories, numbers, dates and splines."""

from __future__ import annotations

from docsigma.design._cells import as_numbers
from docsigma.design._formula import formula_columns
from docsigma.design.design import Design

__all__ = ["Design", "as_numbers", "formula_columns"]
