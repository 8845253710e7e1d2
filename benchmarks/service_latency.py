r"""Time that a single document waits for its answer, at a steady rate.

    cd $DOCSIGMA_DATA/open-intents/clinc150
    docsigma fit train.jsonl.xz --out model --components 50
    docsigma classifier fit model train.jsonl.xz --calibration dev.jsonl.xz --out teams
    python benchmarks/service_latency.py model --classifier teams --docs test.jsonl.xz

It starts `docsigma serve` and asks for single documents, 20 per second: five runs of 20
seconds for each path. The clients are on the same machine. Times count from when a
request was due. Nothing else should run; the load average before each run is written
beside it. On a machine that is busy, `nice -n -10` before the command goes first.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import Any

from _versions import changed_commit
from docsigma import load_corpus, load_model, read_documents
from docsigma.metrics.environment import environment
from service_load import Server, single_documents

ROOT = Path(__file__).parents[1]
GOAL_MS = 40


def texts_of(docs: str) -> list[str]:
    found = read_documents(docs) if Path(docs).exists() else load_corpus(docs).test
    assert found.texts is not None
    return [text for text in found.texts if text.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--classifier", type=Path)
    parser.add_argument("--docs", default="20newsgroups", help="a corpus or a file")
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    texts = texts_of(chosen.docs)[: chosen.requests]
    model: Any = load_model(chosen.model)
    options = () if chosen.classifier is None else ("--classifier", chosen.classifier)
    paths = ["/embed"] if chosen.classifier is None else ["/embed", "/classify"]
    server = Server(chosen.model, *options)
    runs: list[dict[str, Any]] = []
    try:
        for _ in range(chosen.runs):
            for path in paths:
                load = {"path": path, "load_average_before": os.getloadavg()[0]}
                rate, n = chosen.rate, chosen.requests
                found = single_documents(server, texts, rate, n, path)
                runs.append(load | found)
                print(runs[-1], flush=True)
    finally:
        server.stop()
    by_path = {p: [r["p95_ms"] for r in runs if r["path"] == p] for p in paths}
    report = {
        "docs": "/".join(Path(chosen.docs).parts[-2:]),
        "n_components": int(model.n_components),
        "n_words": int(model.n_features_in_),
        "n_cpus": os.cpu_count(),
        # Below 0 where the server and its clients go before other jobs.
        "priority": os.nice(0),
        "goal_ms": GOAL_MS,
        "median_p95_ms": {p: statistics.median(found) for p, found in by_path.items()},
        "n_runs_in_goal": {
            p: sum(p95 <= GOAL_MS for p95 in found) for p, found in by_path.items()
        },
        "runs": runs,
        **changed_commit(ROOT),
        "environment": environment(on_gpu=False),
    }
    text = json.dumps(report, indent=1)
    print(text)
    if chosen.json is not None:
        chosen.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
