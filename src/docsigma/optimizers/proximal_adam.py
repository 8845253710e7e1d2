"""Adam on an l1-penalised objective, by proximal steps in cache-sized pieces."""

from __future__ import annotations

import torch
from torch import Tensor

from docsigma.optimizers.adam import Moments


class ProximalAdam(Moments):
    r"""Adam for minibatches, with exact zeros.

    After Adam's step each coordinate moves towards zero by :math:`\omega` times its own
    step size, and stops there: the proximal step of :math:`\omega|t|` in Adam's metric.
    Unlike with a projection, zeros are stable even if gradients are noisy.

    Parameters
    ----------
    like : Tensor of shape (n, K)
        The tensor to move.
    l1, l2 : float
        Weights of :math:`\sum|t|` and :math:`\tfrac12\sum t^2`.
    betas : tuple of two floats
        Decay rates of the two moments.
    piece : int
        Numbers moved at a time on a CPU: the six arrays of a step then fit the cache.
    """

    def __init__(
        self,
        like: Tensor,
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        betas: tuple[float, float] = (0.8, 0.9),
        piece: int = 2**18,
    ) -> None:
        self.l1, self.l2 = l1, l2
        self.betas, self.piece = betas, piece
        super().__init__(like)

    def ascend(
        self,
        parameter: Tensor,
        gradient: Tensor,
        rate: float,
        curvature: tuple[Tensor, Tensor] | Tensor | None = None,
        row_rates: Tensor | None = None,
        subtract: tuple[Tensor, float | Tensor] | None = None,
        precision: Tensor | None = None,
    ) -> None:
        """Move the first ``len(gradient)`` rows of `parameter` in place.

        `gradient` is that of the likelihood alone. The product of `subtract`, a tensor
        and a factor, is subtracted from it, piece by piece, so that the difference
        never leaves the cache. `curvature` bounds the second derivative, and so the
        step by a Newton step: a tensor like `gradient`, or one number per row and one
        per column, to be multiplied. `row_rates` multiply the step size, one per row.
        `precision`, one number per column, is that of a Gaussian prior around zero: it
        adds to the gradient and to such a curvature.
        """
        self.n_steps += 1
        n_steps = int(self.n_steps)
        b1, b2 = self.betas
        size = (1 - b2**n_steps) ** 0.5
        slow = 1 / (rate * size)
        n_rows = pieces = len(gradient)
        if gradient.is_cpu:
            pieces = max(1, self.piece // max(1, gradient[0].numel()))
        for start in range(0, n_rows, pieces):
            rows = slice(start, min(start + pieces, n_rows))
            values, m1, m2 = parameter[rows], self.first[rows], self.second[rows]
            if subtract is None:
                slope = gradient[rows].clone()
            else:
                slope = gradient[rows] - subtract[0][rows] * subtract[1]
            if self.l2 > 0:
                slope.sub_(values, alpha=self.l2)
            if precision is not None:
                slope.addcmul_(values, precision, value=-1)
            m1.lerp_(slope, 1 - b1)
            m2.mul_(b2).addcmul_(slope, slope, value=1 - b2)
            # The step per unit of gradient, in the gradient's memory.
            unit = torch.sqrt(m2, out=slope).add_(1e-8 * size)
            unit.mul_(slow if row_rates is None else slow / row_rates[rows])
            if curvature is not None:
                if isinstance(curvature, Tensor):
                    unit.add_(curvature[rows])
                else:
                    per_row, per_column = curvature
                    unit.addr_(per_row[rows].reshape(-1), per_column.reshape(-1))
                if precision is not None:
                    unit.add_(precision)
            unit.reciprocal_()
            moved = values.addcmul(m1, unit, value=1 / (1 - b1**n_steps))
            if self.l1 > 0:
                unit.mul_(self.l1)
                moved.sub_(torch.clamp(moved, min=-unit, max=unit))
            values.copy_(moved)
