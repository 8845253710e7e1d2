"""`docsigma info` and `docsigma corpora`: contents of a folder, names of corpora."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.exceptions import InputError


def info(
    folder: Annotated[
        Path,
        typer.Argument(help="Made by `fit`, `classifier fit`, `index` or `count`."),
    ],
    as_json: _common.JsonFlag = False,
) -> None:
    """Describe a folder: a model, a classifier, an index, or counts."""
    from docsigma._files import CONFIG, read_json_object
    from docsigma.counts import is_counts_folder
    from docsigma.search._generations import FORMAT

    if folder.is_file():
        raise InputError(
            f"{folder} is a file, and `info` describes folders: those that `fit`, "
            "`classifier fit`, `index` or `count` wrote"
        )
    config = (
        read_json_object(folder / CONFIG, "") if (folder / CONFIG).is_file() else {}
    )
    if config.get("format") == FORMAT:
        _describe_index(folder, as_json)
    elif is_counts_folder(folder):
        _describe_counts(folder, as_json)
    else:
        _describe_model(folder, as_json)


def _describe_index(folder: Path, as_json: bool) -> None:
    from docsigma.search import DocumentIndex

    found = DocumentIndex.load(folder)
    index = found.index
    labels = [label for label in index.labels if label is not None]
    report: dict[str, Any] = {
        "kind": "index",
        "n_documents": len(index),
        "n_labelled": len(labels),
        "labels": sorted(set(labels)),
        "metric": index.metric,
        "approximate": index._neighbours is not None,
        "probabilities": index.calibration is not None or index._has_classes,
        "n_excerpts": len(found._excerpts),
        "model": type(found.model).__name__,
        "n_components": int(found.model.n_components),
        "model_digest": index.model_digest,
    }
    rows = {
        "documents": report["n_documents"],
        "with a label": report["n_labelled"],
        "different labels": len(report["labels"]),
        "with the beginning of their text": report["n_excerpts"],
        "ranked by": index.metric.replace("_", " "),
        "search": "approximate" if report["approximate"] else "exact",
        "probabilities": "yes" if report["probabilities"] else "no",
        "model": f"{report['model']} of size {report['n_components']}",
    }
    _common.print_report(report, as_json, f"Index in {folder}", rows)


def _describe_counts(folder: Path, as_json: bool) -> None:
    from docsigma.counts import DiskCounts

    found = DiskCounts(folder)
    report: dict[str, Any] = {
        "kind": "counts",
        "n_documents": found.n_documents,
        "n_features": found.n_features,
        "nnz": found.nnz,
        "bytes": found.nbytes,
        "has_vocabulary": found.vocabulary is not None,
    }
    rows = {
        "documents": report["n_documents"],
        "words in the vocabulary": report["n_features"],
        "counts that are not zero": report["nnz"],
        "bytes on disk": report["bytes"],
    }
    _common.print_report(report, as_json, f"Counts in {folder}", rows)


def _describe_model(model: Path, as_json: bool) -> None:
    from docsigma.classifiers.counts_classifier import FOLDER_KIND, CountsClassifier
    from docsigma.models.registry import restore_model
    from docsigma.persistence import read_model

    stored = read_model(model)
    about: dict[str, Any] = {}
    if stored.kind == FOLDER_KIND:
        found = CountsClassifier.load(model)
        smm, classes = found.model_, [str(name) for name in found.classes_]
        about = {"classifier": found.kind, "n_classes": len(classes)}
        about["classes"] = classes
    else:
        smm = restore_model(stored, model)
    views = getattr(smm, "views_", None)
    if views is not None:
        about["languages"] = dict(views)
    last = smm.history_[-1]
    parameters = smm.get_params(deep=False)
    parameters = {k: _plain(v) for k, v in parameters.items() if k != "verbose"}
    report: dict[str, Any] = {
        "kind": type(smm).__name__,
        "n_components": int(smm.n_components),
        "n_features": int(smm.n_features_in_),
        "has_vocabulary": smm.vocabulary_ is not None
        or bool(getattr(smm, "vocabularies_", None)),
        "n_iter": int(smm.n_iter_),
        "converged": bool(smm.converged_),
        "bound": last["bound"],
        "kl": last["kl"],
        "sparsity": float((smm.components_ == 0).mean()),
        "training_seconds": last["seconds"],
        "parameters": parameters,
        **about,
    }
    words = _common.number(smm.n_features_in_, 0)
    known = "known" if report["has_vocabulary"] else "not known"
    points = smm.gives_points
    kl = "penalty on the length" if points else "KL to the prior"
    ended = "the bound had settled" if smm.converged_ else "all passes were done"
    rows = {
        "size of an embedding": str(smm.n_components),
        "words": f"{words} ({known})",
        "rounds" if report["kind"] == "NVDM" else "passes": (
            f"{smm.n_iter_} in {last['seconds']:.0f} s"
        ),
        "training ended": ended,
        "objective" if points else "bound": _common.number(last["bound"], 0),
        f"{kl}, per document": f"{last['kl']:.2f} nats",
        "loadings that are zero": f"{100 * report['sparsity']:.1f} %",
    }
    rows |= {name: str(value) for name, value in parameters.items()}
    if views is not None:
        rows["languages"] = ", ".join(views)
    if "classifier" in about:
        rows["classifier on its embeddings"] = about["classifier"]
        rows["classes"] = f"{about['n_classes']}: {', '.join(about['classes'][:5])}"
        rows["classes"] += ", ..." if about["n_classes"] > 5 else ""
    _common.print_report(report, as_json, f"{report['kind']} in {model}", rows)


def _plain(value: object) -> Any:
    """Return a parameter in a form that JSON can hold; others become text."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return " ".join(str(value).split())


def corpora(as_json: _common.JsonFlag = False) -> None:
    """List the named corpora."""
    from docsigma.corpora import available_corpora

    found = available_corpora()
    if as_json:
        _common.print_json([asdict(entry) for entry in found])
        return
    rows = _common.table("Corpora", "name", "at hand", "what", "how")
    for entry in found:
        at_hand = "yes" if entry.available else "no"
        rows.add_row(entry.name, at_hand, entry.description, entry.how)
    _common.show(rows, "Any file or folder of documents works in place of a name.")
