"""Speed of a pass over the words for a few points, against that for many.

    python benchmarks/few_points.py --json benchmarks/results/few-points.json

A pass for n points is two products with the table of the words, 4 n V K operations; it
reads the table, 4 V K bytes, at least once. For few points the bytes count, and how the
library makes its products: "columns" has a row of points per word, as for many points,
over a table that lies word by word; "rows" has a row of words per point, over a table
that lies component by component. Both are measured in turn, on one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from docsigma.kernels import SoftmaxWords, TileSizes, Workspace, softmax_moments
from docsigma.metrics.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable

POINTS = (1, 2, 4, 8, 16, 32, 64, 256)


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - started)


def measure(n: int, v: int, k: int, repeats: int) -> dict[str, Any]:
    """Time both ways, and reading the table once."""
    source = torch.Generator().manual_seed(0)
    loadings = torch.randn(v, k, generator=source) * 0.1
    by_component = SoftmaxWords(loadings, torch.randn(v, generator=source))
    by_word = SoftmaxWords.of_table(by_component.table.contiguous())
    points = torch.randn(n, k, generator=source) * 0.1
    workspace = Workspace()

    def one(words: SoftmaxWords, most: int) -> Callable[[], object]:
        def run() -> object:
            sizes = TileSizes(few_points=most)
            return softmax_moments(
                points, words, first=True, workspace=workspace, sizes=sizes
            )

        return run

    ways = {
        "columns": one(by_word, 0),
        "rows": one(by_component, POINTS[-1]),
        "read": by_component.table.sum,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, way in ways.items():
            spent = milliseconds(way)
            if turn:
                times[name].append(spent)
    found = {name: statistics.median(spent) for name, spent in times.items()}
    return {"n": n, "V": v, "K": k, "milliseconds": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=56438)
    parser.add_argument("--components", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for n in POINTS:
        rows.append(measure(n, given.words, given.components, given.repeats))
        spent = rows[-1]["milliseconds"]
        line = ", ".join(f"{name} {value:.1f} ms" for name, value in spent.items())
        print(f"{n} points: {line}", flush=True)
    if given.json is not None:
        report = {"rows": rows, "environment": environment(on_gpu=False)}
        given.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
