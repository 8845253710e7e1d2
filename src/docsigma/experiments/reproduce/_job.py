"""What a topic ID system is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docsigma.experiments.reproduce._setting import Setting
    from docsigma.experiments.topic_id import Task

__all__ = ["Job", "Scores"]

Scores = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Job:
    """One run of a system.

    Attributes
    ----------
    setting : Setting
        Device, and whether the small version is wanted.
    task : Task
        Counts, labels and texts.
    corpus : str
        The name of the task's corpus.
    seed : int
        Of the run.
    parameters : dict
        What the system's own function gave for setting and corpus.
    """

    setting: Setting
    task: Task
    corpus: str
    seed: int
    parameters: dict[str, Any]
