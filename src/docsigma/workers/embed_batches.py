"""Texts of Arrow batches to Gaussians."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma.models.components import known_words
from docsigma.models.registry import load_model
from docsigma.workers.text_batches import TextBatches

if TYPE_CHECKING:
    from docsigma.counts import CountedDocuments
    from docsigma.models._count_model import CountModel


class EmbedBatches(TextBatches):
    """Embeds the texts of Arrow batches, as `docsigma embed` does.

    The columns after those kept are mean, variance, total_variance, n_tokens and
    n_unknown; a model that gives points has no variances.

    Parameters
    ----------
    model : path
        Folder of a model that knows its words; every worker must be able to read it.
    text_column, keep, threads
        As in :class:`~docsigma.workers.text_batches.TextBatches`.
    device : str, default="auto"
        Where to compute.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> from docsigma import DocumentEmbedder
    >>> texts = ["sun and rain", "rain and wind", "bread and salt", "salt and butter"]
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> DocumentEmbedder(2, random_state=0).fit(texts).save(folder)
    >>> embed = EmbedBatches(folder)
    >>> embed(pa.table({"id": ["a"], "text": ["rain and snow"]})).column_names
    ['id', 'mean', 'variance', 'total_variance', 'n_tokens', 'n_unknown']
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        text_column: str = "text",
        keep: Sequence[str] | None = None,
        threads: int | None = None,
        device: str = "auto",
    ) -> None:
        super().__init__(text_column, keep, threads)
        self.model = str(Path(model).absolute())
        self.device = device

    def columns(self, texts: list[str]) -> dict[str, Any]:
        """Return the columns of the embeddings."""
        model = _loaded(self.model, self.device)
        return embedded_columns(model, known_words(model).count(texts))


@functools.lru_cache(maxsize=2)
def _loaded(folder: str, device: str) -> CountModel:
    model = load_model(folder)
    model.set_params(device=device)
    return model


def embedded_columns(model: CountModel, counted: CountedDocuments) -> dict[str, Any]:
    """Return the columns of a table of embeddings."""
    if model.gives_points:
        return {"mean": model.transform(counted.counts)} | token_columns(counted)
    q = model.posterior(counted.counts)
    found = {"mean": q.mean, "variance": q.variance, "total_variance": q.total_variance}
    return found | token_columns(counted)


def token_columns(counted: CountedDocuments) -> dict[str, Any]:
    """Return the numbers of known and unknown tokens per document."""
    return {
        "n_tokens": counted.n_tokens.astype(np.int64),
        "n_unknown": counted.n_unknown.astype(np.int64),
    }
