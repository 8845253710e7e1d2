"""Requests that arrive together are worked on together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor

Answer = TypeVar("Answer")


class BusyError(Exception):
    """More documents wait than may."""


@dataclass
class _Request:
    texts: list[str]
    answer: asyncio.Future[Any] = field(repr=False)


@dataclass
class Batcher(Generic[Answer]):
    """Collects texts while others are worked on, and works on them as one batch.

    Nothing waits for a batch to fill: a request that finds a worker free goes ahead at
    once, and those that come while all are busy make the next batch.

    Parameters
    ----------
    work : callable
        From the texts of a batch to one answer per text; runs in `executor`.
    executor : Executor
        Its threads are shared by batchers.
    n_workers : int
        Batches at once.
    max_batch : int
        Texts of a batch at the most, unless one request has more.
    max_waiting : int
        Texts that may wait.
    """

    work: Callable[[list[str]], list[Answer]]
    executor: Executor
    n_workers: int
    max_batch: int
    max_waiting: int

    def __post_init__(self) -> None:
        self._waiting: list[_Request] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def n_waiting(self) -> int:
        """Texts that wait for their turn."""
        return sum(len(request.texts) for request in self._waiting)

    async def __call__(self, texts: list[str]) -> list[Answer]:
        """Return the answers to some texts, in their order."""
        if not texts:
            return []
        if self.n_waiting + len(texts) > self.max_waiting:
            raise BusyError
        request = _Request(texts, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        if len(self._tasks) < self.n_workers:
            task = asyncio.create_task(self._drain())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        found: list[Answer] = await request.answer
        return found

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        while batch := self._next_batch():
            texts = [text for request in batch for text in request.texts]
            try:
                answers = await loop.run_in_executor(self.executor, self.work, texts)
            # Whatever it is belongs to those who asked; later batches go on.
            except Exception as error:
                for request in batch:
                    if not request.answer.done():
                        request.answer.set_exception(error)
                continue
            start = 0
            for request in batch:
                end = start + len(request.texts)
                if not request.answer.done():
                    request.answer.set_result(answers[start:end])
                start = end

    def _next_batch(self) -> list[_Request]:
        batch: list[_Request] = []
        size = 0
        while self._waiting:
            request = self._waiting[0]
            if request.answer.done():
                # Its client has hung up.
                self._waiting.pop(0)
                continue
            if batch and size + len(request.texts) > self.max_batch:
                break
            batch.append(self._waiting.pop(0))
            size += len(request.texts)
        return batch
