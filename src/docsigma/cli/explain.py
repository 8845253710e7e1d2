"""`docsigma classifier explain`: the words for and against a label."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.exceptions import InputError


@_common.with_options()
def explain(
    clf: _common.ClassifierFolder,
    docs: _common.DocumentsArgument,
    *,
    documents: Annotated[int, option("Explain only so many, the first.")] = 5,
    words: Annotated[int, option("Words per document.")] = 8,
    reader: _common.DocumentOptions,
    as_json: _common.JsonFlag = False,
) -> None:
    """Show which words spoke for and against the label of each document.

    Amounts are in nats, in favour of the label against the second best. Only the
    hybrid explains itself.

    Example: docsigma classifier explain topics tickets.csv
    """
    from docsigma.text import TopicClassifier

    _common.check_positive("--documents", documents)
    _common.check_positive("--words", words)
    topics = _common.in_language(TopicClassifier.load(clf), reader.language)
    source = reader.count(docs, topics.classifier_.model_, lambda _: slice(documents))
    if source.texts is None:
        raise InputError(f"{docs} has counts, and only texts can be explained")
    rows = source.rows
    found = topics.explain(source.texts(rows))
    if as_json:
        names = source.ids(rows)
        pairs = zip(names, found, strict=True)
        _common.print_json([{"id": name, **asdict(one)} for name, one in pairs])
        return
    for shown, one in zip(source.shown(rows), found, strict=True):
        _common.show(
            shown, f"  {one.label} rather than {one.against}: {one.log_odds:+.2f} nats"
        )
        lines = _common.table("", "what", ">nats")
        for word, amount in one.words[:words]:
            lines.add_row(str(word), f"{amount:+.2f}")
        if rest := one.words[words:]:
            amount = sum(amount for _, amount in rest)
            lines.add_row(f"({len(rest)} other words)", f"{amount:+.2f}")
        lines.add_row("(its embedding)", f"{one.embedding:+.2f}")
        lines.add_row("(the same for all documents)", f"{one.intercept:+.2f}")
        _common.show(lines)
