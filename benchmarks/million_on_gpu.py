r"""One million documents fitted and embedded on one GPU, and how busy it is.

    python benchmarks/million_on_gpu.py --json benchmarks/results/million-on-gpu.json
    python benchmarks/million_on_gpu.py --documents 2000 --features 300 --components 4 \
        --passes 2 --device cpu --json quick.json

The corpus is drawn as big_corpus.py does and kept in a folder. Fit and embedding are
timed once each, after a small run that compiles the kernels. Meanwhile `nvidia-smi` is
asked five times a second for the share of time in which a kernel ran: its mean is the
busy share. Then the profiler says, for one pass over a part of the documents and for
their embedding, which kernels take the GPU's time and how much of the wall clock they
fill: what is left is the bottleneck on the host.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from big_corpus import make_counts, peak_gib
from docsigma import BayesianSMM
from docsigma.counts import DiskCounts
from docsigma.counts.memory import as_counts
from peers_machine import describe_run

QUERY = ["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "-lms", "200"]
QUERY += ["--format=csv,noheader,nounits"]
TOP = 8


@contextlib.contextmanager
def sampled(found: dict[str, Any]) -> Iterator[None]:
    """Ask `nvidia-smi` in the block; put the means into `found` after it."""
    if shutil.which("nvidia-smi") is None or not torch.cuda.is_available():
        yield
        return
    asked = subprocess.Popen(QUERY, stdout=subprocess.PIPE, text=True)
    try:
        yield
    finally:
        asked.terminate()
        lines = asked.communicate()[0].splitlines()
    rows = [line.split(",") for line in lines if line.count(",") == 1]
    with contextlib.suppress(ValueError):
        busy, used = np.array(rows, dtype=float).T
        found["gpu_busy_share"] = float(busy.mean()) / 100
        found["gpu_busy_samples"] = len(busy)
        found["gpu_memory_gib"] = float(used.max()) / 1024


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """Do work once; return what it gave, its seconds and how busy the GPU was."""
    found: dict[str, Any] = {}
    with sampled(found):
        started = time.perf_counter()
        result = work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        found["seconds"] = time.perf_counter() - started
    return result, found


def profiled(work: Callable[[], Any]) -> dict[str, Any]:
    """Return which kernels take the time, and the share of the wall clock they fill."""
    gpu = torch.cuda.is_available()
    kind = torch.profiler.ProfilerActivity
    with torch.profiler.profile(
        activities=[kind.CPU, *([kind.CUDA] if gpu else [])]
    ) as p:
        started = time.perf_counter()
        work()
        if gpu:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - started
    rows = p.key_averages()

    def spent(row: Any) -> float:
        name = "self_device_time_total" if gpu else "self_cpu_time_total"
        return float(getattr(row, name)) / 1e6

    rows = sorted(rows, key=spent, reverse=True)
    return {
        "seconds": seconds,
        "kernel_share": sum(map(spent, rows)) / seconds,
        "kernels": {row.key[:80]: spent(row) for row in rows[:TOP]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--passes", type=int, help="else the model's own")
    parser.add_argument("--batch", type=int, default=1024, help="documents in a batch")
    parser.add_argument("--on-disk", action="store_true", help="leave the counts there")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--folder", type=Path, help="where the corpus is kept")
    parser.add_argument("--json", type=Path, required=True)
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp())
    corpus = folder / f"{chosen.documents}x{chosen.features}"
    if not corpus.is_dir():
        make_counts(corpus, chosen.documents, chosen.features)
    counts: Any = DiskCounts(corpus)
    if not chosen.on_disk:
        counts = as_counts(counts[:])

    def model(passes: int | None) -> BayesianSMM:
        return BayesianSMM(
            chosen.components,
            max_iter=passes,
            tol=0,
            batch_size=chosen.batch,
            device=chosen.device,
            random_state=0,
        )

    part = counts[: max(1, min(65_536, chosen.documents // 4))]
    model(2).fit(part).posterior(part[:8192])  # compiles the kernels
    fitted, fit = timed(lambda: model(chosen.passes).fit(counts))
    fit |= {"n_iter": fitted.n_iter_, "bound": fitted.history_[-1]["bound"]}
    clock = [row["seconds"] for row in fitted.history_]
    fit["seconds_per_pass"] = float(np.median(np.diff(clock, prepend=0.0)))

    def embed_all() -> float:
        blocks = counts.iter_blocks(65_536)
        return sum(float(fitted.posterior(b).total_variance.sum()) for b in blocks)

    variance, embed = timed(embed_all)
    embed["mean_total_variance"] = variance / chosen.documents
    for found, passes in ((fit, fitted.n_iter_), (embed, 1)):
        found["documents_per_second"] = chosen.documents * passes / found["seconds"]
    gpu = torch.cuda.is_available()
    report = describe_run(torch.get_num_threads()) | {
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "n_documents": chosen.documents,
        "n_features": chosen.features,
        "n_components": chosen.components,
        "batch_size": chosen.batch,
        "on_disk": chosen.on_disk,
        "nnz": int(DiskCounts(corpus).nnz),
        "fit": fit,
        "embed": embed,
        "profile_of_a_pass": profiled(lambda: model(1).fit(part)),
        "profile_of_embedding": profiled(lambda: fitted.posterior(part)),
        "peak_gib": peak_gib(),
    }
    chosen.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(json.dumps({"fit": fit, "embed": embed}, indent=1))


if __name__ == "__main__":
    main()
