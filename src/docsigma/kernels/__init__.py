"""The arithmetic that touches every word: nothing else in docsigma does."""

from __future__ import annotations

from docsigma.kernels.softmax_moments import SoftmaxMoments, softmax_moments

__all__ = ["SoftmaxMoments", "softmax_moments"]
