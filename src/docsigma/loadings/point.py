"""Point estimates of the word loadings T."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsigma import objective
from docsigma.loadings._base import Loadings, WordGradient
from docsigma.optimizers import Adam, OrthantAdam, ProximalAdam

if TYPE_CHECKING:
    from torch import Tensor


class PointLoadings(Loadings):
    r"""T as one value per word and dimension, under an l1 or l2 penalty.

    Parameters
    ----------
    l1, l2 : float, default=1.0 and 0.0
        Weights :math:`\omega` of :math:`\sum|t|` and of :math:`\tfrac12\sum t^2`.
    """

    def __init__(self, l1: float = 1.0, l2: float = 0.0) -> None:
        self.l1 = l1
        self.l2 = l2

    def shrink(self) -> float:
        """Return the weight of the absolute values."""
        return float(self.l1)

    def penalty(self, loadings: Tensor) -> float:
        """Return the sum of both penalties."""
        return objective.penalty(loadings, float(self.l1), float(self.l2))

    def minibatch_ascent(self, loadings: Tensor) -> _PointAscent:
        """Return proximal Adam, which yields exact zeros in spite of noise."""
        return _PointAscent(
            ProximalAdam(loadings, l1=float(self.l1), l2=float(self.l2))
        )

    def full_ascent(self, loadings: Tensor, learning_rate: float) -> _PointAscent:
        """Return the paper's orthant-wise Adam, or Adam without l1."""
        optimizer = Adam(loadings, learning_rate)
        if self.l1 > 0:
            optimizer = OrthantAdam(loadings, learning_rate, float(self.l1))
        return _PointAscent(optimizer, float(self.l2))


class _PointAscent:
    def __init__(self, optimizer: Adam | ProximalAdam, l2: float = 0.0) -> None:
        self.optimizer, self.l2 = optimizer, l2
        self.state, self.restore = optimizer.state, optimizer.restore

    def ascend(self, loadings: Tensor, gradient: WordGradient) -> None:
        """Move the loadings in place."""
        if isinstance(self.optimizer, ProximalAdam):
            gradient.proximal_step(self.optimizer, loadings)
            return
        slope = gradient.slope()
        if self.l2 > 0:
            slope = slope - self.l2 * loadings
        self.optimizer.ascend(loadings, slope)
