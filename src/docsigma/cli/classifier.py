"""`docsigma classifier`: classes with their probabilities."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.cli._known import KnownDocuments
from docsigma.cli._shard import Shard, ShardOption
from docsigma.cli._tables import (
    Blocks,
    TableFile,
    check_table,
    text_column,
    write_table,
)
from docsigma.cli.evaluate import evaluate
from docsigma.cli.explain import explain
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.classifiers import CountsClassifier

app = typer.Typer(
    name="classifier",
    help="Train, use and evaluate a classifier on a model's embeddings.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command()
@_common.with_options(split=_common.Split.train)
def fit(
    model: _common.ModelFolder,
    docs: _common.DocumentsArgument,
    out: Annotated[Path, option("Folder to write.")],
    *,
    kind: Annotated[
        str,
        option(
            "hybrid (words and embeddings), evidence (embeddings by their likelihood), "
            "glcu (with the variances), glc or lr (means only)."
        ),
    ] = "hybrid",
    calibration: Annotated[
        str | None,
        option(
            "Labelled documents that neither MODEL nor the classifier has seen: they "
            "give prediction sets, p-values and triage. Or the share of DOCS to hold "
            "out for it, for example 0.1: a model like MODEL is then fitted to the "
            "rest.",
            "none",
        ),
    ] = None,
    reader: _common.DocumentOptions,
    force: _common.Force = False,
    quiet: _common.Quiet = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Train a classifier on labelled documents and write it to a folder.

    The kinds hybrid and evidence also learn from documents without a label. The hybrid
    learns pairs of words too, where DOCS has texts. The folder holds the model: predict
    and evaluate need nothing else.
    """
    from scipy import sparse

    from docsigma._array_checks import check_choice
    from docsigma.classifiers._pairs import learn_pairs
    from docsigma.classifiers.counts_classifier import KINDS, CountsClassifier
    from docsigma.counts import as_counts
    from docsigma.models.components import known_words

    check_choice("--kind", kind, KINDS)
    _common.check_writable(out, model, docs, calibration, folder=True, force=force)
    if calibration is not None and Path(calibration).resolve() == Path(docs).resolve():
        raise InputError(
            f"--calibration is {docs} itself: it needs documents that the classifier "
            "is not fitted to"
        )
    bar = not (quiet or as_json) and sys.stderr.isatty()
    share = _share(calibration)
    smm = _common.load_model(model, language=reader.language)
    smm.set_params(verbose=bar)
    source = reader.count(docs, smm)
    every, counts = slice(None), source.counts
    labels = list(source.labels(every) or [])
    learns = KINDS[kind].learns_from_unlabelled
    unlabelled = "are used as unlabelled" if learns else "are left out"
    rows, _ = _common.labelled_rows(labels, len(counts), docs, reader, unlabelled)
    if share is not None:
        classifier = _fit_to_the_rest(smm, kind, share, source, labels)
        _save(classifier, out, force, as_json, docs, rows, labels)
        return
    pairs = None
    if source.texts is not None and KINDS[kind].takes == "documents":
        texts, words = source.texts(every), known_words(smm)
        pairs, more = learn_pairs(texts, words, verbose=bar)
        both = [counts[every], more]
        counts = as_counts(sparse.hstack(both, format="csr"))
    classifier = CountsClassifier(smm, kind, verbose=bar)
    classifier.fit(counts, labels, pairs=pairs)
    if calibration is not None:
        held_out = KnownDocuments(classifier, reader, calibration)
        held_out.calibrate()
    _save(classifier, out, force, as_json, docs, rows, labels)


def _share(calibration: str | None) -> float | None:
    """Return the share of the documents to hold out, None if documents are given."""
    try:
        share = float(calibration or "")
    except ValueError:
        return None
    if not 0 < share < 1:
        raise InputError(
            "--calibration must be documents or a share between 0 and 1, got "
            f"{calibration}"
        )
    return share


def _fit_to_the_rest(
    smm: Any, kind: str, share: float, source: Any, labels: list[str | None]
) -> CountsClassifier:
    """Fit model and classifier to some of the documents; calibrate on the others."""
    from sklearn.base import clone

    from docsigma.text import DocumentEmbedder, TopicClassifier

    if source.texts is None:
        raise InputError(
            "--calibration as a share needs texts, to which a model is fitted again, "
            "and these are counts"
        )
    embedder = clone(DocumentEmbedder._of(smm, None))
    topics = TopicClassifier(embedder, kind=kind, calibration=share)
    found: CountsClassifier = topics.fit(source.texts(slice(None)), labels).classifier_
    return found


