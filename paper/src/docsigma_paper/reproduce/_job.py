"""What a topic ID system is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docsigma_paper.reproduce._setting import Setting
    from docsigma_paper.topic_id import Task

__all__ = ["Job", "Scores", "TaskName"]

Scores = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class TaskName:
    """Which documents are classified.

    Attributes
    ----------
    corpus : str
        Name of the corpus.
    words : tuple of two ints or None
        First and last word of a window; None for whole documents.
    """

    corpus: str
    words: tuple[int, int] | None = None

    @property
    def key(self) -> dict[str, Any]:
        """As a row's key holds it."""
        words = {} if self.words is None else {"words": list(self.words)}
        return {"corpus": self.corpus, **words}

    @property
    def options(self) -> dict[str, Any]:
        """As the corpus is loaded with it."""
        return {} if self.words is None else {"words": self.words}

    @classmethod
    def of(cls, key: dict[str, Any]) -> TaskName:
        """Find it in a row's key."""
        words = key.get("words")
        return cls(key["corpus"], None if words is None else (words[0], words[1]))

    @property
    def kind(self) -> str:
        """What parameters are chosen for: 20 Newsgroups, sides of calls or windows."""
        if self.corpus == "20newsgroups":
            return self.corpus
        return "sides" if self.words is None else "windows"

    @property
    def part(self) -> str:
        """Which part of each document, in words."""
        if self.words is None:
            return "whole documents"
        return f"words {self.words[0]} to {self.words[1]}"

    @property
    def title(self) -> str:
        """Corpus and part."""
        return f"{self.corpus}, {self.part}"


@dataclass(frozen=True)
class Job:
    """One run of a system.

    Attributes
    ----------
    setting : Setting
        Device, and whether the small version is wanted.
    task : Task
        Counts, labels and texts.
    name : TaskName
        Corpus and part of the documents.
    seed : int
        Of the run.
    parameters : dict
        What the system's own function gave for setting and task's name.
    """

    setting: Setting
    task: Task
    name: TaskName
    seed: int
    parameters: dict[str, Any]
