"""Speed of the one primitive against the peak of matrix products, in the same run.

    python benchmarks/primitive.py --json benchmarks/results/primitive-cpu.json

A product of a pass costs 2 n V K operations: logits and sums of t are two, squares of t
a third, the gradient of T another. What else a pass does, one exponential a word and
point above all, counts as nothing. The peak is the best rate of a large square product;
both are measured in turn, so that a machine with moods is fair to both. Products with
one side of K are slower than a square one: "bare" is the rate of the pass's own
products, in the same tiles, with nothing between them.
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

if TYPE_CHECKING:
    from collections.abc import Callable

TILE = TileSizes().words
SIZES = ((1024, 56438, 100), (1024, 56438, 200), (1024, 56438, 400), (11268, 2000, 50))
SQUARE = 3072


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started


def bare_products(
    points: torch.Tensor, table: torch.Tensor, *, squares: bool, gradient: bool
) -> Callable[[], None]:
    """Make the matrix products of a pass, and nothing else."""
    n, k = points.shape
    v = len(table)
    extended = points.new_zeros(table.shape[1], n)
    kept = points.new_zeros(v if gradient else min(TILE, v), n)
    sums, second = torch.zeros_like(extended), points.new_zeros(k, n)
    factors, out = points.new_zeros(n, k), points.new_zeros(v, k)

    def run() -> None:
        for start in range(0, v, TILE):
            tile = table[start : start + TILE]
            p = kept[start : start + TILE] if gradient else kept[: len(tile)]
            torch.mm(tile, extended, out=p)
            sums.addmm_(tile.t(), p)
            if squares:
                second.addmm_(tile[:, :k].t(), p)
        if gradient:
            torch.mm(kept, factors, out=out)

    return run


def measure(
    n: int, v: int, k: int, device: str, repeats: int
) -> list[dict[str, object]]:
    source = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=source).to(device)

    words = SoftmaxWords(normal(v, k) * 0.1, normal(v))
    points, square = normal(n, k), normal(SQUARE, SQUARE)
    weights = normal(n).abs() * 300
    out = torch.empty_like(square)
    workspace = Workspace()
    passes: dict[str, tuple[dict[str, Any], int]] = {
        "posterior (g1)": ({"first": True}, 2),
        "inference (g1, g2)": ({"second": True}, 3),
        "training (g1, GT, gm)": ({"first": True, "weights": weights}, 3),
    }
    rows = []
    for name, (options, products) in passes.items():

        def run(options: dict[str, Any] = options) -> None:
            softmax_moments(points, words, workspace=workspace, **options)

        bare = bare_products(
            points,
            words.table,
            squares="second" in options,
            gradient="weights" in options,
        )
        run()
        bare()
        peaks, rates, bare_rates = [], [], []
        work = 2e-9 * products * n * v * k
        for _ in range(repeats):
            peak = seconds(lambda: torch.mm(square, square, out=out))
            peaks.append(2e-9 * SQUARE**3 / peak)
            rates.append(work / seconds(run))
            bare_rates.append(work / seconds(bare))
        rows.append(
            {
                "pass": name,
                "n": n,
                "V": v,
                "K": k,
                "device": device,
                "threads": torch.get_num_threads(),
                "gflops": statistics.median(rates),
                "peak_gflops": statistics.median(peaks),
                "part_of_peak": statistics.median(rates) / statistics.median(peaks),
                "bare_part_of_peak": statistics.median(bare_rates)
                / statistics.median(peaks),
                "best_gflops": max(rates),
                "best_peak_gflops": max(peaks),
            }
        )
        print(
            f"{device} n {n} V {v} K {k}  {name:22s} {rows[-1]['gflops']:7.0f} GFLOP/s,"
            f" peak {rows[-1]['peak_gflops']:.0f}: {rows[-1]['part_of_peak']:.2f}"
            f" (bare products {rows[-1]['bare_part_of_peak']:.2f};"
            f" best {max(rates):.0f} of {max(peaks):.0f})",
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for size in SIZES:
        rows += measure(*size, arguments.device, arguments.repeats)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
