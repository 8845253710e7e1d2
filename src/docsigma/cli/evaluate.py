"""`docsigma classifier evaluate`: how often a classifier is right, and where not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.cli._known import KnownDocuments
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.classifiers import CountsClassifier

# Classes that `evaluate` prints: more would push the summary off the screen.
CLASSES = 20
PLOTS = (
    "reliability.png",
    "risk_coverage.png",
    "confusion.png",
    "cross_entropy_by_length.png",
)


@_common.with_options()
def evaluate(
    clf: _common.ClassifierFolder,
    docs: _common.DocumentsArgument,
    plots: Annotated[Path | None, option("Folder for plots.", "none are drawn")] = None,
    *,
    coverage: Annotated[
        float, option("Share of documents whose prediction set has the right label.")
    ] = 0.9,
    reader: _common.DocumentOptions,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the plots, if they exist.")
    ] = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Evaluate a classifier on labelled documents.

    Documents without a label, or of a class not seen in training, are left out.

    Example: docsigma classifier evaluate topics tickets.csv --plots plots
    """
    import numpy as np

    from docsigma.classifiers.counts_classifier import CountsClassifier
    from docsigma.metrics import (
        accuracy_at_coverage,
        confused_pairs,
        entropies,
        error_detection_area,
        expected_calibration_error,
        risk_coverage_curve,
        scores_by_class,
    )
    from docsigma.metrics.evaluation import evaluate as evaluate_probabilities

    if not 0 < coverage < 1:
        raise InputError(f"--coverage must be between 0 and 1, got {coverage:g}")
    if plots is not None:
        _check_plots(plots, force)
    classifier = _common.in_language(CountsClassifier.load(clf), reader.language)
    known = KnownDocuments(classifier, reader, docs)
    labels, classes = known.labels, classifier.classes_
    log_proba = known.predict_log_proba()
    proba = np.exp(log_proba)
    right = classes[proba.argmax(axis=1)] == labels

    def ece(**options: Any) -> float:
        return expected_calibration_error(proba, labels, classes=classes, **options)

    report: dict[str, Any] = {
        **evaluate_probabilities(log_proba, labels, classes),
        "ece_equal_mass": ece(strategy="quantile"),
        "ece_classwise": ece(scope="classwise"),
        "aurc": risk_coverage_curve(proba, labels, classes=classes).area,
        "accuracy_most_certain_half": 100
        * accuracy_at_coverage(proba, labels, 0.5, classes=classes),
        **scores_by_class(proba, labels, classes=classes),
        "confused_pairs": confused_pairs(proba, labels, classes=classes),
        "error_detection": error_detection_area(entropies(log_proba), ~right),
        "n_documents": len(labels),
        "n_unlabelled": known.n_unlabelled,
        "n_unseen": known.n_unseen,
        "unseen_classes": known.unseen,
        "kind": classifier.kind,
    }
    if classifier.is_calibrated:
        chosen = known.sets(proba, coverage)
        columns = np.searchsorted(classes, labels)
        report["coverage_wanted"] = coverage
        report["coverage"] = float(chosen[np.arange(len(labels)), columns].mean())
        report["mean_set_size"] = float(chosen.sum(axis=1).mean())
    if plots is not None:
        report["plots"] = _plots(plots, classifier, known, log_proba)
    shown = {
        "documents": len(labels),
        "accuracy": f"{report['accuracy']:.2f} %",
        "macro-F1": f"{report['macro_f1']:.2f} %",
        "accuracy of the most certain half": (
            f"{report['accuracy_most_certain_half']:.2f} %"
        ),
        "cross-entropy": f"{report['cross_entropy']:.3f} nats",
        "Brier score": f"{report['brier']:.3f}",
        "expected calibration error": f"{report['ece']:.3f}",
        "area under risk-coverage": f"{report['aurc']:.3f}",
        "errors found by entropy, area": f"{report['error_detection']:.3f}",
    }
    if "coverage" in report:
        shown[f"prediction sets at {100 * coverage:g} %"] = (
            f"{100 * report['coverage']:.1f} % right, "
            f"{report['mean_set_size']:.2f} labels"
        )
    title = f"{clf} ({classifier.kind}) on {docs}"
    _common.print_report(report, as_json, title, shown)
    if as_json:
        return
    by_class = _common.table(
        "By class, the worst F1 first",
        *("class", ">documents", ">precision", ">recall", ">F1"),
    )
    ordered = sorted(report["per_class"].items(), key=lambda item: item[1]["f1"])
    for name, scores in ordered[:CLASSES]:
        shares = [f"{scores[k]:.1f} %" for k in ("precision", "recall", "f1")]
        by_class.add_row(name, str(scores["n_documents"]), *shares)
    _common.show(by_class)
    if len(ordered) > CLASSES:
        _common.show(f"and {len(ordered) - CLASSES} more classes: --json prints all")
    if report["confused_pairs"]:
        pairs = _common.table(
            "Most confused", "class", "predicted", ">documents", ">of the class"
        )
        for pair in report["confused_pairs"]:
            share = f"{pair['per_cent']:.1f} %"
            names = pair["label"], pair["predicted"]
            pairs.add_row(*names, str(pair["n_documents"]), share)
        _common.show(pairs)
    if plots is not None:
        _common.show(f"plots in {plots}: {', '.join(PLOTS)}")
    if known.unseen:
        _common.show(
            f"left out: {known.n_unseen} documents of {len(known.unseen)} classes "
            f"not seen in training ({', '.join(known.unseen[:5])})"
        )


def _plots(
    folder: Path, classifier: CountsClassifier, known: KnownDocuments, log_proba: Any
) -> list[str]:
    import numpy as np

    from docsigma.metrics import plots

    _common.make_folder(folder)
    proba, name, labels = np.exp(log_proba), classifier.kind, known.labels
    n_tokens = known.source.counts.n_tokens[known.rows]
    of: Any = {"classes": classifier.classes_}
    figures = (
        plots.plot_reliability(proba, labels, **of),
        plots.plot_risk_coverage({name: proba}, labels, **of),
        plots.plot_confusion_matrix(proba, labels, **of),
        plots.plot_cross_entropy_by_length({name: log_proba}, labels, n_tokens, **of),
    )
    return plots.save_figures(dict(zip(PLOTS, figures, strict=True)), folder)


def _check_plots(folder: Path, force: bool) -> None:
    """Refuse to overwrite plots without `force`."""
    existing = [name for name in PLOTS if (folder / name).exists()]
    if existing and not force:
        raise InputError(
            f"--plots {folder} has {existing[0]} already: overwrite the plots with "
            "--force, or choose another folder"
        )
    if not folder.exists():
        _common.check_writable(folder, folder=True)
