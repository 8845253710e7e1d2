"""Input of a topic ID system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docsigma_paper.reproduce._setting import Setting
    from docsigma_paper.topic_id import Task


Scores = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class TaskName:
    """Name of the documents to classify.

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
        """Its entries in the key of a row."""
        words = {} if self.words is None else {"words": list(self.words)}
        return {"corpus": self.corpus, **words}

    @property
    def options(self) -> dict[str, Any]:
        """Options to load the corpus with."""
        return {} if self.words is None else {"words": self.words}

    @classmethod
    def of(cls, key: dict[str, Any]) -> TaskName:
        """Return the name in the key of a row."""
        words = key.get("words")
        return cls(key["corpus"], None if words is None else (words[0], words[1]))

    @property
    def kind(self) -> str:
        """Kind of corpus, which decides parameters: newsgroups, sides or windows."""
        if self.corpus == "20newsgroups":
            return self.corpus
        return "sides" if self.words is None else "windows"

    @property
    def part(self) -> str:
        """The part of each document, in words."""
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
        Device, and whether to run the small version.
    task : Task
        Counts, labels and texts.
    name : TaskName
        Corpus and part of the documents.
    seed : int
        Of the run.
    parameters : dict
        The system's parameters for this setting and task.
    """

    setting: Setting
    task: Task
    name: TaskName
    seed: int
    parameters: dict[str, Any]
