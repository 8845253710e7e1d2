"""Speed of the one primitive against the same matrix products alone.

    python benchmarks/primitive.py --json benchmarks/results/primitive.json

A pass costs 4 n V K floating-point operations (logits and one product with them), 6
with second moments, and about five sweeps over n x V numbers in cache. The floor is the
time of the bare products on one block, measured in the same run; the ratio is the
result.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from docsigma.kernels import softmax_moments

if TYPE_CHECKING:
    from collections.abc import Callable

# Points of the bare products: what the kernel takes at once.
POINTS = 1024


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    work()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return min(times)


def measure(n: int, v: int, k: int, device: str) -> list[dict[str, object]]:
    source = torch.Generator().manual_seed(0)
    loadings = (torch.randn(v, k, generator=source) * 0.1).to(device)
    bias = torch.randn(v, generator=source).to(device)
    points = torch.randn(n, k, generator=source).to(device)
    weights = (torch.rand(n, generator=source) * 300).to(device)
    block = min(n, POINTS)
    probabilities = torch.rand(block, v, generator=source).to(device)
    transposed = loadings.t()
    squares = torch.cat([loadings, loadings**2], dim=1)
    logits = torch.empty_like(probabilities)
    scale = n / block

    def bare(factors: torch.Tensor) -> float:
        one = seconds(lambda: torch.mm(points[:block], transposed, out=logits))
        return scale * (one + seconds(lambda: probabilities @ factors))

    def bare_training() -> float:
        one = seconds(lambda: torch.mm(points[:block], transposed, out=logits))
        return scale * (one + seconds(lambda: probabilities.t() @ points[:block]))

    rows = []
    for name, options, flops, floor in (
        ("posterior (g1)", {"first": True}, 4, bare(loadings)),
        ("inference (g1, g2)", {"second": True}, 6, bare(squares)),
        ("training (GT, gm)", {"weights": weights}, 4, bare_training()),
    ):
        took = seconds(lambda o=options: softmax_moments(points, loadings, bias, **o))
        rows.append(
            {
                "pass": name,
                "n": n,
                "V": v,
                "K": k,
                "device": device,
                "block_rows": block,
                "seconds": took,
                "floor_seconds": floor,
                "ratio": took / floor,
                "gflops": flops * n * v * k / took / 1e9,
            }
        )
        print(
            f"{device} n {n} V {v} K {k}  {name:20s} {took:.3f} s, bare products "
            f"{floor:.3f} s, ratio {took / floor:.2f}, "
            f"{rows[-1]['gflops']:.0f} GFLOP/s",
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for size in ((512, 56438, 100), (11268, 2000, 50), (512, 56438, 400)):
        rows += measure(*size, arguments.device)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
