"""NVDM's perplexities over its rounds, for some activations and rates.

    python benchmarks/nvdm.py --json benchmarks/results/nvdm.json

Each run is a network on 20 Newsgroups; test and training documents are looked at every
other round. The test documents choose nothing but the baseline's own settings.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docsigma_paper import NVDM
from docsigma_paper.topic_id import load_task

if TYPE_CHECKING:
    from docsigma.models import TrainingPass

RUNS: tuple[tuple[str, int, int, dict[str, Any]], ...] = (
    ("20newsgroups-2k", 50, 16, {"learning_rate": 5e-5, "activation": "relu"}),
    ("20newsgroups-2k", 50, 16, {"learning_rate": 5e-4, "activation": "relu"}),
    ("20newsgroups-2k", 50, 28, {"learning_rate": 2e-4, "n_layers": 1}),
    ("20newsgroups-2k", 50, 16, {"learning_rate": 5e-4}),
    ("20newsgroups-2k", 50, 16, {"learning_rate": 5e-4, "n_layers": 1}),
    ("20newsgroups", 50, 14, {"learning_rate": 2e-4, "activation": "relu"}),
    ("20newsgroups", 50, 12, {"learning_rate": 5e-4, "n_layers": 1}),
    ("20newsgroups", 200, 12, {"learning_rate": 5e-4, "n_layers": 1}),
)


def follow(corpus: str, k: int, rounds: int, options: dict[str, Any]) -> dict[str, Any]:
    """Train once; give the perplexities met on the way."""
    task = load_task(corpus)
    started = time.perf_counter()
    points: list[dict[str, float]] = []

    def look(now: TrainingPass) -> None:
        if now.epoch % 2:
            return
        model = now.snapshot()
        test, train = (model.perplexity(part) for part in (task.test, task.train))
        points.append(
            {
                "round": now.epoch,
                "seconds": round(time.perf_counter() - started, 1),
                "test": test.corpus,
                "test_per_document": test.per_document,
                "train": train.corpus,
                "train_per_document": train.per_document,
                "kl": now.history()[-1]["kl"],
            }
        )
        print(json.dumps(points[-1]), flush=True)

    print(corpus, k, options, flush=True)
    model = NVDM(k, max_iter=rounds, tol=0, random_state=0, **options)
    model.fit(task.train, callback=look)
    return {"corpus": corpus, "K": k, "options": options, "points": points}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, nargs="+", default=range(len(RUNS)))
    parser.add_argument("--rounds", type=int, help="instead of each run's own")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    runs = []
    for number in chosen.runs:
        corpus, k, rounds, options = RUNS[number]
        runs.append(follow(corpus, k, chosen.rounds or rounds, options))
        if chosen.json is not None:
            chosen.json.write_text(json.dumps({"runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
