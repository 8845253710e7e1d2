"""`docsigma index`: an index of documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.cli._counted import CountedSource
    from docsigma.search import DocumentIndex


@_common.with_options()
def index(
    model: _common.ModelFolder,
    docs: _common.DocumentsArgument,
    out: Annotated[Path, option("Folder to write.")],
    *,
    classifier: Annotated[
        Path | None,
        option(
            "Classifier of the same model (hybrid or evidence): its classes are "
            "topics, beside new ones.",
            "none",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        option(
            "What ranks: joint (shared words, and one topic or two), words, "
            "same_topic, same_text (one document in two languages, or two documents), "
            "cosine, wasserstein2 or kl.",
            "joint; same_text for a model of several languages",
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        option(
            "Labelled documents to calibrate the probabilities of one class on.",
            "those of DOCS with a label",
        ),
    ] = None,
    excerpt: Annotated[int, option("Characters of each document to keep.")] = 120,
    reader: _common.DocumentOptions,
    force: _common.Force = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Embed documents and write an index of them, for `search` and `serve`.

    The folder also holds the model, and the beginnings of the texts: keep it as safe as
    them, or leave them out with --excerpt 0. With a classifier, results are ranked by
    the probability that they are of the query's topic, one of its classes or another.

    Example: docsigma index model tickets.csv --out tickets-index
    """
    _common.check_writable(
        out, model, docs, classifier, calibration, folder=True, force=force
    )
    if calibration is not None and classifier is None:
        raise InputError("--calibration is for probabilities, which need --classifier")
    built = empty_index(model, classifier, metric, reader.language)
    source = reader.count(docs, built.model)
    _add(built, source, excerpt)
    if source.texts is not None:
        built.learn_typical(source.texts(slice(None)))
    found = built.index
    if classifier is not None and calibration is not None:
        source = reader.count(calibration, built.model)
        labels = list(source.labels(slice(None)) or [None] * len(source.counts))
        found.calibrate(built.embed(source.counts), labels)
        if found.calibration is None:
            raise InputError(f"{calibration} has too few labels to learn from")
    elif classifier is not None and found.metric in ("joint", "same_topic"):
        found.calibrate()
    built.save(out, overwrite=force)
    report = {
        "index": str(out),
        "n_documents": len(found),
        "metric": found.metric,
        "approximate": found._neighbours is not None,
        "probabilities": found.calibration is not None
        or found._has_classes
        or found.metric == "same_text",
    }
    shown: dict[str, Any] = {
        "documents": len(found),
        "ranked by": found.metric.replace("_", " "),
        "search": "approximate" if report["approximate"] else "exact",
        "probabilities": "yes" if report["probabilities"] else "no",
    }
    _common.print_report(report, as_json, f"{docs} -> {out}", shown)


@_common.with_options()
def add(
    index: Annotated[Path, typer.Argument(help="Index folder, made by `index`.")],
    docs: _common.DocumentsArgument,
    *,
    excerpt: Annotated[int, option("Characters of each document to keep.")] = 120,
    reader: _common.DocumentOptions,
    as_json: _common.JsonFlag = False,
) -> None:
    """Embed documents and add them to an index.

    Ids that the index has are refused, and then nothing is added. Servers that read the
    index keep what they have until they are started again.

    Example: docsigma add tickets-index february.csv
    """
    from docsigma.search import DocumentIndex

    found = _common.in_language(DocumentIndex.load(index), reader.language)
    if found._language is not None:
        raise InputError(
            f"the documents of {index} are in {found._language}, not in "
            f"{reader.language}"
        )
    before, source = len(found), reader.count(docs, found.model)
    known = set(found.index.ids)
    if again := [name for name in source.ids(slice(None)) if name in known]:
        raise InputError(
            f"{index} already has {len(again)} of the ids of {docs}, the first is "
            f"{again[0]!r}: each document needs an id of its own (--id-column)"
        )
    _add(found, source, excerpt)
    found.save(index, overwrite=True)
    report = {"index": str(index), "n_added": len(found) - before}
    report["n_documents"] = len(found)
    shown = {"documents added": report["n_added"], "documents": len(found)}
    _common.print_report(report, as_json, f"{docs} -> {index}", shown)


def _add(index: DocumentIndex, source: CountedSource, excerpt: int) -> None:
    """Add documents to an index, in blocks; say which labels are no classes."""
    known = getattr(index.embedder, "classes_", None)
    if known is not None and (labels := source.labels(slice(None))):
        names = {str(name) for name in known}
        new = [str(one) for one in labels if one is not None and str(one) not in names]
        if distinct := list(dict.fromkeys(new)):
            typer.echo(
                f"docsigma: the classifier lacks {len(distinct)} of the labels, the "
                f"first is {distinct[0]!r}: documents with them ({len(new)}) are of "
                "new topics",
                err=True,
            )
    for rows in source.blocks():
        index.add_counts(
            source.counts[rows],
            source.ids(rows),
            source.labels(rows),
            None if source.texts is None else source.texts(rows),
            excerpt=excerpt,
        )


def empty_index(
    model: Path,
    classifier: Path | None,
    metric: str | None,
    language: str | None = None,
) -> DocumentIndex:
    """Return an index without documents; refuse a classifier of another model."""
    from docsigma.classifiers.counts_classifier import CountsClassifier
    from docsigma.search import DocumentIndex

    smm = _common.load_model(model, language=language)
    if metric is None:
        metric = "joint" if language is None else "same_text"
    if classifier is None:
        return DocumentIndex(smm, metric=metric)
    found = _common.in_language(CountsClassifier.load(classifier), language)
    _common.check_same_model(f"the classifier {classifier}", found.model_, smm, model)
    return DocumentIndex(found, metric=metric)
