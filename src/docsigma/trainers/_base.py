"""What trainers share: the loop, the stop rule, the history and the checkpoint."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from docsigma.estep.integrate import integrate_documents
from docsigma.objective import corpus_bound
from docsigma.parts import Parts, under
from docsigma.priors import CovariatePrior
from docsigma.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from docsigma.covariances import Gaussians
    from docsigma.kernels import CountTensor
    from docsigma.optimizers import Optimizer
    from docsigma.priors import PriorTensors


class Documents(NamedTuple):
    """Some documents: their counts, their posteriors and their prior."""

    counts: CountTensor
    q: Gaussians
    prior: PriorTensors


class PassSums(NamedTuple):
    """Sums over the documents of a pass, and the penalty of the loadings."""

    bound: float
    kl: float
    penalty: float


class Epoch(NamedTuple):
    """One pass over the corpus."""

    epoch: int  # passes done, from 1
    bound: float  # the complete objective: sum of the documents' bounds, less penalties
    kl: float  # mean Kullback-Leibler divergence to the prior per document
    sparsity: float  # fraction of the loadings that are exactly zero after the pass
    seconds: float  # since training began, including the time before a resume


@dataclass(frozen=True)
class StopRule:
    """Stop when the bound, averaged over windows of passes, no longer grows.

    Attributes
    ----------
    window : int
        Passes in a window; training does not end before the second is complete.
    kl_growth : float or None
        Training continues while the KL of a window grows by more than this fraction:
        at a saddle, T near zero, the bound stagnates before it climbs.
    """

    window: int
    kl_growth: float | None = None

    def met(self, history: list[Epoch], tol: float) -> bool:
        """Whether the bound grows by less than `tol` of itself per pass."""
        if tol <= 0 or len(history) < 2 * self.window:
            return False
        latest = history[-self.window :]
        before = history[-2 * self.window : -self.window]
        bound = sum(epoch.bound for epoch in latest) / self.window
        growth = bound - sum(epoch.bound for epoch in before) / self.window
        if self.kl_growth is not None:
            kl = sum(epoch.kl for epoch in latest)
            if kl - sum(epoch.kl for epoch in before) > self.kl_growth * kl:
                return False
        return growth <= tol * abs(bound) * self.window


class Trainer(ABC):
    """The state of a training; a subclass defines one pass. `seed` seeds all draws."""

    # Planned passes; None means that only the caller limits them.
    n_passes: int | None = None
    # What they have learned goes into checkpoints too.
    parts: Parts | None = None
    # The processes that train together.
    ranks = Ranks()

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
        """Return the columns of the words and m, in the order of the counts."""

    @abstractmethod
    def one_pass(self) -> PassSums:
        """Pass over the corpus once."""

    @abstractmethod
    def stop_rule(self) -> StopRule | None:
        """Return the current rule; None while training must continue."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that training moves in place, if it can be resumed."""
        return {}

    def document_tensors(self) -> dict[str, Tensor]:
        """Return the tensors with a row per document, if processes share documents."""
        return {}

    def documents_of(self, ranks: Ranks) -> NDArray[np.intp]:
        """Return the documents of a process, in the order of its rows."""
        raise NotImplementedError

    def optimizers(self) -> Mapping[str, Optimizer]:
        """Return the optimizers by name, if training can be resumed."""
        return {}

    def begin(self) -> None:  # noqa: B027
        """Prepare the first pass."""

    def run(
        self,
        max_iter: int,
        tol: float,
        callback: Callable[[Trainer], object] | None = None,
    ) -> bool:
        """Train until the bound converges or `max_iter`; return whether it converged.

        `callback` is called after each pass; a true result ends the training.
        """
        started = time.perf_counter() - self._seconds_before
        self.begin()
        most = max_iter if self.n_passes is None else min(max_iter, self.n_passes)
        while self.epoch < most:
            if self._converged(tol):
                return True
            sums = self.one_pass()
            columns, _ = self.moved()
            self.history.append(
                Epoch(
                    self.epoch + 1,
                    corpus_bound(sums.bound, sums.penalty),
                    sums.kl / self.n_documents,
                    float((columns == 0).double().mean()),
                    time.perf_counter() - started,
                )
            )
            if callback is not None and callback(self):
                return False
        return self._converged(tol)

    def documents_now(self) -> Iterable[Documents]:
        """Yield this process's documents with all words; at least one block."""
        raise NotImplementedError

    def words_now(self) -> tuple[Tensor, Tensor]:
        """Return T and m, in the order of the counts of :meth:`documents_now`."""
        raise NotImplementedError

    def integrate_documents(self) -> None:
        """Learn the prior's weights with every document integrated out, if it has any.

        Called once, after the last pass.
        """
        assert self.parts is not None
        if isinstance(self.parts.prior, CovariatePrior):
            integrate_documents(
                self.parts.prior,
                self.parts.model(*self.words_now()),
                self.parts.covariance,
                self.documents_now(),
                self.ranks,
            )

    def moved(self) -> tuple[Tensor, Tensor]:
        """Return the loadings whose zeros are counted, and m; by default all."""
        return self.fitted()

    def _converged(self, tol: float) -> bool:
        rule = self.stop_rule()
        return rule is not None and rule.met(self.history, tol)

    def state(self) -> dict[str, Tensor]:
        """Return all tensors that a checkpoint needs to continue bit for bit."""
        learned = {} if self.parts is None else self.parts.arrays()
        return (
            self.tensors()
            | self.document_tensors()
            | {
                f"{name}.{part}": value
                for name, optimizer in self.optimizers().items()
                for part, value in optimizer.state().items()
            }
            | {f"parts.{name}": torch.tensor(array) for name, array in learned.items()}
        )

    def restore(self, state: dict[str, Tensor], history: list[dict[str, Any]]) -> None:
        """Restore the state that :meth:`state` returned, and its history."""
        for name, tensor in (self.tensors() | self.document_tensors()).items():
            tensor.copy_(state[name])
        for name, optimizer in self.optimizers().items():
            parts = optimizer.state()
            optimizer.restore({part: state[f"{name}.{part}"] for part in parts})
        if self.parts is not None:
            learned = under("parts.", state)
            self.parts.set_arrays({k: v.cpu().numpy() for k, v in learned.items()})
        self.history = [Epoch(**row) for row in history]
        self._seconds_before = self.history[-1].seconds if self.history else 0.0

    def rows(self) -> list[dict[str, Any]]:
        """Return the history as plain dictionaries."""
        return [epoch._asdict() for epoch in self.history]


def learn_parts(
    parts: Parts,
    columns: Tensor,
    bias: Tensor,
    documents: Iterable[Documents],
    *,
    unseen: bool = False,
    ranks: Ranks = Trainer.ranks,
) -> bool:
    """Update the parts that learn, and return whether there are any.

    With `unseen`, those that learn from documents that the words are not trained on.
    Sums are over the documents of all `ranks`.
    """
    learning = [
        (role, part)
        for role, part in parts.items()
        if (part.learns_from_unseen() if unseen else part.learns)
    ]
    if not learning:
        return False
    totals: dict[str, dict[str, Tensor]] = {role: {} for role, _ in learning}
    model = parts.model(columns, bias)
    for counts, q, prior in documents:
        given = replace(model, prior=prior)
        for role, part in learning:
            for name, value in part.sums(counts, q, given).items():
                total = totals[role]
                total[name] = total[name] + value if name in total else value
    for role, part in learning:
        total = totals[role]
        part.update({name: ranks.sum(total[name]) for name in sorted(total)})
    return True
