"""The progress bar of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tqdm.auto import tqdm

if TYPE_CHECKING:
    from docsigma.trainers import Trainer


class ProgressBar:
    """Bound, KL and documents a second beside tqdm's time left.

    Parameters
    ----------
    trainer : Trainer
        The training to follow.
    total : int
        Passes at the most.
    show : bool
        Whether anything is drawn.
    """

    def __init__(self, trainer: Trainer, total: int, show: bool) -> None:
        self._trainer = trainer
        self._bar: tqdm[Any] = tqdm(
            total=total, initial=trainer.epoch, disable=not show, unit="pass"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()

    def update(self) -> None:
        """Show the pass that has just ended."""
        epoch = self._trainer.history[-1]
        rate = self._bar.format_dict["rate"] or 0.0
        self._bar.set_postfix(
            {
                "bound": f"{epoch.bound:.5g}",
                "KL": f"{epoch.kl:.1f}",
                "doc/s": f"{rate * self._trainer.n_documents:.0f}",
            },
            refresh=False,
        )
        self._bar.update()
