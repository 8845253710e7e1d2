"""Treatments of the word loadings T."""

from __future__ import annotations

from docsigma.loadings._base import (
    Loadings,
    WordAscent,
    WordGradient,
    WordInformation,
)
from docsigma.loadings.gaussian import GaussianLoadings
from docsigma.loadings.point import PointLoadings

__all__ = [
    "LOADINGS",
    "GaussianLoadings",
    "Loadings",
    "PointLoadings",
    "WordAscent",
    "WordGradient",
    "WordInformation",
]

LOADINGS: dict[str, type[Loadings]] = {
    "point": PointLoadings,
    "gaussian": GaussianLoadings,
}
