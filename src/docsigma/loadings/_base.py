"""The contract of a treatment of the word loadings."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from docsigma._part import Part

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class WordGradient:
    r"""Sums over documents from which the words move, and how far they may.

    The gradient of the documents' bounds in T is ``linear - scale * softmax``.

    Attributes
    ----------
    linear : Tensor of shape (V, K)
        :math:`\sum_d c_d^\top E[w_d]`, with effective counts c, over all documents.
    softmax : Tensor of shape (V, K) or (V, 2 K)
        :math:`\sum_d n_d\,\theta_d\,[w_d, \tfrac12 w_d^2]`, over a batch; one column
        per column of the loadings.
    scale : float or Tensor
        Tokens of the corpus over those of the batch.
    rate : float
        Step size of this step.
    curvature : tuple of Tensors of shapes (V, 1) and (K,), or None
        Their product bounds the second derivative: no step is longer than Newton's.
    word_rates : Tensor of shape (V, 1) or None
        Factors on the step size: rare words, whose gradients are less noisy, go faster.
    """

    linear: Tensor
    softmax: Tensor
    scale: float | Tensor = 1.0
    rate: float = 0.0
    curvature: tuple[Tensor, Tensor] | None = None
    word_rates: Tensor | None = None


class WordAscent(Protocol):
    """Moves the loadings, and remembers what its optimiser needs."""

    def ascend(self, columns: Tensor, gradient: WordGradient) -> None:
        """Move the first rows of `columns` in place, as many as the gradient has."""

    def state(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold."""

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore the state that :meth:`state` returned."""


class Loadings(Part):
    r"""What is known of T, how it is penalised and how it moves.

    The primitive sees ``columns``: T itself or, for a kind with a spread
    (`quadratic`), means and variances :math:`[M, S^2]`, which multiply
    :math:`[w, \tfrac12 w^2]`. The first K columns are always the means.
    """

    quadratic: ClassVar[bool] = False

    @abstractmethod
    def columns(self, start: Tensor) -> Tensor:
        """Return the columns of words whose loadings start at `start` (V, K)."""

    @abstractmethod
    def shrink(self) -> float:
        """Return by how much a gradient must exceed zero before a loading leaves it."""

    @abstractmethod
    def penalty(self, columns: Tensor) -> float:
        """Return what the loadings take from the bound, once per pass."""

    @abstractmethod
    def minibatch_ascent(self, columns: Tensor) -> WordAscent:
        """Return what moves the columns by noisy gradients of batches."""

    @abstractmethod
    def full_ascent(self, columns: Tensor, learning_rate: float) -> WordAscent:
        """Return what moves the columns by gradients of the whole corpus."""
