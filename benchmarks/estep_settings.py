"""What each setting of the E-step's Newton loop is worth: passes and bound without it.

    python benchmarks/estep_settings.py --json benchmarks/results/estep-settings.json

Per corpus and number of components, a default model is fitted on texts, and unseen
documents are embedded once per variant: one setting at a time switched off, halved or
doubled. Passes over the words are what an embedding costs; the bound is the loop's own,
per token, as a difference to that of the defaults in per cent. Test documents only
count passes here: nothing is chosen by their labels.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bounds import load
from docsigma import DocumentEmbedder
from docsigma.covariances import Diagonal
from docsigma.estep import NewtonSettings, infer
from docsigma.kernels import CountTensor

NEVER = 10**6
VARIANTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "whole Newton steps at first": {"damping": 1.0},
    "length never from gradients": {"shortest_length": 0.8, "longest_length": 0.8},
    "no bounds on the length": {"shortest_length": 0.0, "longest_length": 1e9},
    "no caution": {"caution": 1.0},
    "no longest step": {"reach": 1e9},
    "bound alone judges": {"most_unclear": 0.0, "rounding": 0.0},
    "no fading": {"ramp": 0.0},
    "no extrapolation": {"patience": NEVER},
    "blocks never cut down": {"alive": 0.0},
    "no steps on frequent words": {"large_vocabulary": NEVER},
    "ten steps on frequent words": {"frequent_steps": 10},
    "frequent words: a half": {"frequent_part": 2},
    "frequent words: an eighth": {"frequent_part": 8},
    "curvature of the corpus alone": {"own_part": 0.0},
    "twice as much of own words": {"own_part": 0.8},
}
CORPORA = ("20newsgroups", "switchboard", "docstrings", "searchsnippets", "clinc150")


def measure(corpus: str, k: int, chosen: argparse.Namespace) -> list[dict[str, Any]]:
    train, test = load(corpus)
    embedder = DocumentEmbedder(k, device="cpu", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        embedder.fit(train[: chosen.documents])
    fitted: Any = embedder.model_
    model = fitted._model()
    matrix = fitted.vocabulary_.count(test[: chosen.test_documents]).counts
    counts = CountTensor(matrix.astype(np.float32), model.bias)
    tokens = float(counts.n_tokens.sum())
    rows: list[dict[str, Any]] = []
    for name, changed in VARIANTS.items():
        settings = dataclasses.replace(NewtonSettings(), **changed)
        found = infer(counts, model, Diagonal(), settings=settings)
        row = {"corpus": corpus, "components": k, "variant": name}
        row["passes"] = round(float(found.n_iter.double().mean()), 3)
        row["most_passes"] = int(found.n_iter.max())
        row["not_converged"] = int((~found.converged).sum())
        row["bound_per_token"] = float(found.bound.sum()) / tokens
        first = rows[0] if rows else row
        ratio = row["bound_per_token"] / first["bound_per_token"]
        row["lower_percent"] = round(100 * (ratio - 1), 4)
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--components", nargs="+", type=int, default=[20, 100])
    parser.add_argument("--documents", type=int, default=4000, help="to train on")
    parser.add_argument("--test-documents", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    rows = []
    for corpus in chosen.corpora:
        for k in chosen.components:
            rows += measure(corpus, k, chosen)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
