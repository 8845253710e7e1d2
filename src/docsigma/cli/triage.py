"""`docsigma triage`: the documents that a person should look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.cli._tables import check_table, write_table
from docsigma.exceptions import InputError


@_common.with_options()
def triage(
    clf: _common.ClassifierFolder,
    docs: _common.DocumentsArgument,
    *,
    top: Annotated[
        int | None, option("Documents to return.", "20 without --risk")
    ] = None,
    risk: Annotated[
        float | None,
        option("Return so many that at most this share of the rest is wrong.", "none"),
    ] = None,
    level: Annotated[
        float, option("Share of documents of known labels that may be called unknown.")
    ] = 0.05,
    out: Annotated[
        Path | None, option("Table to write: .jsonl, .csv or .parquet.", "none")
    ] = None,
    reader: _common.DocumentOptions,
    force: _common.Force = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Show the documents to look at, the most doubtful first, and why.

    The reason is "unknown" (none of the labels), "torn between" the two best labels, or
    "says too little". CLF must have been calibrated: `classifier fit --calibration`.

    Example: docsigma triage topics tickets.csv --top 100 --out look.csv
    """
    import numpy as np

    from docsigma.text import TopicClassifier

    if risk is None and top is None:
        top = 20
    if not 0 < level < 1:
        raise InputError(f"--level must be between 0 and 1, got {level:g}")
    if out is not None:
        check_table(out, clf, docs, force=force)
    topics = _common.in_language(TopicClassifier.load(clf), reader.language)
    source = reader.count(docs, topics.classifier_.model_)
    if source.texts is None:
        raise InputError(f"{docs} has counts, and triage shows texts")
    every = slice(None)
    found = topics.triage(source.texts(every), top=top, risk=risk, level=level)
    rows, named = [one.row for one in found.rows], source.named(every)
    columns = {name: np.asarray(values)[rows] for name, values in named.items()}
    for name in ("predicted", "probability", "second", "p_value", "reason", "n_equal"):
        columns[name] = np.array([getattr(one, name) for one in found.rows])
    columns["text"] = np.array([one.text for one in found.rows])
    report = {
        "n_documents": len(source.counts),
        "n_to_look_at": len(rows),
        "n_rest": found.n_rest,
        "expected_wrong": found.expected_wrong,
        "documents": [
            {name: values[place].item() for name, values in columns.items()}
            for place in range(len(rows))
        ],
    }
    if out is not None:
        write_table(out, [(columns, {})])
        report["file"] = str(out)
    shown = {
        "to look at": len(rows),
        "left to the classifier": found.n_rest,
        "of these expected wrong": f"{found.expected_wrong:.1f}",
    }
    _common.print_report(report, as_json, f"{docs} by {clf}", shown)
    if as_json:
        return
    name = "row" if "row" in columns else "id"
    table = _common.table("Look at", f">{name}", "text", "label, or second best", "why")
    for one, place in zip(found.rows[:20], columns[name][:20], strict=True):
        labels = f"{one.predicted} {one.probability:.2f}\nor {one.second}"
        table.add_row(str(place), _common.beginning(one.text), labels, one.reason)
    _common.show(table)
    if len(rows) > 20:
        where = "--out writes all of them" if out is None else f"all are in {out}"
        _common.show(f"and {len(rows) - 20} more: {where}")
