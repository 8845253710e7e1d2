"""Constants of the classifiers, compared on training documents alone.

    python benchmarks/choices.py 20newsgroups --components 100

A fifth of the training documents stands for test documents (the last ones of each group
of 20 Newsgroups, whose test documents are later; drawn at random elsewhere). Each row
has the cross-entropy of the held-out documents, whole and cut, with one constant
changed, and how it differs from that of the constant as it is, in paired standard
errors (above 0: worse). Rows replace older ones of the same constant and corpus.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from _topic_id import Setting, fit_hybrid, prepare
from docsigma import EvidenceClassifier
from docsigma_paper.corpora import register
from topic_id import draw_labels

SCORE: list[tuple[str, str, list[Any]]] = [
    ("_class_gaussians", "BETWEEN_STRENGTH", [5.0, 20.0, 80.0]),
    ("_class_gaussians", "WITHIN_STRENGTH", [0.1, 0.3, 1.0]),
    ("_class_gaussians", "LEAST_WITHIN", [0.0, 0.35, 0.7]),
    ("_class_gaussians", "MOST_BETWEEN", [1.0, 3.0, 1e9]),
    ("_likelihood_factors", "BURST_VARIANCE", [1.0, 2.0, 4.0]),
]
FEW: list[tuple[str, str, list[Any]]] = [
    ("_class_gaussians", "BETWEEN_STRENGTH", [5.0, 20.0, 80.0]),
    ("_class_gaussians", "LEAST_WITHIN", [0.0, 0.35, 0.7]),
    ("_class_gaussians", "MOST_BETWEEN", [1.0, 3.0, 1e9]),
    ("_evidence_choices", "UNLABELLED_WEIGHT", [0.1, 0.3, 1.0]),
    ("hybrid", "START", [(0.5, 0.5), (0.7, 0.3), (0.9, 0.1)]),
]
MIXED: list[tuple[str, str, list[Any]]] = [
    ("hybrid", "SHORT_WEIGHT", [0.05, 0.2, 1.0]),
    (
        "_hybrid_search",
        "GAINS",
        [{"C": c, "scale": 0.001, "soft": 0.0} for c in (0.0, 0.003, 0.01, 0.03)],
    ),
    ("_words", "SHORT_TOKENS", [3, 10, 30]),
]


def score_losses(setting: Setting) -> dict[str, Any]:
    """Return losses per document of the score, by length."""
    clf = EvidenceClassifier(covariance="diagonal")
    clf.fit(setting.posterior, setting.labels, groups=setting.groups)
    return _losses(setting, clf.classes_, lambda _, q: clf.predict_log_proba(q))


def hybrid_losses(setting: Setting) -> dict[str, Any]:
    """Return losses per document of the hybrid, by length."""
    clf = fit_hybrid(setting, setting.labels)
    return _losses(
        setting, clf.classes_, lambda counts, q: clf.predict_log_proba((counts, q))
    )


def few_losses(setting: Setting) -> dict[str, Any]:
    """Return losses of hybrid and score with one and with five labels per class."""
    found = {}
    counts, q = setting.tests[0]
    for per_class in (1, 5):
        parts: dict[str, list[Any]] = {"hybrid": [], "score": []}
        for draw in range(2):
            some, _ = draw_labels(setting.labels, per_class, draw)
            clf = fit_hybrid(setting, some)
            codes = np.searchsorted(clf.classes_, setting.test_labels)
            rows = np.arange(len(codes))
            own = clf.score_.predict_log_proba(q)
            parts["hybrid"].append(-clf.predict_log_proba((counts, q))[rows, codes])
            parts["score"].append(-own[rows, codes])
        for kind, losses in parts.items():
            found[f"{kind}, {per_class} per class"] = np.mean(losses, axis=0)
    return found


def _losses(setting: Setting, classes: Any, log_proba: Any) -> dict[str, Any]:
    codes = np.searchsorted(classes, setting.test_labels)
    rows = np.arange(len(codes))
    return {
        str(n or "whole"): -log_proba(*pair)[rows, codes]
        for n, pair in setting.tests.items()
    }


def compare(setting: Setting, constants: Any, losses_of: Any) -> list[dict[str, Any]]:
    """Change one constant at a time."""
    base = losses_of(setting)
    table = []
    for file, name, values in constants:
        module = importlib.import_module(f"docsigma.classifiers.{file}")
        kept = getattr(module, name)
        for value in values:
            begun = time.perf_counter()
            setattr(module, name, value)
            losses = base if value == kept else losses_of(setting)
            setattr(module, name, kept)
            cells = {}
            for key, own in losses.items():
                apart = own - base[key]
                error = max(float(apart.std()) / len(apart) ** 0.5, 1e-12)
                cells[key] = [
                    round(float(own.mean()), 4),
                    round(float(apart.mean()) / error, 1),
                ]
            row = {"constant": name, "value": value, "is": kept, "cells": cells}
            row["seconds"] = round(time.perf_counter() - begun, 1)
            print(row, flush=True)
            table.append(row)
    return table


STUDIES = {
    "score": (SCORE, score_losses),
    "hybrid": (MIXED, hybrid_losses),
    "few": (FEW, few_losses),
}


def main() -> None:
    """Compare the constants on one corpus."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--constants", nargs="+", help="some of them (default: all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    chosen = parser.parse_args()
    register()
    setting = prepare(chosen.corpus, chosen.components, 0, develop=True)
    path = chosen.out / "choices.json"
    rows = json.loads(path.read_text()) if path.exists() else []
    for study in chosen.studies:
        constants, losses_of = STUDIES[study]
        if chosen.constants:
            constants = [c for c in constants if c[1] in chosen.constants]
        key = {"corpus": Path(chosen.corpus).name, "study": study}
        found = [key | row for row in compare(setting, constants, losses_of)]
        names = [row["constant"] for row in found]
        rows = [
            row
            for row in rows
            if not (key.items() <= row.items() and row["constant"] in names)
        ]
        rows += found
        temporary = path.with_suffix(".part")
        temporary.write_text(json.dumps(rows, indent=1) + "\n")
        temporary.replace(path)


if __name__ == "__main__":
    main()
