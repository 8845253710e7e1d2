"""What each epoch of a training gave, kept and shown."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Self

from tqdm import tqdm

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


class TrainingLog:
    """Rows of a training's history, and the bar that shows them.

    Parameters
    ----------
    n_epochs : int
        Epochs of all phases.
    show : bool
        Whether a bar is drawn.

    Attributes
    ----------
    rows : list of dict
        ``phase``, ``epoch``, ``loss`` and ``seconds`` of each epoch.

    Examples
    --------
    >>> with TrainingLog(2, show=False) as log:
    ...     report = log.phase("classifier", "rate")
    ...     report(0.7)
    ...     report(0.6)
    >>> [(row["phase"], row["epoch"], row["loss"]) for row in log.rows]
    [('classifier', 1, 0.7), ('classifier', 2, 0.6)]
    """

    def __init__(self, n_epochs: int, *, show: bool) -> None:
        self.rows: list[dict[str, Any]] = []
        self._bar: tqdm[Any] = tqdm(total=n_epochs, disable=not show, unit="epoch")
        self._since = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()

    def phase(self, name: str, rate: str) -> Callable[[float], None]:
        """Begin a phase; return a function to call with the loss of each epoch.

        Parameters
        ----------
        name : str
            Of the phase.
        rate : str
            The parameter to lower if the loss is not finite.
        """
        self._since = time.perf_counter()
        epoch = 0

        def report(loss: float) -> None:
            nonlocal epoch
            epoch += 1
            if not math.isfinite(loss):
                raise InputError(
                    f"the loss of the {name} is {loss} after epoch {epoch}: "
                    f"lower `{rate}`"
                )
            now = time.perf_counter()
            seconds, self._since = now - self._since, now
            self.rows.append(
                {"phase": name, "epoch": epoch, "loss": loss, "seconds": seconds}
            )
            self._bar.set_postfix({name: f"{loss:.3f}"}, refresh=False)
            self._bar.update()

        return report
