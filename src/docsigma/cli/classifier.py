"""`docsigma classifier`: classes with their probabilities."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.cli._shard import Shard, ShardOption
from docsigma.cli._tables import (
    Blocks,
    TableFile,
    check_table,
    text_column,
    write_table,
)
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

PLOTS = (
    "reliability.png",
    "risk_coverage.png",
    "confusion.png",
    "cross_entropy_by_length.png",
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
            "give prediction sets, p-values and triage.",
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
    smm = _common.load_model(model, language=reader.language)
    smm.set_params(verbose=bar)
    source = reader.count(docs, smm)
    every, counts = slice(None), source.counts
    labels = list(source.labels(every) or [])
    learns = KINDS[kind].learns_from_unlabelled
    unlabelled = "are used as unlabelled" if learns else "are left out"
    rows, _ = _common.labelled_rows(labels, len(counts), docs, reader, unlabelled)
    pairs = None
    if source.texts is not None and KINDS[kind].takes == "documents":
        texts, words = source.texts(every), known_words(smm)
        pairs, more = learn_pairs(texts, words, verbose=bar)
        both = [counts[every], more]
        counts = as_counts(sparse.hstack(both, format="csr"))
    classifier = CountsClassifier(smm, kind, verbose=bar)
    classifier.fit(counts, labels, pairs=pairs)
    if calibration is not None:
        held_out = _KnownDocuments(classifier, reader, calibration)
        held_out.calibrate()
    classifier.save(out, overwrite=force)
    report = {
        "classifier": str(out),
        "kind": kind,
        "n_documents": len(rows),
        "n_unlabelled": len(labels) - len(rows),
        "n_classes": len(classifier.classes_),
    }
    shown = {"kind": kind, "documents": len(rows), "classes": str(report["n_classes"])}
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


@app.command()
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
    known = _KnownDocuments(classifier, reader, docs)
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
    for name, scores in ordered:
        shares = [f"{scores[k]:.1f} %" for k in ("precision", "recall", "f1")]
        by_class.add_row(name, str(scores["n_documents"]), *shares)
    _common.show(by_class)
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


app.command()(explain)


class _KnownDocuments:
    """Counted documents of the classifier's classes."""

    def __init__(
        self, classifier: CountsClassifier, reader: _common.DocumentOptions, docs: str
    ) -> None:
        import numpy as np

        self.classifier = classifier
        self.source = reader.count(docs, classifier.model_)
        n_documents = len(self.source.counts)
        found = self.source.labels(slice(None))
        rows, labels = _common.labelled_rows(found, n_documents, docs, reader)
        known = np.isin(labels, classifier.classes_)
        if not known.any():
            raise InputError(
                f"none of the {len(labels)} documents has one of the classifier's "
                f"{len(classifier.classes_)} classes"
            )
        self.rows, self.labels = rows[known], labels[known]
        self.n_unlabelled = n_documents - len(rows)
        self.n_unseen = int((~known).sum())
        self.unseen = sorted(set(labels[~known].tolist()))

    def calibrate(self) -> None:
        """Calibrate the classifier on the documents; texts are cut too."""
        if self.source.texts is None:
            documents = self.source.embedded_by(self.classifier, self.rows)
            self.classifier.calibrate(documents, self.labels)
        else:
            texts = list(self.source.texts(self.rows))
            self.classifier.calibrate_on_texts(texts, self.labels)

    def sets(self, proba: Any, coverage: float) -> Any:
        """Return the prediction sets for these probabilities."""
        lengths = self.source.counts.n_tokens + self.source.n_unknown
        return self.classifier.guarantees.sets(proba, lengths[self.rows], coverage)

    def predict_log_proba(self) -> Any:
        """Return log probabilities, computed in blocks where documents are on disk."""
        import numpy as np

        from docsigma.counts._base import BLOCK

        size = len(self.rows) if self.source.counts.in_memory else BLOCK
        parts = []
        for some in np.split(self.rows, range(size, len(self.rows), size)):
            documents = self.source.embedded_by(self.classifier, some)
            parts.append(self.classifier.predict_log_proba(documents))
        return np.concatenate(parts)


def _plots(
    folder: Path, classifier: CountsClassifier, known: _KnownDocuments, log_proba: Any
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
