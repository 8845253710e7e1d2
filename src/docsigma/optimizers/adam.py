"""Adam, in the two forms the paper needs: plain and orthant-wise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Adam", "OrthantAdam", "pseudo_gradient"]


class Adam:
    """Gradient ascent with Adam's moments (Kingma and Ba, 2015) on one tensor.

    Parameters
    ----------
    like : Tensor
        The tensor to move.
    learning_rate : float
        Step size.
    betas : tuple of two floats, default=(0.9, 0.999)
        Decay of the two moments.
    epsilon : float, default=1e-8
        Added to the root of the second moment.
    """

    def __init__(
        self,
        like: Tensor,
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ) -> None:
        self.learning_rate = learning_rate
        self.betas = betas
        self.epsilon = epsilon
        self.first = torch.zeros_like(like)
        self.second = torch.zeros_like(like)
        self.n_steps = 0

    def _accumulate(self, gradient: Tensor) -> None:
        beta1, beta2 = self.betas
        self.n_steps += 1
        self.first.mul_(beta1).add_(gradient, alpha=1 - beta1)
        self.second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)

    def _step(self) -> Tensor:
        beta1, beta2 = self.betas
        scale = (self.second / (1 - beta2**self.n_steps)).sqrt_().add_(self.epsilon)
        rate = self.learning_rate / (1 - beta1**self.n_steps)
        return (self.first / scale).mul_(rate)

    def ascend(self, parameter: Tensor, gradient: Tensor) -> None:
        """Move `parameter` in place one step up `gradient`."""
        self._accumulate(gradient)
        parameter.add_(self._step())

    def state(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold."""
        steps = torch.tensor(self.n_steps, dtype=torch.int64)
        return {"first": self.first, "second": self.second, "n_steps": steps}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore the state that :meth:`state` returned."""
        self.first.copy_(state["first"])
        self.second.copy_(state["second"])
        self.n_steps = int(state["n_steps"])


def pseudo_gradient(parameter: Tensor, gradient: Tensor, l1: float) -> Tensor:
    r"""Gradient of ``smooth - l1 * |parameter|``; at zero, the one of least size.

    Off zero it is :math:`\nabla - \omega\,\mathrm{sign}(t)`; at zero it is
    :math:`\nabla` shrunk by :math:`\omega`, so nothing inside the dead zone
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
    paper: Adam's momentum would carry a coordinate out of zero again although its
    pseudo-gradient is nothing. Here a coordinate at zero loses its momentum, keeps
    its second moment, and moves only when the pseudo-gradient leaves the dead zone,
    and only to that side.

    Parameters
    ----------
    like : Tensor
        The tensor to move.
    learning_rate : float
        Step size.
    l1 : float
        :math:`\omega`, the weight of the absolute values.
    """

    def __init__(self, like: Tensor, learning_rate: float, l1: float) -> None:
        super().__init__(like, learning_rate)
        self.l1 = l1

    def ascend(self, parameter: Tensor, gradient: Tensor) -> None:
        """Move `parameter` in place one step up ``gradient``, less the penalty's."""
        gradient = pseudo_gradient(parameter, gradient, self.l1)
        # At zero the side to move to is the pseudo-gradient's; elsewhere one's own.
        # In the dead zone there is no side, and the second moment waits.
        side = torch.where(parameter == 0, gradient, parameter).sign_()
        waiting = torch.where(side == 0, self.second, 0.0)
        self._accumulate(gradient)
        self.second.copy_(torch.where(side == 0, waiting, self.second))
        parameter.add_(self._step())
        kept = (side * parameter > 0).to(parameter.dtype)
        parameter.mul_(kept)
        self.first.mul_(kept)
