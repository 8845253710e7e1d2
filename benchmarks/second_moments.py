"""Second moments of the words on a CPU, by the size of what exists at once.

    python benchmarks/second_moments.py --json benchmarks/results/second-moments.json

Drawn words and points, four draws per document, one thread; the least CPU seconds of
the repeats, by the bytes of a tile's products and the points of a block.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

from docsigma.kernels import second_moments, softmax_moments


def measure(k: int, v: int, n: int, repeats: int) -> list[dict[str, float]]:
    """Time every pair of sizes, in turn."""
    source = torch.Generator().manual_seed(0)
    loadings = 0.1 * torch.randn(v, k, generator=source)
    bias = -torch.arange(1.0, v + 1).log()
    inputs = 0.3 * torch.randn(n, 4, k, generator=source)
    weights = 50 * torch.rand(n, 4, generator=source)
    lse = softmax_moments(inputs.flatten(0, 1), loadings, bias).lse.view(n, 4)
    given = inputs, lse, weights, loadings, bias, loadings
    times: dict[tuple[int, int], float] = {}
    for _ in range(repeats):
        for size in (8, 32, 128):
            for points in (256, 1024, 4096):
                begun = time.process_time()
                second_moments(*given, product_bytes=size * 2**20, points=points)
                spent = time.process_time() - begun
                times[size, points] = min(spent, times.get((size, points), spent))
    return [
        {"components": k, "words": v, "mib": size, "points": points, "seconds": seconds}
        for (size, points), seconds in times.items()
    ]


def main() -> None:
    """Measure two numbers of components."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rows = [*measure(50, 20_000, 400, chosen.repeats)]
    rows += measure(100, 10_000, 300, chosen.repeats)
    for row in rows:
        print(row)
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
