"""Treatments of the word loadings T."""

from __future__ import annotations

from docsigma.loadings._base import Loadings, WordAscent, WordGradient
from docsigma.loadings.point import PointLoadings

__all__ = ["LOADINGS", "Loadings", "PointLoadings", "WordAscent", "WordGradient"]

LOADINGS: dict[str, type[Loadings]] = {"point": PointLoadings}
