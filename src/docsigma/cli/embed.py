"""`docsigma embed`: documents in, Gaussians out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma._files import atomic_file
from docsigma.cli import _common
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import numpy as np

    from docsigma.corpora import Documents
    from docsigma.counts import CountedDocuments
    from docsigma.posterior import GaussianPosterior

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
    writer = _WRITERS.get(out.suffix)
    if writer is None:
        raise InputError(
            f"cannot write {out}: its suffix must be one of {', '.join(_WRITERS)}"
        )
    _common.check_writable(out)
    smm = _common.load_model(model, device)
    reader = _common.DocumentOptions(
        text_column, label_column, id_column, vocabulary, split
    )
    documents = reader.load(docs)
    counted = _common.count_for(smm, documents)
    q = smm.posterior(counted.counts)
    with atomic_file(out) as temporary:
        writer(temporary, documents, q, counted)
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


def _columns(
    documents: Documents, q: GaussianPosterior, counted: CountedDocuments
) -> dict[str, Any]:
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
    return columns


def _write_jsonl(
    path: Path, documents: Documents, q: GaussianPosterior, counted: CountedDocuments
) -> None:
    columns = _columns(documents, q, counted)
    lists = {k: v if isinstance(v, list) else v.tolist() for k, v in columns.items()}
    with path.open("w", encoding="utf-8") as handle:
        for row in zip(*lists.values(), strict=True):
            record = dict(zip(lists, row, strict=True))
            handle.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_npz(
    path: Path, documents: Documents, q: GaussianPosterior, counted: CountedDocuments
) -> None:
    import numpy as np

    columns = _columns(documents, q, counted)
    arrays: Any = {name: np.asarray(column) for name, column in columns.items()}
    np.savez(path, **arrays)


def _write_parquet(
    path: Path, documents: Documents, q: GaussianPosterior, counted: CountedDocuments
) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            "writing .parquet needs pyarrow: pip install docsigma[tables]"
        ) from error

    def column(values: list[str] | np.ndarray[Any, Any]) -> Any:
        if isinstance(values, list) or values.ndim == 1:
            return pa.array(values)
        flat = pa.array(values.reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])

    columns = _columns(documents, q, counted)
    pq.write_table(pa.table({k: column(v) for k, v in columns.items()}), path)


_WRITERS = {".parquet": _write_parquet, ".npz": _write_npz, ".jsonl": _write_jsonl}
