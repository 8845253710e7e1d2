"""`docsigma embed`: documents in, Gaussians out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._tables import check_table, write_table

__all__ = ["embed"]


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
    n_unknown.
    """
    check_table(out)
    smm = _common.load_model(model, device)
    reader = _common.DocumentOptions(
        text_column, label_column, id_column, vocabulary, split
    )
    documents = reader.load(docs)
    counted = _common.count_for(smm, documents)
    q = smm.posterior(counted.counts)
    columns: dict[str, Any] = {"id": documents.ids}
    if documents.labels is not None:
        columns["label"] = documents.labels
    columns |= {
        "mean": q.mean,
        "variance": q.variance,
        "total_variance": q.total_variance,
        "n_tokens": counted.n_tokens,
        "n_unknown": counted.n_unknown,
    }
    write_table(out, columns)
    report: dict[str, Any] = {
        "file": str(out),
        "n_documents": len(documents),
        "n_components": q.n_components,
        "n_tokens": int(counted.n_tokens.sum()),
        "n_unknown": int(counted.n_unknown.sum()),
        "n_empty": int((counted.n_tokens == 0).sum()),
        "mean_total_variance": float(q.total_variance.mean()),
    }
    if as_json:
        _common.print_json(report)
        return
    rows = _common.table(f"{docs} -> {out}", "what", ">value")
    rows.add_row("documents", _common.number(len(documents), 0))
    rows.add_row("size of an embedding", str(q.n_components))
    rows.add_row("known tokens", _common.number(report["n_tokens"], 0))
    rows.add_row("unknown tokens", _common.number(report["n_unknown"], 0))
    rows.add_row("documents with no known word", _common.number(report["n_empty"], 0))
    rows.add_row("mean total variance", f"{report['mean_total_variance']:.3f}")
    _common.show(rows)
