r"""Unknown classes by TEXTOIR's protocol: some classes are known, the rest is open.

    python benchmarks/open_intents.py open-intents/clinc-oos open-intents/stackoverflow

25, 50 or 75 % of the classes are known, in ten draws of our own (TEXTOIR's are not
published). Training rows of the others are left out, also for the embedder; test rows
of the others, and of `oos`, are one open class. `TopicClassifier` with default settings
learns from the training rows, is calibrated on the dev rows of known classes, and
rejects those of unknown p-value `LEVEL` or less; TF-IDF + LR, C chosen on folds of
the training rows, rejects the same share of dev rows by its probability, entropy or
largest logit. No open row chooses anything. Result: results/open-intents.json.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score

import _baselines
from _corpora import _read
from _versions import changed_commit
from docsigma import DocumentEmbedder, TopicClassifier
from docsigma.metrics import entropies
from peers_machine import describe_run

ROOT = Path(__file__).parents[1]
CORPORA = ("open-intents/clinc-oos", "open-intents/stackoverflow")
SHARES, DRAWS = (0.25, 0.5, 0.75), 10
# One fifth of held-out known rows is rejected; the others are measured beside it.
LEVEL, LEVELS = 0.2, (0.05, 0.1, 0.2, 0.3)
OPEN = "<open>"
# Means over ten draws of TEXTOIR's (its README), macro-F1 at 25, 50 and 75 %.
PUBLISHED = {
    "clinc-oos": {
        "MSP (BERT)": [51.2, 72.7, 83.5],
        "DOC": [75.9, 83.9, 87.9],
        "ADB": [78.2, 85.2, 88.9],
        "DA-ADB": [79.9, 85.6, 88.4],
    },
    "stackoverflow": {
        "MSP (BERT)": [37.5, 62.7, 78.7],
        "DOC": [57.3, 76.8, 84.4],
        "ADB": [79.9, 85.5, 86.1],
        "DA-ADB": [82.8, 86.9, 86.8],
    },
}


def read(name: str, part: str) -> tuple[Any, Any]:
    """Return texts and labels of one part of a corpus."""
    folder = Path(os.environ["DOCSIGMA_DATA"]) / name
    texts, labels = _read(folder / f"{part}.jsonl.xz")
    return np.array(texts, dtype=object), np.array(labels)


def scored(predicted: Any, truth: Any) -> dict[str, float]:
    """Return macro-F1 over known classes and the open one, and accuracy, in %."""
    names = np.unique(truth)
    f1 = f1_score(truth, predicted, labels=names, average="macro", zero_division=0)
    return {"f1": 100 * f1, "accuracy": 100 * accuracy_score(truth, predicted)}


def baseline(train: Any, dev: Any, test: Any, truth: Any) -> dict[str, dict[str, Any]]:
    """Return what TF-IDF + LR has with each of its scores."""
    regression = _baselines.Regression().fit(list(train[0]), train[1])
    found = {}
    for texts, key in ((dev, "dev"), (test, "test")):
        counts = regression.words.count(list(texts))
        logits = regression._score(regression._features(counts))
        log_proba = regression.predict_log_proba(list(texts))
        found[key] = {
            "probability": log_proba.max(axis=1),
            "entropy": -entropies(log_proba),
            "largest logit": logits.max(axis=1),
        }
    best = regression.classes_[log_proba.argmax(axis=1)]
    rows = {}
    for name, known in found["dev"].items():
        at = np.quantile(known, LEVEL)
        answer = np.where(found["test"][name] <= at, OPEN, best)
        rows[f"TF-IDF + LR, {name}"] = scored(answer, truth)
    half = np.where(np.exp(log_proba.max(axis=1)) <= 0.5, OPEN, best)
    return rows | {"TF-IDF + LR, probability above one half": scored(half, truth)}


def measure(name: str, share: float, draw: int) -> dict[str, dict[str, float]]:
    """Return the scores of all systems in one draw of known classes."""
    (train, labels), (dev, dev_labels), (test, truth) = (
        read(name, part) for part in ("train", "dev", "test")
    )
    classes = np.setdiff1d(np.unique(labels), ["oos"])
    random = np.random.default_rng(draw)
    known = random.permutation(classes)[: round(share * len(classes))]
    own, held = np.isin(labels, known), np.isin(dev_labels, known)
    truth = np.where(np.isin(truth, known), truth, OPEN)
    topics = TopicClassifier(DocumentEmbedder(random_state=draw))
    topics.fit(list(train[own]), labels[own])
    topics.calibrate(list(dev[held]), dev_labels[held])
    texts, rows = list(test), {}
    best, p_values = topics.predict(texts), topics.unknown_p_value(texts)
    for level in LEVELS:
        answer = np.where(p_values <= level, OPEN, best)
        key = "docsigma" if level == LEVEL else f"docsigma, level {level:g}"
        rows[key] = scored(answer, truth)
    same = topics.predict(texts[:100], unknown=OPEN, level=LEVEL)
    assert (same == np.where(p_values <= LEVEL, OPEN, best)[:100]).all()
    return rows | baseline((train[own], labels[own]), dev[held], test, truth)


def summary(draws: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Return means over draws, and docsigma less each, with paired standard errors."""
    rows: dict[str, Any] = {}
    for system in draws[0]:
        row: dict[str, Any] = {}
        for measured in ("f1", "accuracy"):
            ours = np.array([draw["docsigma"][measured] for draw in draws])
            own = np.array([draw[system][measured] for draw in draws])
            row[measured] = round(float(own.mean()), 2)
            row[f"{measured}_less"] = round(float((ours - own).mean()), 2)
            error = (ours - own).std(ddof=1) / len(draws) ** 0.5
            row[f"{measured}_less_error"] = round(float(error), 2)
        rows[system] = row
    return rows


def main() -> None:
    """Measure some corpora, and keep the rows of the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    path = ROOT / "benchmarks/results/open-intents.json"
    parser.add_argument("--out", type=Path, default=path)
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    run = describe_run(1) | changed_commit(ROOT)
    for name in options.corpora:
        report: dict[str, Any] = {"level": LEVEL, "draws": options.draws, "rows": {}}
        if options.out.exists():
            report = json.loads(options.out.read_text())
        row: dict[str, Any] = {"run": run, "published": PUBLISHED[Path(name).name]}
        for share in SHARES:
            draws = [measure(name, share, draw) for draw in range(options.draws)]
            row[f"{share:.0%}"] = summary(draws)
            print(name, share, json.dumps(row[f"{share:.0%}"]), flush=True)
            report["rows"][Path(name).name] = row
            options.out.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
