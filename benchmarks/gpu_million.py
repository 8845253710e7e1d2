r"""A million documents fitted and embedded on one GPU, and what keeps it busy.

    python benchmarks/gpu_million.py --json benchmarks/results/million-gpu.json

Documents are drawn as by `big_corpus.py`, held in memory. The busy share is the part of
the time in which a kernel ran, sampled by the driver ten times a second; the share of
the products is that of matrix products among the kernels' time, by torch's profiler.
On a machine without a GPU it runs with the numbers of documents given, for tests.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch.profiler import ProfilerActivity, profile

from big_corpus import BLOCK, draw_block, draw_truth
from docsigma import BayesianSMM


def _draw(arguments: tuple[int, int, int]) -> sp.csr_matrix:
    number, size, n_features = arguments
    truth = draw_truth(n_features, 0)
    return draw_block(truth, size, np.random.default_rng([0, number]))[0]


def draw(n_documents: int, n_features: int, processes: int) -> sp.csr_matrix:
    """Draw documents, in several processes."""
    sizes = [min(BLOCK, n_documents - i) for i in range(0, n_documents, BLOCK)]
    jobs = [(i, size, n_features) for i, size in enumerate(sizes, start=1)]
    with ProcessPoolExecutor(processes) as pool:
        return sp.vstack(list(pool.map(_draw, jobs)), format="csr")


class Busy:
    """Samples how busy the GPU is, as the driver says it."""

    def __enter__(self) -> Self:
        self.process = None
        if shutil.which("nvidia-smi"):
            query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
            self.process = subprocess.Popen(
                ["nvidia-smi", *query, "-lms", "100"], stdout=subprocess.PIPE, text=True
            )
        self.begun = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = round(time.perf_counter() - self.begun, 2)
        self.share: float | None = None
        if self.process is not None:
            self.process.terminate()
            lines = self.process.communicate()[0].split()
            samples = [float(line) for line in lines if line.isdigit()]
            self.share = round(float(np.mean(samples)) / 100, 3) if samples else None


def kernels(model: BayesianSMM, counts: sp.csr_matrix) -> dict[str, Any]:
    """Return the kernels that take most of one pass, as parts of their time."""
    fitted = BayesianSMM(**(model.get_params() | {"max_iter": 1, "tol": 0.0}))
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as found:
        fitted.fit(counts)
    times = {e.key: float(e.self_device_time_total) for e in found.key_averages()}
    total = sum(times.values()) or 1.0
    foremost = sorted(times, key=lambda name: -times[name])[:8]
    return {name[:80]: round(times[name] / total, 3) for name in foremost}


def main() -> None:
    """Draw, fit and embed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    counts = draw(chosen.documents, chosen.features, chosen.processes)
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "n_documents": counts.shape[0],
        "n_features": counts.shape[1],
        "n_components": chosen.components,
        "nnz": counts.nnz,
        "passes": chosen.passes,
    }
    model = BayesianSMM(
        chosen.components, max_iter=chosen.passes, tol=0.0, random_state=0
    )
    model.fit(counts[: min(BLOCK, counts.shape[0])])
    with Busy() as fit:
        model.fit(counts)
    report["fit"] = {"seconds": fit.seconds, "busy": fit.share}
    with Busy() as embed:
        q = model.posterior(counts)
    report["embed"] = {"seconds": embed.seconds, "busy": embed.share}
    report["embed"]["documents_per_second"] = round(len(q) / embed.seconds)
    if torch.cuda.is_available():
        report["gpu_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
        report["kernels"] = kernels(model, counts[: 4 * BLOCK])
    print(json.dumps(report, indent=1))
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
