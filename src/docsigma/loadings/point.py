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

    def minibatch_ascent(self, loadings: Tensor) -> _ProximalAscent:
        """Return proximal Adam, which yields exact zeros in spite of noise."""
        optimizer = ProximalAdam(loadings, l1=float(self.l1), l2=float(self.l2))
        return _ProximalAscent(optimizer)

    def full_ascent(self, loadings: Tensor, learning_rate: float) -> _OrthantAscent:
        """Return the paper's orthant-wise Adam, or Adam without l1."""
        optimizer = (
            OrthantAdam(loadings, learning_rate, float(self.l1))
            if self.l1 > 0
            else Adam(loadings, learning_rate)
        )
        return _OrthantAscent(optimizer, float(self.l2))


class _ProximalAscent:
    def __init__(self, optimizer: ProximalAdam) -> None:
        self.optimizer = optimizer
        self.state, self.restore = optimizer.state, optimizer.restore

    def ascend(self, loadings: Tensor, gradient: WordGradient) -> None:
        """Move the loadings in place."""
        gradient.proximal_step(self.optimizer, loadings)


class _OrthantAscent:
    def __init__(self, optimizer: Adam, l2: float) -> None:
        self.optimizer, self.l2 = optimizer, l2
        self.state, self.restore = optimizer.state, optimizer.restore

    def ascend(self, loadings: Tensor, gradient: WordGradient) -> None:
        """Move the loadings in place."""
        slope = gradient.slope()
        if self.l2 > 0:
            slope = slope - self.l2 * loadings
        self.optimizer.ascend(loadings, slope)
