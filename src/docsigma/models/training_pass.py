"""The argument of a training callback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class TrainingPass:
    """One pass of a running training.

    Attributes
    ----------
    epoch : int
        Passes done, from 1.
    history : callable
        Returns one dictionary per pass, as ``history_`` of the fitted model.
    snapshot : callable
        Returns a fitted copy of the model so far.

    Examples
    --------
    >>> from docsigma import BayesianSMM, load_corpus
    >>> halfway = {}
    >>> def keep(now):
    ...     if now.epoch == 10:
    ...         halfway["model"] = now.snapshot()
    >>> counts = load_corpus("synthetic").train.counts
    >>> smm = BayesianSMM(3, max_iter=20, tol=0, random_state=0)
    >>> smm = smm.fit(counts, callback=keep)
    >>> halfway["model"].n_iter_, smm.n_iter_
    (10, 20)
    """

    epoch: int
    history: Callable[[], list[dict[str, Any]]]
    snapshot: Callable[[], Any]
