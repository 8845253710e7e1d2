"""Saving and loading an index: mapped arrays, JSON, and a graph of neighbours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from docsigma._files import read_json_object
from docsigma._tensors import read_tensors, write_tensors
from docsigma.classifiers import EvidenceClassifier
from docsigma.exceptions import InputError
from docsigma.parts import under
from docsigma.posterior import GaussianPrior
from docsigma.search._neighbours import Neighbours
from docsigma.search.calibration import SameTopicCalibration

if TYPE_CHECKING:
    from docsigma.search.index import GaussianIndex

Index = TypeVar("Index", bound="GaussianIndex")
ARRAYS = {"keys", "mean", "variance", "n_tokens", "classes"}
CSR = ("data", "indices", "indptr")
DOCUMENTS, TENSORS, GRAPH = "documents.json", "settings.safetensors", "graph.usearch"


def write_index(index: GaussianIndex, files: Path, config: dict[str, Any]) -> None:
    """Write the files of an index, and describe them in `config`."""
    arrays: dict[str, Any] = {}
    if index._prior is not None:
        arrays["prior_mean"] = index._prior.mean
        arrays["prior_precision"] = np.asarray(index._prior.precision)
    if index.calibration is not None:
        arrays["log_ratios"] = index.calibration.log_ratios
        arrays["probabilities"] = index.calibration.probabilities
    about: dict[str, Any] = {
        "metric": index.metric,
        "approximate": index.approximate,
        "n_candidates": index.n_candidates,
        "n_documents": len(index),
        "model_digest": index.model_digest,
        "arrays": sorted(index._arrays),
        "n_words": None if index.counts is None else index.counts.shape[1],
        "graph": None,
    }
    if index.classifier is not None:
        own = index.classifier.arrays()
        arrays |= {f"classifier.{name}": array for name, array in own.items()}
    for name, array in index._arrays.items():
        np.save(files / f"{name}.npy", array)
    if index.counts is not None:
        for name in CSR:
            np.save(files / f"counts.{name}.npy", getattr(index.counts, name))
    names = {"ids": index.ids, "labels": index.labels}
    (files / DOCUMENTS).write_text(json.dumps(names), "utf-8")
    write_tensors(files / TENSORS, arrays, {"kind": "index"})
    if index._neighbours is not None:
        about["graph"] = int(index._neighbours._index.ndim)
        index._neighbours.save(files / GRAPH)
    config["index"] = about


def read_index(cls: type[Index], files: Path, config: dict[str, Any]) -> Index:
    """Read what :func:`write_index` wrote; arrays are mapped, not copied."""
    try:
        about = config["index"]
        arrays, _ = read_tensors(files / TENSORS)
        index = cls(
            _classifier(under("classifier.", arrays)),
            metric=about["metric"],
            approximate=about["approximate"],
            n_candidates=about["n_candidates"],
        )
        n_documents, graph = about["n_documents"], about["graph"]
        if not set(about["arrays"]) <= ARRAYS:
            raise KeyError(about["arrays"])
        index._arrays = {name: _map(files, name) for name in about["arrays"]}
        if (n_words := about["n_words"]) is not None:
            parts = tuple(_map(files, f"counts.{name}") for name in CSR)
            index.counts = sp.csr_matrix(parts, shape=(n_documents, n_words))
        index.model_digest = about["model_digest"]
        documents = read_json_object(files / DOCUMENTS, f"{files} has no {DOCUMENTS}")
        index.ids, index.labels = documents["ids"], documents["labels"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"the index in {files.parent} is damaged: {error}") from error
    if "prior_mean" in arrays:
        precision = arrays["prior_precision"]
        index._prior = GaussianPrior(arrays["prior_mean"], precision)
    if "log_ratios" in arrays:
        index.calibration = SameTopicCalibration(
            arrays["log_ratios"], arrays["probabilities"]
        )
    lengths = {len(a) for a in index._arrays.values()} | {len(index.ids)}
    if lengths - {n_documents} or len(index.labels) != n_documents:
        raise InputError(
            f"the index in {files.parent} is damaged: it says {n_documents} documents, "
            f"and its files have {sorted(lengths)}"
        )
    if graph is not None:
        assert index._measure.metric is not None
        path = files / GRAPH
        index._neighbours = Neighbours.load(path, graph, index._measure.metric)
    return index


def _map(files: Path, name: str) -> Any:
    path = files / f"{name}.npy"
    try:
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError:
            # An array without rows cannot be mapped.
            return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is missing or damaged: {error}") from error


def _classifier(arrays: dict[str, Any]) -> EvidenceClassifier | None:
    if not arrays:
        return None
    classifier = EvidenceClassifier()
    # Log ratios do not need the names of classes: numbers take their place.
    classifier.classes_ = np.arange(len(arrays["class_prior_"]))
    classifier.n_features_in_ = arrays["centre_"].size
    classifier.set_arrays(arrays)
    return classifier
