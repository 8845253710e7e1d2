"""`docsigma embed`: documents in, Gaussians out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._tables import check_table, open_table

if TYPE_CHECKING:
    from docsigma.counts import CountedDocuments, DiskCounts
    from docsigma.models._count_model import CountModel
    from docsigma.posterior import GaussianPosterior

    # Ids, labels and counts of some documents.
    Block = tuple[list[str], Sequence[str | None] | None, CountedDocuments]

__all__ = ["embed"]

# Documents on disk that are embedded at once.
BLOCK = 8192


def embed(
    model: _common.ModelFolder,
    docs: _common.DocumentsArgument,
    out: Annotated[Path, typer.Option(help="File to write: .parquet, .npz or .jsonl.")],
    split: _common.SplitOption = _common.Split.test,
    text_column: _common.TextColumn = "text",
    label_column: _common.LabelColumn = "label",
    id_column: _common.IdColumn = "id",
    vocabulary: _common.VocabularyFile = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or auto.")] = None,
    as_json: _common.JsonFlag = False,
) -> None:
    """Infer the Gaussian of each document and write it to a file.

    A row holds id, label (if known), mean, variance, total_variance, n_tokens and
    n_unknown; without the variances if the model gives points. Documents in a
    folder that `count` wrote are embedded and written in blocks; only .npz holds all
    of them in memory.
    """
    check_table(out)
    smm = _common.load_model(model, device)
    reader = _common.DocumentOptions(
        text_column, label_column, id_column, vocabulary, split
    )
    stored = reader.open_counts(docs)
    blocks: Iterable[Block]
    if stored is None:
        documents = reader.load(docs)
        blocks = [(documents.ids, documents.labels, _common.count_for(smm, documents))]
    else:
        _common.check_same_words(smm, stored)
        blocks = _stored_blocks(stored)
    report = {"file": str(out)} | _embed(smm, blocks, out)
    if as_json:
        _common.print_json(report)
        return
    rows = _common.table(f"{docs} -> {out}", "what", ">value")
    rows.add_row("documents", _common.number(report["n_documents"], 0))
    rows.add_row("size of an embedding", str(report["n_components"]))
    rows.add_row("known tokens", _common.number(report["n_tokens"], 0))
    rows.add_row("unknown tokens", _common.number(report["n_unknown"], 0))
    rows.add_row("documents with no known word", _common.number(report["n_empty"], 0))
    if report["mean_total_variance"] is not None:
        rows.add_row("mean total variance", f"{report['mean_total_variance']:.3f}")
    _common.show(rows)


def _stored_blocks(counts: DiskCounts) -> Iterator[Block]:
    for start in range(0, len(counts), BLOCK):
        rows = slice(start, start + BLOCK)
        yield (
            counts.ids(rows),
            counts.labels(rows),
            _common.stored_counts(counts, rows),
        )


def _embed(smm: CountModel, blocks: Iterable[Block], out: Path) -> dict[str, Any]:
    """Write the embeddings of documents; return what the report says of them."""
    n_documents = n_tokens = n_unknown = n_empty = 0
    variance = 0.0
    with open_table(out) as write:
        for ids, labels, counted in blocks:
            mean, q = _common.embed_counts(smm, counted.counts)
            columns: dict[str, Any] = {"id": ids}
            if labels is not None:
                columns["label"] = labels
            columns["mean"] = mean
            if q is not None:
                columns["variance"] = q.variance
                columns["total_variance"] = q.total_variance
                variance += float(q.total_variance.sum(dtype="float64"))
            columns["n_tokens"] = counted.n_tokens
            columns["n_unknown"] = counted.n_unknown
            write(columns, None if q is None else _prior(q))
            n_documents += len(ids)
            n_tokens += int(counted.n_tokens.sum())
            n_unknown += int(counted.n_unknown.sum())
            n_empty += int((counted.n_tokens == 0).sum())
    return {
        "n_documents": n_documents,
        "n_components": int(smm.n_components),
        "n_tokens": n_tokens,
        "n_unknown": n_unknown,
        "n_empty": n_empty,
        "mean_total_variance": None if smm.gives_points else variance / n_documents,
    }


def _prior(q: GaussianPosterior) -> dict[str, Any]:
    names = ("prior_mean", "prior_precision")
    return {name: array for name, array in q.to_arrays().items() if name in names}
