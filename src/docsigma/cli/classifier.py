"""`docsigma classifier`: topic labels with their probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._tables import check_table, open_table
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["app"]

app = typer.Typer(
    name="classifier",
    help="Train, use and judge a topic classifier on a model's embeddings.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

ClassifierFolder = Annotated[
    Path, typer.Argument(metavar="CLF", help="Folder made by `classifier fit`.")
]


@app.command()
def fit(
    model: _common.ModelFolder,
    docs: _common.DocumentsArgument,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    kind: Annotated[
        str, typer.Option(help="glcu (uses the variances), or glc or lr (means only).")
    ] = "glcu",
    split: _common.SplitOption = _common.Split.train,
    text_column: _common.TextColumn = "text",
    label_column: _common.LabelColumn = "label",
    id_column: _common.IdColumn = "id",
    vocabulary: _common.VocabularyFile = None,
    as_json: _common.JsonFlag = False,
) -> None:
    """Train a classifier on labelled documents and write it to a folder.

    Documents without a label are counted and left out. The folder holds the model too:
    predict and evaluate need nothing else.
    """
    from docsigma.classifiers.topic_classifier import KINDS, TopicClassifier

    if kind not in KINDS:
        raise InputError(f"`--kind` must be one of {', '.join(KINDS)}, got {kind!r}")
    _common.check_writable(out, folder=True)
    smm = _common.load_model(model)
    reader = _common.DocumentOptions(
        text_column, label_column, id_column, vocabulary, split
    )
    source = reader.count(docs, smm)
    n_documents, counts = len(source.counts), source.counts
    found = source.labels(slice(None))
    rows, labels = _common.labelled_rows(found, n_documents, docs)
    some = counts if len(rows) == n_documents else counts[rows]
    classifier = TopicClassifier.fit(smm, some, labels, kind=kind)
    classifier.save(out)
    report = {
        "classifier": str(out),
        "kind": kind,
        "n_documents": len(rows),
        "n_unlabelled": n_documents - len(rows),
        "n_classes": len(classifier.classes_),
    }
    if as_json:
        _common.print_json(report)
        return
    table = _common.table(f"{docs} -> {out}", "what", ">value")
    table.add_row("kind", kind)
    table.add_row("documents", _common.number(len(rows), 0))
    table.add_row("classes", str(report["n_classes"]))
    _common.show(table)


@app.command()
def predict(
    clf: ClassifierFolder,
    docs: _common.DocumentsArgument,
    out: Annotated[Path, typer.Option(help="File: .parquet, .npz or .jsonl.")],
    split: _common.SplitOption = _common.Split.test,
    text_column: _common.TextColumn = "text",
    id_column: _common.IdColumn = "id",
    vocabulary: _common.VocabularyFile = None,
    as_json: _common.JsonFlag = False,
) -> None:
    """Write a label, and how sure it is, for each document.

    A row holds id, label, probability[CLASS] for each class, entropy (nats),
    total_variance (unless the model gives points), n_tokens and n_unknown.
    """
    import numpy as np

    from docsigma.classifiers.topic_classifier import TopicClassifier
    from docsigma.posterior import GaussianPosterior

    check_table(out)
    classifier = TopicClassifier.load(clf)
    reader = _common.DocumentOptions(
        text_column=text_column,
        label_column=None,
        id_column=id_column,
        vocabulary=vocabulary,
        split=split,
    )
    source = reader.count(docs, classifier.model)
    n_tokens = source.counts.n_tokens.astype(np.int64)
    tops = []
    with open_table(out) as write:
        for rows in source.blocks():
            q = classifier.embed(source.counts[rows])
            log_proba = classifier.predict_log_proba(q)
            proba = np.exp(log_proba)
            winners = classifier.classes_[log_proba.argmax(axis=1)]
            columns: dict[str, Any] = {"id": source.ids(rows)}
            columns["label"] = [str(winner) for winner in winners]
            for name, column in zip(classifier.classes_, proba.T, strict=True):
                columns[f"probability[{name}]"] = np.ascontiguousarray(column)
            surprise = np.where(proba > 0, log_proba, 0.0)
            columns["entropy"] = -(proba * surprise).sum(axis=1)
            if isinstance(q, GaussianPosterior):
                columns["total_variance"] = q.total_variance
            columns["n_tokens"] = n_tokens[rows]
            columns["n_unknown"] = source.n_unknown[rows]
            write(columns)
            tops.append(proba.max(axis=1))
    top = np.concatenate(tops)
    n_unsure = int((top < 0.5).sum())
    report = {
        "file": str(out),
        "n_documents": len(top),
        "n_classes": len(classifier.classes_),
        "mean_probability": float(top.mean()),
        "n_under_half": n_unsure,
    }
    if as_json:
        _common.print_json(report)
        return
    table = _common.table(f"{docs} -> {out}", "what", ">value")
    table.add_row("documents", _common.number(len(top), 0))
    table.add_row("mean probability of the label", f"{top.mean():.3f}")
    table.add_row("labels under one half", _common.number(n_unsure, 0))
    _common.show(table)


@app.command()
def evaluate(
    clf: ClassifierFolder,
    docs: _common.DocumentsArgument,
    plots: Annotated[Path | None, typer.Option(help="Folder for plots.")] = None,
    split: _common.SplitOption = _common.Split.test,
    text_column: _common.TextColumn = "text",
    label_column: _common.LabelColumn = "label",
    id_column: _common.IdColumn = "id",
    vocabulary: _common.VocabularyFile = None,
    as_json: _common.JsonFlag = False,
) -> None:
    """Judge a classifier on labelled documents.

    Documents without a label, and those of classes that training has not seen, are
    counted and left out.
    """
    import numpy as np

    from docsigma.classifiers.topic_classifier import TopicClassifier
    from docsigma.metrics import (
        accuracy,
        accuracy_at_coverage,
        brier_score,
        cross_entropy,
        expected_calibration_error,
        risk_coverage_curve,
    )

    classifier = TopicClassifier.load(clf)
    reader = _common.DocumentOptions(
        text_column, label_column, id_column, vocabulary, split
    )
    source = reader.count(docs, classifier.model)
    n_documents = len(source.counts)
    found = source.labels(slice(None))
    labelled, labels = _common.labelled_rows(found, n_documents, docs)
    known = np.isin(labels, classifier.classes_)
    unseen = sorted(set(labels[~known].tolist()))
    if not known.any():
        raise InputError(
            f"none of the {len(labels)} documents has one of the classifier's "
            f"{len(classifier.classes_)} classes"
        )
    chosen, labels = labelled[known], labels[known]
    size = len(chosen) if source.counts.in_memory else _common.BLOCK
    log_proba = np.concatenate(
        [
            classifier.predict_log_proba(classifier.embed(source.counts[some]))
            for some in np.split(chosen, range(size, len(chosen), size))
        ]
    )
    proba, classes = np.exp(log_proba), classifier.classes_

    def ece(**options: Any) -> float:
        return expected_calibration_error(proba, labels, classes=classes, **options)

    report: dict[str, Any] = {
        "accuracy": 100 * accuracy(proba, labels, classes=classes),
        "cross_entropy": cross_entropy(log_proba, labels, classes=classes, log=True),
        "brier": brier_score(proba, labels, classes=classes),
        "ece": ece(),
        "ece_equal_mass": ece(strategy="quantile"),
        "ece_classwise": ece(scope="classwise"),
        "aurc": risk_coverage_curve(proba, labels, classes=classes).area,
        "accuracy_most_certain_half": 100
        * accuracy_at_coverage(proba, labels, 0.5, classes=classes),
        "n_documents": len(labels),
        "n_unlabelled": n_documents - len(labelled),
        "n_unseen": int((~known).sum()),
        "unseen_classes": unseen,
        "kind": classifier.kind,
    }
    if plots is not None:
        report["plots"] = _plots(
            plots, log_proba, labels, classes, source.counts.n_tokens[chosen]
        )
    if as_json:
        _common.print_json(report)
        return
    rows = _common.table(f"{clf} ({classifier.kind}) on {docs}", "what", ">value")
    rows.add_row("documents", _common.number(len(labels), 0))
    rows.add_row("accuracy", f"{report['accuracy']:.2f} %")
    rows.add_row(
        "accuracy of the most certain half",
        f"{report['accuracy_most_certain_half']:.2f} %",
    )
    rows.add_row("cross-entropy", f"{report['cross_entropy']:.3f} nats")
    rows.add_row("Brier score", f"{report['brier']:.3f}")
    rows.add_row("expected calibration error", f"{report['ece']:.3f}")
    rows.add_row("area under risk-coverage", f"{report['aurc']:.3f}")
    _common.show(rows)
    if unseen:
        _common.show(
            f"left out: {report['n_unseen']} documents of {len(unseen)} classes that "
            f"training has not seen ({', '.join(unseen[:5])})"
        )


def _plots(
    folder: Path,
    log_proba: np.ndarray[Any, Any],
    labels: np.ndarray[Any, Any],
    classes: np.ndarray[Any, Any],
    n_tokens: np.ndarray[Any, Any],
) -> list[str]:
    import numpy as np

    from docsigma.experiments.figures import save_figures
    from docsigma.metrics import plots

    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {folder}: {error.strerror}"
        ) from error
    proba = np.exp(log_proba)
    figures = {
        "reliability.png": plots.plot_reliability(proba, labels, classes=classes),
        "risk_coverage.png": plots.plot_risk_coverage(proba, labels, classes=classes),
        "confusion.png": plots.plot_confusion_matrix(proba, labels, classes=classes),
        "cross_entropy_by_length.png": plots.plot_cross_entropy_by_length(
            log_proba, labels, n_tokens, classes=classes
        ),
    }
    return save_figures(figures, folder)
