"""`docsigma classifier`: topic labels with their probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from docsigma.cli import _common, _counted
from docsigma.cli._common import option
from docsigma.cli._tables import Blocks, check_table, write_table
from docsigma.exceptions import InputError

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
@_common.with_options(split=_common.Split.train)
def fit(
    model: _common.ModelFolder,
    docs: _common.DocumentsArgument,
    out: Annotated[Path, option("Folder to write.")],
    *,
    kind: Annotated[
        str, option("glcu (uses the variances), or glc or lr (means only).")
    ] = "glcu",
    reader: _common.DocumentOptions,
    force: _common.Force = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Train a classifier on labelled documents and write it to a folder.

    Documents without a label are counted and left out. The folder holds the model too:
    predict and evaluate need nothing else.
    """
    from docsigma._array_checks import check_choice
    from docsigma.classifiers.topic_classifier import KINDS, TopicClassifier

    check_choice("--kind", kind, KINDS)
    _common.check_writable(out, model, docs, folder=True, force=force)
    smm = _common.load_model(model)
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
    shown = {"kind": kind, "documents": len(rows), "classes": str(report["n_classes"])}
    _common.print_report(report, as_json, f"{docs} -> {out}", shown)


@app.command()
@_common.with_options("label_column", label_column=None)
def predict(
    clf: ClassifierFolder,
    docs: _common.DocumentsArgument,
    out: Annotated[Path, option("File to write: .parquet, .csv, .npz or .jsonl.")],
    *,
    reader: _common.DocumentOptions,
    force: _common.Force = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Write a label, and how sure it is, for each document.

    A row holds id, label, probability[CLASS] for each class, entropy (nats),
    total_variance (unless the model gives points), n_tokens and n_unknown.
    """
    import numpy as np

    from docsigma.classifiers.topic_classifier import TopicClassifier
    from docsigma.posterior import GaussianPosterior

    check_table(out, clf, docs, force=force)
    classifier = TopicClassifier.load(clf)
    source = reader.count(docs, classifier.model)
    n_tokens = source.counts.n_tokens.astype(np.int64)
    tops = []

    def blocks() -> Blocks:
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
            tops.append(proba.max(axis=1))
            yield columns, {}

    write_table(out, blocks())
    top = np.concatenate(tops)
    n_unsure = int((top < 0.5).sum())
    report = {
        "file": str(out),
        "n_documents": len(top),
        "n_classes": len(classifier.classes_),
        "mean_probability": float(top.mean()),
        "n_under_half": n_unsure,
    }
    shown = {
        "documents": len(top),
        "mean probability of the label": f"{top.mean():.3f}",
        "labels under one half": n_unsure,
    }
    _common.print_report(report, as_json, f"{docs} -> {out}", shown)


@app.command()
@_common.with_options()
def evaluate(
    clf: ClassifierFolder,
    docs: _common.DocumentsArgument,
    plots: Annotated[Path | None, option("Folder for plots.", "none are drawn")] = None,
    *,
    reader: _common.DocumentOptions,
    as_json: _common.JsonFlag = False,
) -> None:
    """Judge a classifier on labelled documents.

    Documents without a label, and those of classes that training has not seen, are
    counted and left out.
    """
    import numpy as np

    from docsigma.classifiers.topic_classifier import TopicClassifier
    from docsigma.experiments.evaluation import evaluate as evaluate_probabilities
    from docsigma.metrics import (
        accuracy_at_coverage,
        expected_calibration_error,
        risk_coverage_curve,
    )

    classifier = TopicClassifier.load(clf)
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
    size = len(chosen) if source.counts.in_memory else _counted.BLOCK
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
        **evaluate_probabilities(log_proba, labels, classes),
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
            plots,
            classifier.kind.upper(),
            log_proba,
            labels,
            classes,
            source.counts.n_tokens[chosen],
        )
    shown = {
        "documents": len(labels),
        "accuracy": f"{report['accuracy']:.2f} %",
        "accuracy of the most certain half": (
            f"{report['accuracy_most_certain_half']:.2f} %"
        ),
        "cross-entropy": f"{report['cross_entropy']:.3f} nats",
        "Brier score": f"{report['brier']:.3f}",
        "expected calibration error": f"{report['ece']:.3f}",
        "area under risk-coverage": f"{report['aurc']:.3f}",
    }
    title = f"{clf} ({classifier.kind}) on {docs}"
    _common.print_report(report, as_json, title, shown)
    if unseen and not as_json:
        _common.show(
            f"left out: {report['n_unseen']} documents of {len(unseen)} classes that "
            f"training has not seen ({', '.join(unseen[:5])})"
        )


def _plots(
    folder: Path, name: str, log_proba: Any, labels: Any, classes: Any, n_tokens: Any
) -> list[str]:
    import numpy as np

    from docsigma.experiments.figures import save_figures
    from docsigma.metrics import plots

    _common.make_folder(folder)
    proba = np.exp(log_proba)
    figures = {
        "reliability.png": plots.plot_reliability(proba, labels, classes=classes),
        "risk_coverage.png": plots.plot_risk_coverage(
            {name: proba}, labels, classes=classes
        ),
        "confusion.png": plots.plot_confusion_matrix(proba, labels, classes=classes),
        "cross_entropy_by_length.png": plots.plot_cross_entropy_by_length(
            {name: log_proba}, labels, n_tokens, classes=classes
        ),
    }
    return save_figures(figures, folder)
