"""What every training has: passes, their history, and a state to go on from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

__all__ = ["Epoch", "Optimizer", "Trainer"]


@dataclass(frozen=True)
class Epoch:
    """One pass over the corpus.

    Attributes
    ----------
    epoch : int
        Passes done, from 1.
    bound : float
        The complete objective: sum of the documents' bounds, less the penalty.
    kl : float
        Mean Kullback-Leibler divergence to the prior, a document.
    sparsity : float
        Part of the loadings that is exactly zero after the pass.
    seconds : float
        Time since training began, earlier parts of a resumed run included.
    """

    epoch: int
    bound: float
    kl: float
    sparsity: float
    seconds: float


class Optimizer(Protocol):
    """What a checkpoint asks of an optimizer."""

    def state(self) -> dict[str, Tensor]:
        """Give what a checkpoint must hold."""

    def restore(self, state: dict[str, Tensor]) -> None:
        """Take up the state that :meth:`state` gave."""


class Trainer(ABC):
    """A training under way.

    Parameters
    ----------
    seed : int
        Decides all draws.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.history: list[Epoch] = []
        self._seconds_before = 0.0

    @property
    def epoch(self) -> int:
        """Passes done."""
        return len(self.history)

    @property
    @abstractmethod
    def n_documents(self) -> int:
        """Documents of the corpus."""

    @abstractmethod
    def fitted(self) -> tuple[Tensor, Tensor]:
        """Give T and m, words in the order of the counts that came in."""

    @abstractmethod
    def run(
        self,
        max_iter: int,
        tol: float,
        callback: Callable[[Trainer], object] | None = None,
    ) -> bool:
        """Pass over the corpus; say whether the bound converged."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Give every tensor a checkpoint must hold to go on bit for bit."""

    @abstractmethod
    def restore(self, state: dict[str, Tensor], history: list[dict[str, Any]]) -> None:
        """Take up the state that :meth:`state` gave, and its history."""

    def rows(self) -> list[dict[str, Any]]:
        """Give the history as plain dictionaries."""
        return [asdict(epoch) for epoch in self.history]

    def _restore_history(self, history: list[dict[str, Any]]) -> None:
        names = [field.name for field in fields(Epoch)]
        self.history = [Epoch(**{n: row[n] for n in names}) for row in history]
        self._seconds_before = self.history[-1].seconds if self.history else 0.0


def optimizer_state(optimizers: Mapping[str, Optimizer]) -> dict[str, Tensor]:
    """Give the state of named optimizers under their names."""
    return {
        f"{name}.{part}": value
        for name, optimizer in optimizers.items()
        for part, value in optimizer.state().items()
    }


def restore_optimizers(
    optimizers: Mapping[str, Optimizer], state: dict[str, Tensor]
) -> None:
    """Take up what :func:`optimizer_state` gave."""
    for name, optimizer in optimizers.items():
        parts = optimizer.state()
        optimizer.restore({part: state[f"{name}.{part}"] for part in parts})
