"""`docsigma cluster`: groups of documents, as many as there are."""

from __future__ import annotations

from typing import Annotated, Any

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.cli._counted import embed_counts
from docsigma.cli._tables import TableFile, check_table, text_column, write_table


@_common.with_options()
def cluster(
    model: _common.ModelFolder,
    docs: _common.DocumentsArgument,
    out: TableFile,
    *,
    clusters: Annotated[
        int | None, option("Number of groups.", "found on held-out documents")
    ] = None,
    reader: _common.DocumentOptions,
    no_text: _common.NoText = False,
    force: _common.Force = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Group similar documents; the number of groups is found unless you give it.

    A row holds row (in the file, as a spreadsheet counts), id, label (if known), group,
    its words and text: group 0 is the largest, -1 stands for documents with no known
    word. The groups are those of `topics` with as many.

    Example: docsigma cluster model tickets.csv --out groups.csv
    """
    import numpy as np

    from docsigma.groups.gaussians import Groups

    check_table(out, model, docs, force=force)
    if clusters is not None:
        _common.check_positive("--clusters", clusters)
    smm = _common.load_model(model, language=reader.language)
    source = reader.count(docs, smm)
    means, q = embed_counts(smm, source.counts)
    counts = source.counts[:]
    found = Groups.fit(smm, means if q is None else q, clusters, counts=counts)
    known = np.asarray(counts.sum(axis=1)).ravel() > 0
    of = np.where(known, found.of, -1).astype(np.int64)
    names = {group.number: " ".join(group.words[:5]) for group in found.found}
    every = slice(None)
    columns: dict[str, Any] = source.named(every)
    labels = source.labels(every)
    if labels is not None:
        columns["label"] = list(labels)
    columns |= {"group": of, "words": [names.get(number, "") for number in of.tolist()]}
    columns |= text_column(out, source, every, no_text)
    write_table(out, [(columns, {})])
    sizes = np.bincount(of[known], minlength=1)
    report = {
        "file": str(out),
        "n_documents": len(of),
        "n_groups": int((sizes > 0).sum()),
        "n_empty": int((~known).sum()),
        "sizes": sizes[sizes > 0].tolist(),
    }
    rows = {
        "documents": len(of),
        "groups": report["n_groups"],
        "of ten documents or more": int((sizes >= 10).sum()),
        "largest group": int(sizes.max(initial=0)),
        "documents with no known word": report["n_empty"],
    }
    _common.print_report(report, as_json, f"{docs} -> {out}", rows)
    if clusters is None and report["n_groups"] == 1 and not as_json:
        _common.show("one group: held-out documents speak for no more; try --clusters")
