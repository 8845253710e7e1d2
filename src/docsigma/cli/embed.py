"""`docsigma embed`: documents in, Gaussians out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from docsigma.cli import _common
from docsigma.cli._counted import embed_counts
from docsigma.cli._shard import Shard, ShardOption
from docsigma.cli._tables import (
    Blocks,
    TableFile,
    check_table,
    text_column,
    write_table,
)
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from docsigma.cli._counted import CountedSource
    from docsigma.models._count_model import CountModel


@_common.with_options()
def embed(
    model: _common.ModelFolder,
    docs: _common.DocumentsArgument,
    out: TableFile,
    *,
    calibration: Annotated[
        str | None,
        _common.option(
            "Documents like those of MODEL that it has not seen, without labels: adds "
            "unknown_p_value, low for documents unlike them.",
            "none",
        ),
    ] = None,
    reader: _common.DocumentOptions,
    shard: ShardOption = None,
    device: _common.Device = None,
    no_text: _common.NoText = False,
    force: _common.Force = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Infer the Gaussian of each document and write it to a file.

    A row holds row (in the file, as a spreadsheet counts), id, text, label (if known),
    mean, variance, total_variance, n_tokens, n_unknown and, with --calibration,
    unknown_p_value, but no variances if the model gives points. A .csv has one column
    per component. Documents that `count` wrote are processed in blocks; only .npz holds
    all embeddings in memory.

    Example: docsigma embed model tickets.csv --out embeddings.csv
    """
    import numpy as np

    part = Shard.parse(shard)
    if part.is_done(out, force):
        return
    out = part.file(out)
    check_table(out, model, docs, calibration or docs, force=force)
    smm = _common.load_model(model, device, reader.language)
    source = reader.count(docs, smm, part.rows)
    p_values = _p_values(smm, reader, calibration, source)
    n_tokens, tokens = source.n_tokens, source.counts.n_tokens
    variances = []

    def blocks() -> Blocks:
        for rows in source.blocks():
            mean, q = embed_counts(smm, source.counts[rows])
            columns = source.named(rows) | text_column(out, source, rows, no_text)
            labels = source.labels(rows)
            if labels is not None:
                columns["label"] = labels
            columns["mean"] = mean
            constants: dict[str, Any] = {}
            if q is not None:
                columns["variance"] = q.variance
                columns["total_variance"] = q.total_variance
                variances.append(float(q.total_variance.sum(dtype="float64")))
                arrays = q.to_arrays().items()
                constants = {k: a for k, a in arrays if k.startswith("prior_")}
                constants["model_digest"] = np.asarray(q.model_digest)
            columns["n_tokens"] = tokens[rows].astype("int64")
            columns["n_unknown"] = source.n_unknown[rows]
            if p_values is not None and source.texts is not None:
                columns["unknown_p_value"] = p_values(source.texts(rows))
            yield columns, constants

    write_table(out, blocks())
    variance = None if smm.gives_points else sum(variances) / len(n_tokens)
    report = {
        "file": str(out),
        "n_documents": len(n_tokens),
        "n_components": int(smm.n_components),
        "n_tokens": int(n_tokens.sum()),
        "n_unknown": int(source.n_unknown[source.rows].sum()),
        "n_empty": int((n_tokens == 0).sum()),
        "mean_total_variance": variance,
    }
    rows = {
        "documents": report["n_documents"],
        "size of an embedding": str(smm.n_components),
        "known tokens": report["n_tokens"],
        "unknown tokens": report["n_unknown"],
        "documents with no known word": report["n_empty"],
        "mean total variance": None if variance is None else f"{variance:.3f}",
    }
    _common.print_report(report, as_json, f"{docs} -> {out}", rows)


def _p_values(
    smm: CountModel,
    reader: _common.DocumentOptions,
    calibration: str | None,
    source: CountedSource,
) -> Callable[[list[str]], Any] | None:
    """Return what gives texts their p-values; None without a calibration."""
    from docsigma.text import DocumentEmbedder

    if calibration is not None:
        if source.texts is None:
            raise InputError("p-values need texts, and DOCS has counts")
        known = reader.count(calibration, smm)
        if known.texts is None:
            raise InputError("p-values need texts, and --calibration has counts")
        embedder = DocumentEmbedder._of(smm, None)
        return embedder.calibrate(known.texts(slice(None))).unknown_p_value
    if smm.reference_ is None or source.texts is None:
        return None
    return DocumentEmbedder._of(smm, None).unknown_p_value
