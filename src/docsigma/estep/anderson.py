"""Anderson acceleration of a fixed-point iteration."""

from __future__ import annotations

import torch
from torch import Tensor


class Anderson:
    r"""Extrapolation of a fixed-point iteration, row by row (Anderson, 1965).

    From the last points :math:`z_i` and their steps :math:`r_i` it computes the
    combination of differences that best explains the latest step,

    .. math::
        \gamma = \arg\min \|r_k - \Delta R\,\gamma\|, \qquad
        z_{k+1} = z_k + r_k - (\Delta Z + \Delta R)\,\gamma,

    which for a linear iteration is GMRES: in a few dimensions it ends in as many steps.
    Rows are independent; each remembers its latest accepted point and `depth` before.
    """

    def __init__(self, depth: int = 8) -> None:
        self.depth = depth
        # Points, their steps, and which entries are set: (n, depth + 1, ...).
        self._memory: tuple[Tensor, Tensor, Tensor] | None = None

    def extrapolate(self, point: Tensor, step: Tensor, accepted: Tensor) -> Tensor:
        """Return the step that replaces `step`, from the `accepted` (n,) points.

        All arrays have one row per document.
        """
        if self._memory is None:
            nothing = point.new_zeros(len(point), self.depth + 1, point.shape[1])
            self._memory = nothing, nothing, nothing[:, :, 0] > 0
        points, steps, known = self._memory
        column = accepted[:, None]
        points = self._push(points, point, column[:, :, None])
        steps = self._push(steps, step, column[:, :, None])
        known = self._push(known, accepted, column)
        self._memory = points, steps, known
        pairs = (known[:, 1:] & known[:, :-1])[:, :, None]
        moved = (points.diff(dim=1) * pairs).double()
        changed = (steps.diff(dim=1) * pairs).double()
        numbers = torch.finfo(torch.float64)
        # Old differences may be far longer than new ones: only directions count.
        size = changed.norm(dim=2, keepdim=True).clamp(min=numbers.tiny)
        moved, changed = moved / size, changed / size
        unit = torch.eye(self.depth, dtype=moved.dtype, device=moved.device)
        gram = changed @ changed.mT + numbers.eps**0.5 * unit
        gamma = torch.linalg.solve(gram, changed @ step.double()[:, :, None])
        correction = ((moved + changed).mT @ gamma)[:, :, 0]
        extrapolated: Tensor = step - correction.to(step)
        return extrapolated

    @staticmethod
    def _push(buffer: Tensor, row: Tensor, where: Tensor) -> Tensor:
        return torch.where(where, torch.cat([buffer[:, 1:], row[:, None]], 1), buffer)

    def __getitem__(self, rows: Tensor) -> Anderson:
        some = Anderson(self.depth)
        if self._memory is not None:
            points, steps, known = self._memory
            some._memory = points[rows], steps[rows], known[rows]
        return some
