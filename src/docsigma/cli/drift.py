"""`docsigma drift`: two batches of documents compared."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from docsigma.cli import _common
from docsigma.cli._common import option

if TYPE_CHECKING:
    from docsigma.explore.drift import Interval


@_common.with_options()
def drift(
    model: _common.ModelFolder,
    old: Annotated[
        str, typer.Argument(help="Older documents: corpus, file or folder.")
    ],
    new: Annotated[
        str, typer.Argument(help="Newer documents: corpus, file or folder.")
    ],
    *,
    topics: Annotated[int, option("Number of topics.")] = 10,
    words: Annotated[int, option("Words per topic.")] = 6,
    reader: _common.DocumentOptions,
    device: _common.Device = None,
    as_json: _common.JsonFlag = False,
) -> None:
    """Compare two batches: which topics grew, and which documents are unlike OLD.

    Intervals of 90 per cent cover the uncertainty of each embedding and of the sample
    of documents. Of the topics said to have grown or shrunk, and of the words, 5 per
    cent are expected to be chance (Benjamini-Hochberg). Finer topics than asked for are
    listed if they changed. Unexplained are documents whose words are less likely
    than those of all but 2 per cent of OLD.

    Example: docsigma drift model january.csv february.csv
    """
    import numpy as np
    import scipy.sparse

    from docsigma.explore.drift import compare_batches

    _common.check_positive("--topics", topics)
    _common.check_positive("--words", words)
    smm = _common.load_model(model, device, reader.language)
    sources = [reader.count(name, smm) for name in (old, new)]
    batches = [smm.posterior(source.counts[:]) for source in sources]
    counts = scipy.sparse.vstack([source.counts[:] for source in sources])
    n_unknown = np.concatenate([source.n_unknown for source in sources])
    found = compare_batches(
        smm,
        *batches,
        n_topics=topics,
        n_words=words,
        counts=counts,
        n_unknown=n_unknown,
    )
    ids = sources[1].ids
    if as_json:
        report = asdict(found)
        for topic in report["topics"]:
            topic["typical"] = ids(topic["typical"])
        report["unexplained_rows"] = ids(report["unexplained_rows"])
        _common.print_json(report)
        return
    lines = _common.table(
        f"Topics of {old} and {new}, per cent of documents",
        *("words", ">old", ">new", ">change (90 %)", ""),
    )
    signs = {True: "grew", False: "shrank", None: ""}
    for topic in found.topics:
        shares = [f"{100 * share.value:.1f}" for share in (topic.old, topic.new)]
        change, sign = _interval(topic.change, "+"), signs[topic.grew]
        lines.add_row(", ".join(topic.words), *shares, change, sign)
    _common.show(lines)
    for grew, what in ((True, "more"), (False, "fewer")):
        changed = [w.word for w in found.words if (w.new > w.old) == grew]
        if changed:
            _common.show(f"Words of {what} documents: {', '.join(changed[:10])}")
    shares = [_interval(x) for x in (found.unexplained_old, found.unexplained_new)]
    _common.show(f"Nothing explains: {shares[0]} % of old, {shares[1]} % of new")
    if found.unexplained_rows:
        names = sources[1].shown(found.unexplained_rows[:5])
        _common.show("Least like the old ones:", *(f"  {name}" for name in names))


def _interval(found: Interval, sign: str = "") -> str:
    value, low, high = (100 * x for x in (found.value, found.low, found.high))
    return f"{value:{sign}.1f} ({low:{sign}.1f} to {high:{sign}.1f})"
