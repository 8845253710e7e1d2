"""Point estimates of the word loadings T and of the log uni-gram m."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsigma.inference.adam import Adam, OrthantAdam

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["PointLoadings"]


class PointLoadings:
    r"""T as one value a word and dimension, under an l1 or l2 penalty.

    Parameters
    ----------
    loadings : Tensor of shape (V, K)
        Where :math:`T` starts; moved in place.
    bias : Tensor of shape (V,)
        Where :math:`m` starts; moved in place if `learn_bias`.
    learning_rate : float
        Adam's step size.
    l1, l2 : float
        Weights :math:`\omega` of :math:`\sum|t|` and of :math:`\tfrac12\sum t^2`.
    learn_bias : bool
        Whether :math:`m` moves.
    """

    def __init__(
        self,
        loadings: Tensor,
        bias: Tensor,
        *,
        learning_rate: float,
        l1: float,
        l2: float,
        learn_bias: bool,
    ) -> None:
        self.loadings = loadings
        self.bias = bias
        self.l1 = l1
        self.l2 = l2
        self._loadings_optimizer = (
            OrthantAdam(loadings, learning_rate, l1)
            if l1 > 0
            else Adam(loadings, learning_rate)
        )
        self._bias_optimizer = Adam(bias, learning_rate) if learn_bias else None

    def penalty(self) -> float:
        """Give what the penalties take from the bound, once a pass."""
        total = 0.0
        if self.l1 > 0:
            total += self.l1 * float(self.loadings.abs().sum(dim=0).double().sum())
        if self.l2 > 0:
            squares = self.loadings.square().sum(dim=0).double().sum()
            total += 0.5 * self.l2 * float(squares)
        return total

    def sparsity(self) -> float:
        """Give the part of the loadings that is exactly zero."""
        return float((self.loadings == 0).double().mean())

    def ascend(self, loading_gradient: Tensor, bias_gradient: Tensor) -> None:
        """Take one step up the gradients of the likelihood, less the penalties'."""
        if self.l2 > 0:
            loading_gradient = loading_gradient - self.l2 * self.loadings
        self._loadings_optimizer.ascend(self.loadings, loading_gradient)
        if self._bias_optimizer is not None:
            self._bias_optimizer.ascend(self.bias, bias_gradient)

    def state(self) -> dict[str, Tensor]:
        """Give what a checkpoint must hold."""
        state = {"loadings": self.loadings, "bias": self.bias}
        for name, value in self._loadings_optimizer.state().items():
            state[f"loadings.{name}"] = value
        if self._bias_optimizer is not None:
            for name, value in self._bias_optimizer.state().items():
                state[f"bias.{name}"] = value
        return state

    def restore(self, state: dict[str, Tensor]) -> None:
        """Take up the state that :meth:`state` gave."""
        self.loadings.copy_(state["loadings"])
        self.bias.copy_(state["bias"])
        parts = ("first", "second", "n_steps")
        self._loadings_optimizer.restore({p: state[f"loadings.{p}"] for p in parts})
        if self._bias_optimizer is not None:
            self._bias_optimizer.restore({p: state[f"bias.{p}"] for p in parts})
