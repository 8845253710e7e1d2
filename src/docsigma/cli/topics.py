"""`docsigma topics`: words of components and of groups."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.cli._counted import embed_counts
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.cli._counted import CountedSource


@_common.with_options()
def topics(
    model: _common.ModelFolder,
    docs: Annotated[
        str | None,
        typer.Argument(metavar="[DOCS]", help="Corpus, file or folder to group."),
    ] = None,
    *,
    words: Annotated[int, option("Words per component or group.")] = 8,
    clusters: Annotated[int, option("Number of groups.")] = 10,
    time_column: Annotated[
        str | None,
        option("Column with a number or date: shares of the groups over time.", "none"),
    ] = None,
    unit_column: Annotated[
        str | None,
        option("Column that says which documents belong together.", "none"),
    ] = None,
    plot: Annotated[
        Path | None, option("Figure of the shares over time to write.", "none")
    ] = None,
    reader: _common.DocumentOptions,
    force: _common.Force = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Print the words of each component or, given documents, of groups of them.

    Example: docsigma topics model tickets.csv --clusters 20
    """
    from docsigma.groups.gaussians import Groups
    from docsigma.groups.over_time import shares_over_time
    from docsigma.metrics.plots import check_image
    from docsigma.models.components import describe_dimensions

    _common.check_positive("--words", words)
    _common.check_positive("--clusters", clusters)
    if time_column is None and (plot or unit_column):
        raise InputError("--plot and --unit-column need a --time-column")
    table = {}
    if time_column is not None:
        if docs is None:
            raise InputError("--time-column needs documents")
        names = [name for name in (time_column, unit_column) if name is not None]
        table = reader.read_columns(docs, names)
    if plot is not None:
        check_image(plot)
        _common.check_writable(plot, docs, model, force=force)
    smm = _common.load_model(model, language=reader.language)
    if docs is None:
        dimensions = describe_dimensions(smm, words)
        if as_json:
            _common.print_json({"dimensions": [asdict(d) for d in dimensions]})
            return
        rows = _common.table(
            f"Dimensions of {model}", ">dim", ">weight", "top words", "bottom words"
        )
        for d in dimensions:
            top, bottom = ", ".join(d.top), ", ".join(d.bottom)
            rows.add_row(str(d.index), f"{d.weight:.2f}", top, bottom)
        _common.show(rows)
        _suggest_stop_words([word for d in dimensions for word in d.top + d.bottom])
        return
    source = reader.count(docs, smm)
    means, q = embed_counts(smm, source.counts)
    n_documents = len(source.counts)
    n_groups = min(clusters, _n_different(source))
    if n_groups < clusters <= n_documents:
        typer.echo(
            f"docsigma: {docs} makes {n_groups} groups and not {clusters}: it has only "
            f"{n_groups} documents with different words",
            err=True,
        )
        clusters = n_groups
    counts = source.counts[:]
    fitted = Groups.fit(smm, means if q is None else q, clusters, words, counts)
    groups, shares = fitted.found, None
    if time_column is not None:
        units = None if unit_column is None else table[unit_column]
        shares = shares_over_time(fitted, fitted.posterior, table[time_column], units)
        if plot is not None:
            shares.plot(plot)
    if as_json:
        rows_json = [asdict(g) | {"nearest": source.ids(g.nearest)} for g in groups]
        for row in rows_json:
            del row["members"]
        over_time = {} if shares is None else {"shares": shares.to_dicts()}
        _common.print_json({"clusters": rows_json, **over_time})
        return
    spread = [] if q is None else [">variance"]
    columns = (">documents", *spread, "words", "nearest document")
    rows = _common.table(f"Groups of {docs}", *columns)
    for g in groups:
        variance = g.mean_total_variance
        shown = [] if variance is None else [f"{variance:.2f}"]
        (nearest,) = source.shown(g.nearest[:1])
        rows.add_row(str(g.size), *shown, ", ".join(g.words), nearest)
    _common.show(rows)
    if shares is not None:
        title = f"Share of the documents of a period, %, with {100 * shares.level:g} %"
        table_of_shares = _common.table(
            f"{title} intervals", "group", ">period", ">share", ">interval"
        )
        for row in shares.to_dicts():
            low, high = 100 * row["low"], 100 * row["high"]
            cells = f"{100 * row['share']:.1f}", f"{low:.1f} to {high:.1f}"
            table_of_shares.add_row(row["topic"], row["period"], *cells)
        _common.show(table_of_shares)
    _suggest_stop_words([word for g in groups for word in g.words])


def _n_different(source: CountedSource) -> int:
    """Return the number of documents with different counts."""
    found: set[int] = set()
    for rows in source.blocks():
        counts = source.counts[rows]
        for start, end in pairwise(counts.indptr.tolist()):
            words, values = counts.indices[start:end], counts.data[start:end]
            found.add(hash((words.tobytes(), values.tobytes())))
    return len(found)


def _suggest_stop_words(words: list[str]) -> None:
    """Print a hint if more than a fifth of the words are English stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    n_stop = sum(word in ENGLISH_STOP_WORDS for word in words)
    if n_stop > 0.2 * len(words):
        _common.show(
            f"{n_stop} of these {len(words)} words are English stop words: "
            "`docsigma fit` with --stop-words english leaves them out"
        )