def _save(
    classifier: CountsClassifier,
    out: Path,
    force: bool,
    as_json: bool,
    docs: str,
    rows: Any,
    labels: list[str | None],
) -> None:
    """Write the classifier, and print what it was made of."""
    classifier.save(out, overwrite=force)
    report = {
        "classifier": str(out),
        "kind": classifier.kind,
        "n_documents": len(rows),
        "n_unlabelled": len(labels) - len(rows),
        "n_classes": len(classifier.classes_),
    }
    shown: dict[str, Any] = {"kind": classifier.kind, "documents": len(rows)}
    shown["classes"] = str(report["n_classes"])
    if classifier.is_calibrated:
        report["n_calibration"] = len(classifier.guarantees)
        shown["calibrated on"] = report["n_calibration"]
    _common.print_report(report, as_json, f"{docs} -> {out}", shown)


@app.command()
@_common.with_options()
def predict(
    clf: _common.ClassifierFolder,
    docs: _common.DocumentsArgument,
    out: TableFile,
    *,
    coverage: Annotated[
        float | None,
        option(
            "Share of documents whose prediction set has the right label.",
            "0.9, if CLF is calibrated",
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Add the probability of each class."),
    ] = False,
    no_text: _common.NoText = False,
    reader: _common.DocumentOptions,
    shard: ShardOption = None,
    force: _common.Force = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Write the label of each document, with its uncertainty.

    A row holds row (in the file, as a spreadsheet counts), id, predicted, probability,
    second, second_probability, entropy (nats: high where the label may be wrong), text,
    label (the document's own, if known), total_variance (unless the model
    gives points), n_tokens and n_unknown; with a calibrated classifier prediction_set
    (labels separated by |) and unknown_p_value (low where it is none of the labels).
    With --probabilities, probability[CLASS] for each class.

    Example: docsigma classifier predict topics tickets.csv --out labels.csv
    """
    import numpy as np

    from docsigma.classifiers.counts_classifier import CountsClassifier
    from docsigma.workers.classify_batches import predicted_columns

    part = Shard.parse(shard)
    if part.is_done(out, force):
        return
    out = part.file(out)
    check_table(out, clf, docs, force=force)
    if coverage is not None and not 0 < coverage < 1:
        raise InputError(f"--coverage must be between 0 and 1, got {coverage:g}")
    classifier = _common.in_language(CountsClassifier.load(clf), reader.language)
    if coverage is not None and not classifier.is_calibrated:
        raise InputError(
            f"--coverage is for prediction sets, and {clf} has none: use "
            "`classifier fit --calibration`"
        )
    source = reader.count(docs, classifier.model_, part.rows)
    n_tokens = source.counts.n_tokens
    tops = []

    def blocks() -> Blocks:
        for rows in source.blocks():
            documents = source.embedded_by(classifier, rows)
            share = 0.9 if coverage is None else coverage
            found = predicted_columns(classifier, documents, share)
            tops.append(found["probability"])
            every = found.pop("probabilities")
            columns = source.named(rows)
            first = ("predicted", "probability", "second", "second_probability")
            columns |= {name: found.pop(name) for name in (*first, "entropy")}
            columns |= text_column(out, source, rows, no_text)
            labels = source.labels(rows)
            if labels is not None:
                columns["label"] = list(labels)
            columns |= found
            columns["n_tokens"] = n_tokens[rows].astype(np.int64)
            columns["n_unknown"] = source.n_unknown[rows]
            yield columns | (every if probabilities else {}), {}

    write_table(out, blocks())
    top = np.concatenate(tops)
    report = {
        "file": str(out),
        "n_documents": len(top),
        "n_classes": len(classifier.classes_),
        "mean_probability": float(top.mean()),
        "n_under_half": int((top < 0.5).sum()),
        "n_empty": int((source.n_tokens == 0).sum()),
    }
    shown = {
        "documents": len(top),
        "mean probability of the label": f"{top.mean():.3f}",
        "labels under one half": report["n_under_half"],
        "documents with no known word": report["n_empty"],
    }
    _common.print_report(report, as_json, f"{docs} -> {out}", shown)


app.command()(evaluate)
app.command()(explain)
