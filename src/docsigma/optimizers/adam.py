"""Adam in the two forms of the paper: plain and orthant-wise."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.optim.adam import adam


class Optimizer(Protocol):
    """The state of an optimizer, for checkpoints."""

    def state(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold."""

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore the state that :meth:`state` returned."""


class Moments:
    """Adam's moments of a tensor's gradients."""

    def __init__(self, like: Tensor) -> None:
        self.first = like.new_zeros(like.shape)
        self.second = like.new_zeros(like.shape)
        self.n_steps = torch.zeros(())

    def state(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold."""
        return {"first": self.first, "second": self.second, "n_steps": self.n_steps}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore the state that :meth:`state` returned."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


class Adam(Moments):
    """Gradient ascent on one tensor `like`, by the steps of torch's Adam."""

    def __init__(self, like: Tensor, learning_rate: float) -> None:
        super().__init__(like)
        self.learning_rate = learning_rate

    def ascend(self, parameter: Tensor, gradient: Tensor) -> None:
        """Move `parameter` in place one step up `gradient`."""
        adam(
            [parameter],
            [gradient],
            [self.first],
            [self.second],
            [],
            [self.n_steps],
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=True,
        )


def pseudo_gradient(parameter: Tensor, gradient: Tensor, l1: float) -> Tensor:
    r"""Return the gradient of ``smooth - l1 * |parameter|``; at zero, the smallest one.

    Off zero it is :math:`\nabla - \omega\,\mathrm{sign}(t)`; at zero it is
    :math:`\nabla` shrunk by :math:`\omega`, so zero inside the dead zone
    :math:`|\nabla| \le \omega` (Andrew and Gao, 2007; the paper's sub-gradient).

    Examples
    --------
    >>> at = torch.tensor([1.0, 0.0, 0.0])
    >>> pseudo_gradient(at, torch.tensor([0.5, 0.5, -3.0]), l1=1.0).tolist()
    [-0.5, 0.0, -2.0]
    """
    at_zero = torch.nn.functional.softshrink(gradient, l1)
    return torch.where(parameter == 0, at_zero, gradient - l1 * parameter.sign())


class OrthantAdam(Adam):
    r"""Adam on an l1-penalised objective, with exact zeros that stay.

    Each step follows the pseudo-gradient, and a coordinate that would change sign
    stops at zero (the paper's orthant projection). One thing differs from the
    paper, where Adam's momentum can move a coordinate away from zero although its
    pseudo-gradient is zero: here a coordinate at zero loses its momentum, keeps
    its second moment, and moves only when the pseudo-gradient leaves the dead zone,
    and only to that side. `l1` is the weight :math:`\omega` of the absolute values.
    """

    def __init__(self, like: Tensor, learning_rate: float, l1: float) -> None:
        super().__init__(like, learning_rate)
        self.l1 = l1

    def ascend(self, parameter: Tensor, gradient: Tensor) -> None:
        """Move `parameter` in place up `gradient`, less that of the penalty."""
        gradient = pseudo_gradient(parameter, gradient, self.l1)
        # The sign of the coordinate or, at zero, of the pseudo-gradient. In the dead
        # zone it is zero, and the second moment stays.
        side = torch.where(parameter == 0, gradient, parameter).sign_()
        before = self.second.clone()
        super().ascend(parameter, gradient)
        self.second.copy_(torch.where(side == 0, before, self.second))
        kept = (side * parameter > 0).to(parameter.dtype)
        parameter.mul_(kept)
        self.first.mul_(kept)
