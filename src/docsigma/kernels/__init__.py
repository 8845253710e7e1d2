"""The only arithmetic in docsigma that touches every word."""

from __future__ import annotations

from docsigma.kernels.counts import CountTensor
from docsigma.kernels.rounding import use_rounding
from docsigma.kernels.second_moments import second_moments
from docsigma.kernels.settings import TileSizes
from docsigma.kernels.softmax_moments import (
    SoftmaxMoments,
    SoftmaxWords,
    softmax_moments,
)
from docsigma.kernels.tiles import Workspace
from docsigma.kernels.views import Views, view_moments

__all__ = [
    "CountTensor",
    "SoftmaxMoments",
    "SoftmaxWords",
    "TileSizes",
    "Views",
    "Workspace",
    "second_moments",
    "softmax_moments",
    "use_rounding",
    "view_moments",
]
