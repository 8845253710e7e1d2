"""The computations of the service, apart from HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from docsigma.metrics import entropies
from docsigma.models._subspace_model import SubspaceModel
from docsigma.models.components import known_words
from docsigma.service.batcher import Batcher
from docsigma.workers.embed_batches import embedded_columns

if TYPE_CHECKING:
    from docsigma.classifiers.counts_classifier import CountsClassifier
    from docsigma.models._count_model import CountModel
    from docsigma.search import DocumentIndex
    from docsigma.service.guard import ServiceSettings


class Engine:
    """A model that knows its words, and optionally a classifier and an index.

    Small batches run in parallel on one thread each, as splitting so little work costs
    more than it saves; larger ones use all threads.
    """

    def __init__(
        self,
        model: CountModel,
        classifier: CountsClassifier | None = None,
        index: DocumentIndex | None = None,
    ) -> None:
        self.words = known_words(model)
        self.model, self.classifier, self.index = model, classifier, index
        # Called with the size of each batch.
        self.on_batch: Callable[[int], object] = lambda _: None

    def open(self, settings: ServiceSettings) -> None:
        """Start the threads that compute, and warm the model up."""
        self._threads = torch.get_num_threads()
        self._executor = ThreadPoolExecutor(
            self._threads, thread_name_prefix="docsigma"
        )
        limits = self._threads, settings.max_documents, settings.max_waiting

        def batcher(work: Callable[[list[str]], list[Any]]) -> Batcher[Any]:
            return Batcher(self._counted(work), self._executor, *limits)

        self.embed = batcher(self.embed_now)
        self.classify = batcher(self.classify_now)
        self.locate = batcher(self._locate)
        self._executor.submit(self._warm_up).result()

    def close(self) -> None:
        """Finish the current batches and stop."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _counted(
        self, work: Callable[[list[str]], list[Any]]
    ) -> Callable[[list[str]], list[Any]]:
        def counted(texts: list[str]) -> list[Any]:
            self.on_batch(len(texts))
            # Applies to this thread only; on few texts threads wait for each other.
            torch.set_num_threads(1 if len(texts) <= 16 else self._threads)
            return work(texts)

        return counted

    def _warm_up(self) -> None:
        classifier, index = self.classifier, self.index
        own = None if classifier is None else classifier.model_
        for model in (self.model, own, None if index is None else index.model):
            if isinstance(model, SubspaceModel):
                model.keep_words()
        text = [" ".join(self.words.words[:3])]
        self.embed_now(text)
        if classifier is not None:
            self.classify_now(text)
        if index is not None:
            self._locate(text)

    def embed_now(self, texts: list[str]) -> list[dict[str, Any]]:
        """Return the embedding of each text."""
        columns = embedded_columns(self.model, self.words.count(texts))
        return _rows({name: values.tolist() for name, values in columns.items()})

    def classify_now(self, texts: list[str]) -> list[dict[str, Any]]:
        """Return the labels of each text, and how sure they are."""
        assert self.classifier is not None
        documents = self.classifier.embed_texts(texts)
        log_proba = self.classifier.predict_log_proba(documents)
        proba = np.exp(log_proba)
        names = [str(name) for name in self.classifier.classes_]
        rows = proba.tolist()
        order = np.argsort(-proba, axis=1, kind="stable")[:, :2]
        best, second = np.take_along_axis(proba, order, axis=1).T
        columns: dict[str, list[Any]] = {
            "label": [names[row] for row in order[:, 0]],
            "probability": best.tolist(),
            "second": [names[row] for row in order[:, 1]],
            "second_probability": second.tolist(),
            "entropy": entropies(log_proba).tolist(),
            "n_tokens": documents.n_tokens.astype(int).tolist(),
        }
        if self.classifier.is_calibrated:
            sets = self.classifier.sets_of(documents, proba)
            chosen = [np.flatnonzero(row) for row in sets]
            columns["prediction_set"] = [[names[c] for c in row] for row in chosen]
            p_values = self.classifier.unknown_p_value(documents)
            columns["unknown_p_value"] = p_values.tolist()
        # The longest comes last.
        chances = [dict(zip(names, row, strict=True)) for row in rows]
        columns["probabilities"] = chances
        return _rows(columns)

    def _locate(self, texts: list[str]) -> list[Any]:
        """Return the counts and the Gaussian of each text, for a search."""
        assert self.index is not None
        counts = self.index.count(texts)
        q = self.index.embed(counts)
        return [(counts[row], q[row]) for row in range(len(texts))]

    async def search(
        self, texts: list[str], n: int, filters: dict[str, Any]
    ) -> tuple[list[int], list[list[dict[str, Any]]]]:
        """Return the number of known words and the matches of each text."""
        located = await self.locate(texts)

        def find() -> list[list[dict[str, Any]]]:
            assert self.index is not None
            found = []
            for counts, q in located:
                (matches,) = self.index.search_posterior(counts, q, n, **filters)
                found.append([asdict(match) for match in matches])
            return found

        n_known = [int(counts.sum()) for counts, _ in located]
        loop = asyncio.get_running_loop()
        return n_known, await loop.run_in_executor(self._executor, find)


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [
        dict(zip(columns, values, strict=True))
        for values in zip(*columns.values(), strict=True)
    ]
