"""`docsigma duplicates`: documents that are nearly the same."""

from __future__ import annotations

from typing import Annotated, Any

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.cli._tables import TableFile, check_table, text_column, write_table


@_common.with_options()
def duplicates(
    model: _common.ModelFolder,
    docs: _common.DocumentsArgument,
    out: TableFile,
    *,
    threshold: Annotated[float, option("Least share of words in common.")] = 0.8,
    reader: _common.DocumentOptions,
    no_text: _common.NoText = False,
    force: _common.Force = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Write pairs of documents that have nearly the same words.

    A row holds first and second (ids), similarity (1: the same words), the number of
    the pair's group, -1 if they are in different ones, and rows and texts of both. All
    documents of a group are near its first. In texts, words that the model does not
    know count too.

    Example: docsigma duplicates model tickets.csv --out pairs.csv
    """
    import numpy as np

    from docsigma.search.duplicates import every_word, find_duplicates

    check_table(out, model, docs, force=force)
    smm = _common.load_model(model, language=reader.language)
    source = reader.count(docs, smm)
    if source.texts is None:
        counts = source.counts[:]
    else:
        counts = every_word(source.texts(slice(None)), smm.vocabulary_)
    found = find_duplicates(counts, threshold)
    of = found.groups[found.pairs]
    firsts, seconds = found.pairs.T
    columns: dict[str, Any] = {
        "first": source.ids(firsts),
        "second": source.ids(seconds),
        "similarity": found.similarities,
        "group": np.where(of[:, 0] == of[:, 1], of[:, 0], -1).astype(np.int64),
    }
    for name, some in (("first", firsts), ("second", seconds)):
        if source.numbers is not None:
            columns[f"{name}_row"] = np.array(source.numbers(some), dtype=np.int64)
        for text in text_column(out, source, some, no_text).values():
            columns[f"{name}_text"] = text
    write_table(out, [(columns, {})])
    report = {
        "file": str(out),
        "n_documents": len(source.counts),
        "n_pairs": len(found.pairs),
        "n_groups": int(found.groups.max(initial=-1)) + 1,
        "n_extra": len(found.extra),
    }
    rows = {
        "documents": report["n_documents"],
        "pairs": report["n_pairs"],
        "groups": report["n_groups"],
        "near the first of their group": report["n_extra"],
    }
    _common.print_report(report, as_json, f"{docs} -> {out}", rows)
