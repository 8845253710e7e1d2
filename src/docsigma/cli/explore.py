"""`docsigma explore`: a page to explore a corpus."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.explore.workspace import Workspace
    from docsigma.service.engine import Engine


@_common.with_options()
def explore(
    model: _common.ModelFolder,
    docs: _common.DocumentsArgument,
    *,
    before: Annotated[
        str | None, option("Older documents to compare with, as DOCS.", "none")
    ] = None,
    classifier: Annotated[
        Path | None,
        option("Folder made by `classifier fit`: predicts from the start.", "none"),
    ] = None,
    index: Annotated[
        Path | None, option("Folder made by `index`, to search.", "none: by distance")
    ] = None,
    labels: Annotated[
        Path | None,
        option("File of labels (.jsonl), read if it exists, kept up to date.", "none"),
    ] = None,
    topics: Annotated[int, option("Number of topics.")] = 10,
    port: Annotated[int, option("Port to listen on.")] = 8001,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address.")
    ] = False,
    reader: _common.DocumentOptions,
    device: _common.Device = None,
) -> None:
    """Explore a corpus and its uncertainties, label and classify it, on a page.

    The page is served to this machine alone and loads nothing from outside. Labels are
    kept in the file --labels; the page can save and load them too. Whoever reaches the
    page can read the texts, and its CSV holds them.

    Example: docsigma explore model tickets.csv --labels labels.jsonl
    """
    from docsigma.cli.serve import check_address, load_engine, run_app

    check_address("127.0.0.1", port)
    _common.check_positive("--topics", topics)
    if labels is not None and not labels.exists():
        _common.check_writable(labels, model, docs)
    engine = load_engine(model, classifier, index, device, reader.language)
    from docsigma.service.app import make_app
    from docsigma.service.explore import add_explorer
    from docsigma.service.guard import ServiceSettings

    typer.echo(f"embedding {docs} ...", err=True)
    workspace = make_workspace(
        engine,
        [name for name in (before, docs) if name is not None],
        reader,
        n_topics=topics,
        labels_file=labels,
    )
    # Compute what takes long before the page needs it.
    workspace.about()
    address = f"http://127.0.0.1:{port}/explore/"
    typer.echo(f"{len(workspace)} documents at {address} (Ctrl-C stops)", err=True)
    if not no_browser:
        threading.Timer(1.0, webbrowser.open, [address]).start()
    # Fitting a classifier on the page may take minutes.
    app = make_app(engine, ServiceSettings(timeout=600.0, max_body=64 * 2**20))
    add_explorer(app, workspace, {"127.0.0.1", "localhost"})
    run_app(app, "127.0.0.1", port, log_level="warning", timeout_graceful_shutdown=2)


def make_workspace(
    engine: Engine,
    names: list[str],
    reader: _common.DocumentOptions,
    **options: Any,
) -> Workspace:
    """Embed the documents that a page shows, those of an older batch first."""
    import numpy as np

    from docsigma.corpora.documents import distinct
    from docsigma.explore.workspace import Workspace
    from docsigma.posterior import GaussianPosterior

    model = engine.model
    sources = [reader.count(name, model) for name in names]
    every = slice(None)
    texts, ids, given = [], [], []
    numbers: list[int] = []
    for name, source in zip(names, sources, strict=True):
        if source.texts is None:
            raise InputError(f"{name} has counts and no texts to show")
        texts += source.texts(every)
        ids += source.ids(every)
        numbers += [] if source.numbers is None else source.numbers(every)
        given += list(source.labels(every) or [None] * len(source.counts))
    parts = [model.posterior(source.counts[every]) for source in sources]
    return Workspace(
        model,
        GaussianPosterior.concatenate(parts),
        distinct(ids, " ({})"),
        texts,
        given,
        n_unknown=np.concatenate([source.n_unknown for source in sources]),
        n_old=len(parts[0]) if len(parts) > 1 else 0,
        classifier=engine.classifier,
        index=engine.index,
        title=Path(names[-1]).stem,
        numbers=numbers if len(numbers) == len(ids) else None,
        **options,
    )
