"""Input of an experiment, and the small version of corpora."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from docsigma.corpora import load_corpus
from docsigma_paper.topic_id import Task, load_task

if TYPE_CHECKING:
    from collections.abc import Callable

    import scipy.sparse as sp


Value = TypeVar("Value")


@dataclass(frozen=True)
class Setting:
    """How an experiment is run.

    Attributes
    ----------
    quick : bool
        Whether to run the small version: a synthetic corpus, few passes, small K.
    device : str
        Where models are trained.
    seeds : tuple of int
        One run each.
    options : dict
        Of single experiments, such as the path of pre-trained weights.
    """

    quick: bool = False
    device: str = "auto"
    seeds: tuple[int, ...] = (0, 1, 2)
    options: dict[str, Any] = field(default_factory=dict)

    def pick(self, full: Value, quick: Value) -> Value:
        """Return the first, or the second in the small version."""
        return quick if self.quick else full

    def wants(self, system: str) -> bool:
        """Whether to run a system: all, unless some were named."""
        return system in (self.options.get("systems") or (system,))

    def task(self, name: str, **options: Any) -> Task:
        """Return a labelled corpus, loaded at its first use."""
        if self.quick:
            return _small_task()
        return cast("Task", _LateTask(partial(_load, name, tuple(options.items()))))


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Attributes
    ----------
    name, title : str
        Its name, and its description.
    shows : str
        The table or figure of the paper.
    compute : callable
        Fills a :class:`~docsigma_paper.reproduce._record.Record`.
    table : callable
        Returns Markdown of its rows.
    figure : callable or None
        Returns a figure of its rows.
    systems : tuple of str
        Those that can be run separately; empty if there is only one.
    """

    name: str
    title: str
    shows: str
    compute: Callable[..., None]
    table: Callable[[list[dict[str, Any]]], str]
    figure: Callable[[list[dict[str, Any]]], Any] | None = None
    systems: tuple[str, ...] = ()


class _LateTask:
    """A task that is loaded when one of its attributes is read."""

    def __init__(self, load: Callable[[], Task]) -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:
        return getattr(self._load(), name)


@cache
def _load(name: str, options: tuple[tuple[str, Any], ...]) -> Task:
    return load_task(name, **dict(options))


@cache
def _small_task() -> Task:
    """Draw a corpus; a document's label is its largest true component."""
    corpus: Any = load_corpus("synthetic", n_train=200, n_test=80)
    truth = corpus.truth
    labels = [
        [f"topic {k}" for k in np.asarray(embeddings).argmax(axis=1)]
        for embeddings in (truth.train_embeddings, truth.test_embeddings)
    ]
    texts = [_words(part.counts) for part in (corpus.train, corpus.test)]
    return Task(
        corpus.train.counts,
        corpus.test.counts,
        labels[0],
        labels[1],
        train_texts=texts[0],
        test_texts=texts[1],
    )


def _words(counts: sp.csr_matrix) -> list[str]:
    """Return counts as texts of made-up words."""
    texts = []
    for start, stop in itertools.pairwise(counts.indptr):
        words = np.repeat(
            counts.indices[start:stop], counts.data[start:stop].astype(int)
        )
        texts.append(" ".join(f"w{word}" for word in words))
    return texts
