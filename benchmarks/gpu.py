"""Speed and errors of the fused primitive on a GPU, beside plain torch.

    python benchmarks/gpu.py --json benchmarks/results/gpu.json

A training pass is first moments and gradients, an inference pass first and second
moments. The floor is the larger of the products' operations at the rate of a large
square product of the same rounding, and of the bytes of inputs and outputs at the
rate of a large copy, both measured in the same run. The fused training pass computes
the logits twice, so it has four products where plain torch has three. Calls are timed
back to back, as in a training loop. "Prepared" is the fused primitive where the
loadings are rounded once for many calls, as in inference.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from docsigma.kernels import SoftmaxMoments, softmax_moments
from docsigma.kernels.fused import PreparedLoadings, fused_moments

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

SIZES = [(11314, 56438, k) for k in (50, 100, 200, 400)]
SIZES += [(512, 56438, 100), (2048, 56438, 100)]
NAMES = ("lse", "first", "second", "loading_gradient", "bias_gradient")
# Name: how its products round.
VARIANTS = {
    "torch float32": "float32",
    "torch tf32": "tf32",
    "fused tf32": "16 bits",
    "prepared tf32": "16 bits",
}


def milliseconds(work: Callable[[], object], repeats: int = 5, calls: int = 4) -> float:
    work()
    times = []
    for _ in range(repeats):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        for _ in range(calls):
            work()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) / calls)
    return sorted(times)[repeats // 2]


def ceilings(size: int = 8192) -> dict[str, float]:
    """Measure operations per second by rounding, and bytes per second."""
    rates = {}
    for name, dtype, setting in (
        ("float32", torch.float32, "highest"),
        ("tf32", torch.float32, "high"),
        ("16 bits", torch.bfloat16, "highest"),
    ):
        torch.set_float32_matmul_precision(setting)
        a = torch.randn(size, size, device="cuda").to(dtype)
        out = torch.empty_like(a)
        took = milliseconds(lambda a=a, out=out: torch.mm(a, a, out=out))
        rates[name] = 2e3 * size**3 / took
    source = torch.randn(2**29, device="cuda")
    target = torch.empty_like(source)
    rates["bytes"] = 8e3 * 2**29 / milliseconds(lambda: target.copy_(source))
    return rates


def problem(n: int, v: int, k: int) -> tuple[Tensor, ...]:
    source = torch.Generator("cuda").manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return 0.3 * torch.randn(*shape, generator=source, device="cuda")

    loadings = normal(v, k)
    loadings *= torch.rand(v, k, generator=source, device="cuda") < 0.3
    bias = -torch.arange(1.0, v + 1, device="cuda").log()
    order = torch.randperm(v, generator=source, device="cuda")
    bias = (bias - bias.logsumexp(0))[order]
    weights = 300 * torch.rand(n, generator=source, device="cuda")
    return normal(n, k), loadings, bias, weights


def moments(
    variant: str,
    given: tuple[Tensor, ...],
    prepared: PreparedLoadings,
    **wanted: object,
) -> SoftmaxMoments:
    kind, rounding = variant.split()
    if kind == "prepared":
        return fused_moments(*given[:3], prepared=prepared, **wanted)
    if kind == "fused":
        return fused_moments(*given[:3], **wanted)
    setting = "high" if rounding == "tf32" else "highest"
    torch.set_float32_matmul_precision(setting)
    return softmax_moments(*given[:3], **wanted)


def errors(got: SoftmaxMoments, exact: SoftmaxMoments) -> dict[str, float]:
    found = {}
    for name in NAMES:
        a, b = getattr(got, name).double(), getattr(exact, name)
        found[name] = float((a - b).norm() / b.norm())
    return found


def measure(n: int, v: int, k: int, rates: dict[str, float]) -> list[dict[str, object]]:
    given = problem(n, v, k)
    weights = given[3]
    double = tuple(x.double() for x in given)
    exact = softmax_moments(*double[:3], second=True, weights=double[3])
    del double
    n_bytes = {
        "training": 4 * (2 * n * k + 2 * v * k + 2 * v + 2 * n),
        "inference": 4 * (3 * n * k + v * k + v + n),
    }
    prepared = PreparedLoadings.of(*given[1:3], second=True)
    rows: list[dict[str, object]] = []
    for variant, rounding in VARIANTS.items():
        both = moments(variant, given, prepared, second=True, weights=weights)
        row: dict[str, object] = {"variant": variant, "n": n, "V": v, "K": k}
        row["errors"] = errors(both, exact)
        del both
        for name, options in (
            ("training", {"first": True, "weights": weights}),
            ("inference", {"second": True}),
        ):
            products = 4 if name == "training" and "torch" not in variant else 3
            floor = 1e3 * max(
                products * 2 * n * v * k / rates[rounding],
                n_bytes[name] / rates["bytes"],
            )
            took = milliseconds(
                lambda x=variant, o=options: moments(x, given, prepared, **o),
                calls=4 if n > 4000 else 20,
            )
            row[name] = {"ms": took, "floor_ms": floor, "ratio": took / floor}
        rows.append(row)
        cells = "  ".join(
            f"{name} {row[name]['ms']:7.3f} ms (floor {row[name]['floor_ms']:6.3f})"
            for name in ("training", "inference")
        )
        shown = " ".join(f"{e:.1e}" for e in row["errors"].values())
        print(f"n {n:5d} K {k:3d} {variant:13s} {cells}  errors {shown}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rates = ceilings()
    print(", ".join(f"{name} {rate / 1e12:.1f} T/s" for name, rate in rates.items()))
    rows = [row for size in SIZES for row in measure(*size, rates)]
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "rates": rates,
        "rows": rows,
    }
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
