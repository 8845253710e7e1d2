"""The contract of a treatment of the word loadings."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from docsigma._base import Part
from docsigma.optimizers import Optimizer

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from docsigma.optimizers import ProximalAdam


class WordInformation(NamedTuple):
    r"""Sums over all documents that determine the variances of the words.

    Attributes
    ----------
    curvature : Tensor of shape (V, K)
        :math:`\sum_d x_d^\top E[w_d^2]`: the expected curvature of the documents'
        bounds in T.
    totals : Tensor of shape (V, 1)
        Tokens of each word.
    """

    curvature: Tensor
    totals: Tensor


@dataclass(frozen=True)
class WordGradient:
    r"""Sums over documents that determine a step of the words, and its limits.

    The gradient of the documents' bounds in T is ``linear - scale * softmax``.

    Attributes
    ----------
    linear : Tensor of shape (V, K)
        :math:`\sum_d c_d^\top E[w_d]`, with effective counts c, over all documents.
    softmax : Tensor of shape (V, K) or None
        :math:`\sum_d n_d\,\theta_d\,w_d`, over a batch; None if `linear` is already
        the difference.
    scale : float or Tensor
        Tokens of the corpus over those of the batch.
    rate : float
        Step size of this step.
    curvature : tuple of Tensors of shapes (V, 1) and (K,), or None
        Their product bounds the second derivative: no step is longer than Newton's.
    word_rates : Tensor of shape (V, 1) or None
        Factors on the step size, larger for rare words: their gradients are less noisy.
    information : WordInformation or None
        For loadings with variances.
    """

    linear: Tensor
    softmax: Tensor | None
    scale: float | Tensor = 1.0
    rate: float = 0.0
    curvature: tuple[Tensor, Tensor] | None = None
    word_rates: Tensor | None = None
    information: WordInformation | None = None

    def slope(self) -> Tensor:
        """Return the gradient of the documents' bounds in T."""
        if self.softmax is None:
            return self.linear
        return self.linear - self.scale * self.softmax

    def proximal_step(
        self, optimizer: ProximalAdam, loadings: Tensor, **more: Any
    ) -> None:
        """Move the loadings in place by proximal Adam; `more` are its arguments."""
        optimizer.ascend(
            loadings,
            self.linear,
            self.rate,
            row_rates=self.word_rates,
            subtract=None if self.softmax is None else (self.softmax, self.scale),
            **{"curvature": self.curvature, **more},
        )


class WordAscent(Optimizer, Protocol):
    """Moves the loadings, and holds the state of its optimiser."""

    def ascend(self, loadings: Tensor, gradient: WordGradient) -> None:
        """Move the first rows of `loadings` in place, as many as the gradient has."""


class Loadings(Part):
    """The posterior of T, its penalty, and how it moves.

    Trainers move one value per word and dimension, with which documents are inferred.
    A kind may have variances too (`has_variance`).
    """

    # Whether there are variances; trainers must then pass `information`.
    has_variance: ClassVar[bool] = False

    def columns(self, loadings: Tensor) -> Tensor:
        """Return T, or means and variances, as a fitted model holds them."""
        return loadings

    def n_effective(
        self,
        components: NDArray[Any],
        log_unigram: NDArray[Any],  # noqa: ARG002
    ) -> int:
        """Return the number of rows of `components` that are in use."""
        return int((components != 0).any(axis=1).sum())

    def turn(self, squares: NDArray[Any]) -> None:
        """Change to other axes, the columns of a matrix (K, K) with these squares."""

    def second_moment(self, like: Tensor) -> Tensor:
        """Return :math:`E[w^2]` over the training tokens, of shape (K,)."""
        raise NotImplementedError

    def use_rank(self, rank: NDArray[Any]) -> None:
        """Note where each word of the counts is in training, which sorts them."""

    def seeded(self, start: Tensor) -> Tensor:
        """Return directions of words (A, K) to start from, given those found."""
        return start

    @abstractmethod
    def shrink(self) -> float:
        """Return the size of the gradient at which a loading leaves zero."""

    def ridge(self, n_components: int) -> float:  # noqa: ARG002
        """Return the precision of the prior under which the loadings start."""
        return 0.0

    @abstractmethod
    def penalty(self, loadings: Tensor) -> float:
        """Return the penalty on the loadings, which counts once per pass."""

    @abstractmethod
    def minibatch_ascent(self, loadings: Tensor) -> WordAscent:
        """Return an optimiser for the noisy gradients of batches."""

    @abstractmethod
    def full_ascent(self, loadings: Tensor, learning_rate: float) -> WordAscent:
        """Return an optimiser for gradients of the whole corpus."""
