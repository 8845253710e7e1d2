"""Adam with a learning rate for each group and the slanted triangle over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from docsigma_paper.classifiers.ulmfit.schedules import slanted_triangle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

__all__ = ["SlantedAdam"]

_BETAS = (0.7, 0.99)
_LARGEST_NORM = 0.25


class SlantedAdam:
    """Adam as Howard and Ruder set it, gradients clipped.

    Parameters
    ----------
    groups : list of lists of parameters
        What learns.
    rates : list of float
        Highest learning rate of each group.
    n_steps : int
        Steps that the triangle spans.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[nn.Parameter]],
        rates: Sequence[float],
        n_steps: int,
    ) -> None:
        self.rates = list(rates)
        self.n_steps = n_steps
        self.n_done = 0
        self._parameters = [parameter for group in groups for parameter in group]
        self.adam = torch.optim.Adam(
            [
                {"params": list(group), "lr": rate}
                for group, rate in zip(groups, self.rates, strict=True)
            ],
            betas=_BETAS,
            fused=self._parameters[0].is_cuda,
        )

    def backward(self, loss: Tensor) -> None:
        """Compute the gradients of `loss`, and of nothing else."""
        self.adam.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)

    def step(self) -> None:
        """Clip the gradients and move."""
        torch.nn.utils.clip_grad_norm_(self._parameters, _LARGEST_NORM)
        part = slanted_triangle(self.n_done, self.n_steps)
        for group, rate in zip(self.adam.param_groups, self.rates, strict=True):
            group["lr"] = rate * part
        self.adam.step()
        self.n_done += 1
