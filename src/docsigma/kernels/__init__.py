"""The arithmetic that touches every word: nothing else in docsigma does."""

from __future__ import annotations

from docsigma.kernels.moments import SoftmaxMoments
from docsigma.kernels.precision import use_precision
from docsigma.kernels.softmax_moments import softmax_moments
from docsigma.kernels.tiles import Workspace
from docsigma.kernels.words import SoftmaxWords

__all__ = [
    "SoftmaxMoments",
    "SoftmaxWords",
    "Workspace",
    "softmax_moments",
    "use_precision",
]
