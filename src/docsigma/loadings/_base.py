"""The contract of a treatment of the word loadings."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from docsigma._base import Part
from docsigma.kernels import SoftmaxWords, softmax_moments
from docsigma.optimizers import Optimizer

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from docsigma.kernels import SoftmaxMoments, Workspace
    from docsigma.optimizers import ProximalAdam


class WordInformation(NamedTuple):
    r"""What all documents say about the words, in sums over them.

    Attributes
    ----------
    curvature : Tensor of shape (V, K)
        :math:`\sum_d x_d^\top E[w_d^2]`: in expectation the curvature of the documents'
        bounds in T.
    totals : Tensor of shape (V, 1)
        Tokens of each word.
    whole : bool
        Whether counts are whole numbers, not weighted ones.
    """

    curvature: Tensor
    totals: Tensor
    whole: bool = True


def are_whole(totals: Tensor) -> bool:
    """Return whether counts with these sums are whole numbers."""
    return bool((totals == totals.round()).all())


@dataclass(frozen=True)
class WordGradient:
    r"""Sums over documents from which the words move, and how far they may.

    The gradient of the documents' bounds in T is ``linear - scale * softmax``.

    Attributes
    ----------
    linear : Tensor of shape (V, K)
        :math:`\sum_d c_d^\top E[w_d]`, with effective counts c, over all documents.
    softmax : Tensor of shape (V, K) or None
        :math:`\sum_d n_d\,\theta_d\,w_d`, over a batch; None where `linear` is the
        difference already.
    scale : float or Tensor
        Tokens of the corpus over those of the batch.
    rate : float
        Step size of this step.
    curvature : tuple of Tensors of shapes (V, 1) and (K,), or None
        Their product bounds the second derivative: no step is longer than Newton's.
    word_rates : Tensor of shape (V, 1) or None
        Factors on the step size: rare words, whose gradients are less noisy, go faster.
    information : WordInformation or None
        For loadings with a spread.
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
        """Move the loadings in place by proximal Adam, with `more` that it takes."""
        optimizer.ascend(
            loadings,
            self.linear,
            self.rate,
            row_rates=self.word_rates,
            subtract=None if self.softmax is None else (self.softmax, self.scale),
            **{"curvature": self.curvature, **more},
        )


class WordAscent(Optimizer, Protocol):
    """Moves the loadings, and remembers what its optimiser needs."""

    def ascend(self, loadings: Tensor, gradient: WordGradient) -> None:
        """Move the first rows of `loadings` in place, as many as the gradient has."""


class Loadings(Part):
    r"""What is known of T, how it is penalised and how it moves.

    Trainers move one value per word and dimension, and documents see that. A kind may
    know variances besides (`has_variance`).
    """

    # Whether there are variances; trainers then must give `information`.
    has_variance: ClassVar[bool] = False

    def columns(self, loadings: Tensor) -> Tensor:
        """Return what a fitted model has per word: T, or means and variances."""
        return loadings

    def n_effective(
        self,
        components: NDArray[Any],
        log_unigram: NDArray[Any],  # noqa: ARG002
    ) -> int:
        """Count the dimensions (rows of `components`) that are in use."""
        return int((components != 0).any(axis=1).sum())

    def turn(self, squares: NDArray[Any]) -> None:
        """Follow loadings to other axes, given by their squares (K, K) as columns."""

    def second_moment(self, like: Tensor) -> Tensor:
        """Return :math:`E[w^2]` over the training tokens, of shape (K,)."""
        raise NotImplementedError

    def moments(
        self,
        points: Tensor,
        rows: Tensor,
        *,
        whole: bool,  # noqa: ARG002
        second: bool,
        weights: Tensor,
        workspace: Workspace,
    ) -> SoftmaxMoments:
        """Return moments of words ``[T, m, 1]`` at draws, in training by batches.

        `whole` says whether counts are whole numbers.
        """
        words = SoftmaxWords.of_table(rows)
        return softmax_moments(
            points,
            words,
            first=True,
            second=second,
            weights=weights,
            workspace=workspace,
        )

    @abstractmethod
    def shrink(self) -> float:
        """Return by how much a gradient must exceed zero before a loading leaves it."""

    def ridge(self, n_components: int) -> float:  # noqa: ARG002
        """Return the precision of the prior under which the loadings start."""
        return 0.0

    @abstractmethod
    def penalty(self, loadings: Tensor) -> float:
        """Return what the loadings take from the bound, once per pass."""

    @abstractmethod
    def minibatch_ascent(self, loadings: Tensor) -> WordAscent:
        """Return what moves the loadings by noisy gradients of batches."""

    @abstractmethod
    def full_ascent(self, loadings: Tensor, learning_rate: float) -> WordAscent:
        """Return what moves the loadings by gradients of the whole corpus."""
