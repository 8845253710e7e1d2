"""The steps of `peers.py` that run in a process of their own.

Each reads ``task.json`` of a folder and gives what goes to ``result.json``; counts and
embeddings pass through the folder as arrays.
"""

from __future__ import annotations

import json
import time
import traceback
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from peers_machine import peak_gib, resident_gib
from peers_systems import SYSTEMS, Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PARTS = ("train", "test")


def work(step: str, folder: Path) -> None:
    """Take one step; a failure is a result too."""
    task = json.loads((folder / "task.json").read_text("utf-8"))
    try:
        result = STEPS[step](folder, task)
    except Exception as error:  # Whatever a peer raises, the others still run.
        traceback.print_exc()
        result = {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    (folder / "result.json").write_text(json.dumps(result), "utf-8")


def prepare(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    """Count the corpus once, for all systems."""
    counts, labels = _load(task["corpus"])
    for part in PARTS:
        rows = _drawn(counts[part].shape[0], task["limit"])
        counts[part] = sp.csr_matrix(counts[part][rows])
        labels[part] = [labels[part][row] for row in rows]
        sp.save_npz(folder / f"{part}.npz", counts[part], compressed=False)
    (folder / "labels.json").write_text(json.dumps(labels), "utf-8")
    return {
        "status": "measured",
        "name": task["corpus"],
        "limit": task["limit"],
        "n_train": counts["train"].shape[0],
        "n_test": counts["test"].shape[0],
        "n_features": counts["train"].shape[1],
        "n_train_tokens": int(counts["train"].sum()),
    }


def _load(name: str) -> tuple[dict[str, sp.csr_matrix], dict[str, list[str]]]:
    if name == "synthetic":
        return _load_synthetic()
    from docsigma_paper.topic_id import load_task

    found = load_task(name)
    labels = {"train": found.train_labels, "test": found.test_labels}
    return {"train": found.train, "test": found.test}, labels


def _load_synthetic() -> tuple[dict[str, sp.csr_matrix], dict[str, list[str]]]:
    """Draw a small corpus; a document's label is its largest true component."""
    from docsigma.corpora import load_corpus

    corpus: Any = load_corpus("synthetic")
    truth = corpus.truth
    embeddings = {"train": truth.train_embeddings, "test": truth.test_embeddings}
    labels = {part: [f"{k}" for k in w.argmax(1)] for part, w in embeddings.items()}
    return {"train": corpus.train.counts, "test": corpus.test.counts}, labels


def _drawn(n_documents: int, limit: int | None) -> list[int]:
    """Choose rows: corpora are often sorted by label, so not the first ones."""
    if limit is None or limit >= n_documents:
        return list(range(n_documents))
    drawn = np.random.default_rng(0).choice(n_documents, limit, replace=False)
    return sorted(drawn.tolist())


def measure(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    """Train one system and embed; the clock runs for its own work only."""
    system = SYSTEMS[task["system"]](Settings(**task["settings"]))
    try:
        system.load()
    except ImportError as error:
        needs = "pip install 'docsigma[bench]'"
        return {"status": "skipped", "reason": f"{error}: {needs}"}
    counts = {
        part: sp.csr_matrix(sp.load_npz(folder / f"{part}.npz")) for part in PARTS
    }
    documents = {part: system.prepare(counts[part]) for part in PARTS}
    before = resident_gib()
    row: dict[str, Any] = {"status": "measured", "library": system.library}
    _, row["fit_seconds"] = _timed(lambda: system.fit(documents["train"]))
    row["fit_peak_gib"] = peak_gib()
    if system.embeds:
        test, seconds = _timed(lambda: system.embed(documents["test"]))
        row["embed_seconds"] = seconds
        row["embed_documents_per_second"] = len(test) / seconds
    row["peak_gib"] = peak_gib()
    row["before_gib"] = before
    row["work_gib"] = row["peak_gib"] - before
    row |= system.facts()
    if system.embeds:
        row["perplexity"] = system.perplexity(counts["test"])
        train = system.embed_training(documents["train"])
        np.savez(folder / "embeddings.npz", train=train, test=test)
    system.close()
    return row


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def judge(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    """Classify by logistic regression on the embeddings."""
    import torch

    from docsigma.classifiers import CrossValidatedLogisticRegression
    from docsigma.metrics.evaluation import evaluate as scores

    torch.set_num_threads(task["settings"]["threads"])
    labels = json.loads((folder / "labels.json").read_text("utf-8"))
    embeddings = np.load(folder / "embeddings.npz")
    classifier = CrossValidatedLogisticRegression()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unconverged C is not the one chosen
        classifier.fit(embeddings["train"], labels["train"])
    log_proba = classifier.predict_log_proba(embeddings["test"])
    found = scores(log_proba, labels["test"], classifier.classes_)
    return {"status": "measured"} | found


STEPS: dict[str, Callable[[Path, dict[str, Any]], dict[str, Any]]] = {
    "prepare": prepare,
    "measure": measure,
    "judge": judge,
}
