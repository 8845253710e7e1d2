"""Batches of requests that arrive at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor

Answer = TypeVar("Answer")


class BusyError(Exception):
    """Too many documents are waiting."""


@dataclass
class _Request:
    texts: list[str]
    answer: asyncio.Future[Any] = field(repr=False)


@dataclass
class Batcher(Generic[Answer]):
    """Collects texts while others are processed, and processes them as one batch.

    A request that finds a worker free starts at once; those that arrive while all are
    busy form the next batch. `work` maps the texts of a batch to one answer per text.
    """

    work: Callable[[list[str]], list[Answer]]
    # Batchers may share one.
    executor: Executor
    # Batches at the same time.
    n_workers: int
    # Texts; only a single request may have more.
    max_batch: int
    # Texts.
    max_waiting: int

    def __post_init__(self) -> None:
        self._waiting: list[_Request] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def n_waiting(self) -> int:
        """Number of texts that wait."""
        return sum(len(request.texts) for request in self._waiting)

    async def __call__(self, texts: list[str]) -> list[Answer]:
        """Return the answers to `texts`, in their order."""
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
            # Any error goes to the requests of this batch; later batches continue.
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
        # A request that is done was cancelled: its client has disconnected.
        waiting = [request for request in self._waiting if not request.answer.done()]
        size = n = 0
        for request in waiting:
            size += len(request.texts)
            if n and size > self.max_batch:
                break
            n += 1
        self._waiting = waiting[n:]
        return waiting[:n]
