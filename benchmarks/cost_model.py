r"""A cost model of fit and embedding on many workers, its constants measured.

    python benchmarks/cost_model.py --json benchmarks/results/cost-model.json

One pass over D documents of V words with K components, by P workers in batches of B:

    D V (a K + b) / P  +  D / B * (V K (u + 8 (1 - 1/P) / bandwidth) + s)

The first term is the softmax over all words, 6 V K operations and V exponentials per
document. The second is paid per batch: the step of the words, which every worker takes
(u seconds per number), and the sum of their gradients over the workers, which moves
4 V K bytes to and from each; on a GPU a batch also costs s seconds of the host, which
starts its kernels. Embedding takes E such evaluations per document and no
messages. a, b, u and E are fitted by least squares to the processor time of one thread
at several sizes; the bandwidth between two processes here is that of gloo. For the GPU
a and b come from benchmarks/results/gpu.json, s and E from million-on-gpu.json or, as
long as that is not there, from fit-gpu.json; the networks are assumed. Runs that were
measured (beyond-one-machine.json) are compared with what the model says of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls

from big_corpus import draw_block, draw_truth
from peers_machine import OtherWork, describe_run, thread_environment

RESULTS = Path(__file__).parent / "results"
BATCH = 1024
PASSES = 11
# Words, components and documents in a batch; these must vary too, to tell a from u.
SIZES = [(10_000, 20, 64), (10_000, 100, 64), (40_000, 50, 64)]
SIZES += [(v, k, 400) for v in (10_000, 40_000) for k in (20, 50, 100)]
QUICK = [(200, 2, 32), (200, 8, 40), (800, 2, 40), (800, 8, 32)]
CORES = 2  # of a CPU worker, each as fast as one of those here
# Bytes per second to and from a worker: 10 Gbit/s for CPUs, 400 Gbit/s for GPUs.
NETWORK = {"cpu": 1.25e9, "gpu": 5e10}
GPU_STEP = 24 / 4.2e12  # six numbers read or written at the measured bandwidth
CORPORA = {"English Wikipedia": 7e6, "10^8": 1e8, "10^9": 1e9}
WORKERS = (1, 8, 64)
V, K = 100_000, 100


def calibrate(
    n_documents: int, sizes: list[tuple[int, int, int]]
) -> list[dict[str, float]]:
    """Measure processor seconds of a pass and of embedding, with one thread."""
    from docsigma import BayesianSMM

    torch.set_num_threads(1)
    rows = []
    for n_features, k, batch in sizes:
        truth = draw_truth(n_features, 0)
        counts, _ = draw_block(truth, n_documents, np.random.default_rng(1))
        clock: list[float] = []
        settings = {"max_iter": 4, "tol": 0, "device": "cpu", "random_state": 0}
        model = BayesianSMM(k, batch_size=batch, **settings)
        # All words in every pass: the model counts them so.
        model.minibatch_settings = type(model.minibatch_settings)(head_passes=0.0)
        model.fit(counts, callback=lambda _, c=clock: c.append(time.process_time()))
        started = time.process_time()
        model.posterior(counts[: n_documents // 4])
        embedding = (time.process_time() - started) / (n_documents // 4)
        row = {"n_documents": n_documents, "n_features": n_features, "k": k}
        row |= {"pass_seconds": float(np.median(np.diff(clock)))}
        row["batches"] = -(-n_documents // batch)
        row["embed_seconds"] = embedding
        rows.append(row)
        print(row, flush=True)
    return rows


def constants(rows: list[dict[str, float]]) -> dict[str, float]:
    """Fit a, b, u and E to the measurements; relative errors count."""
    columns, ones = [], []
    for row in rows:
        d, v, k = row["n_documents"], row["n_features"], row["k"]
        terms = np.array([d * v * k, d * v, row["batches"] * v * k])
        columns.append(terms / row["pass_seconds"])
        ones.append(1.0)
    (a, b, u), _ = nnls(np.array(columns), np.array(ones))
    fitted = np.array(columns) @ [a, b, u]
    evaluations = [
        row["embed_seconds"] / (row["n_features"] * (a * row["k"] + b)) for row in rows
    ]
    return {
        "a": float(a),
        "b": float(b),
        "u": float(u),
        "evaluations": float(np.median(evaluations)),
        "off_at_most": float(np.abs(fitted - 1).max()),
    }


def gpu_constants() -> dict[str, Any]:
    """Constants of the H200 from the results that are kept."""
    kept = json.loads((RESULTS / "gpu.json").read_text("utf-8"))["rows"]
    rows = [row for row in kept if row["variant"] == "fused tf32"]
    matrix = [[row["n"] * row["V"] * row["K"], row["n"] * row["V"]] for row in rows]
    seconds = np.array([row["training"]["ms"] / 1000 for row in rows])
    (a, b), _ = nnls(np.array(matrix) / seconds[:, None], np.ones(len(rows)))
    fits = json.loads((RESULTS / "fit-gpu.json").read_text("utf-8"))["rows"]
    row = fits[0]  # K 100, tf32, 20 Newsgroups: 11 314 documents in 11 batches
    evaluation = 56_438 * (a * 100 + b)
    spent, n_batches = row["fit_seconds"] - row["n_iter"] * 11_314 * evaluation, 11
    found = {"a": a, "b": b, "u": GPU_STEP, "source": "fit-gpu.json"}
    found["batch"] = spent / (row["n_iter"] * n_batches)
    found["evaluations"] = 1 / row["embed_many_documents_per_second"] / evaluation
    file = RESULTS / "million-on-gpu.json"
    if file.exists():
        kept = json.loads(file.read_text("utf-8"))
        d, v, k = (kept[name] for name in ("n_documents", "n_features", "n_components"))
        n_batches = d / kept["batch_size"]
        found["source"] = file.name
        own = d * v * (a * k + b) + n_batches * v * k * GPU_STEP
        found["batch"] = max(0.0, kept["fit"]["seconds_per_pass"] - own) / n_batches
        each = 1 / kept["embed"]["documents_per_second"]
        found["evaluations"] = each / (v * (a * k + b))
    return found


def pass_seconds(
    c: dict[str, float],
    d: float,
    v: float,
    k: float,
    workers: int,
    *,
    batch: int = BATCH,
    network: float,
    cores: int = 1,
) -> float:
    """Return what the model says of one pass."""
    words = d / batch * v * k
    message = 8 * (1 - 1 / workers) / network
    softmax = d * v * (c["a"] * k + c["b"]) / (workers * cores)
    return softmax + words * (c["u"] + message) + d / batch * c.get("batch", 0.0)


def forecast(cpu: dict[str, float], gpu: dict[str, float]) -> list[dict[str, Any]]:
    """Return what the model says of large corpora."""
    rows = []
    for name, d in CORPORA.items():
        for workers in WORKERS:
            row: dict[str, Any] = {"corpus": name, "workers": workers}
            for kind, c, cores in (("cpu", cpu, CORES), ("gpu", gpu, 1)):
                for batch in (BATCH, 16 * BATCH):
                    one = pass_seconds(
                        c,
                        d,
                        V,
                        K,
                        workers,
                        batch=batch,
                        network=NETWORK[kind],
                        cores=cores,
                    )
                    row[f"{kind}_fit_hours_{batch}"] = PASSES * one / 3600
                each = c["evaluations"] * V * (c["a"] * K + c["b"]) / cores
                row[f"{kind}_embed_hours"] = d * each / workers / 3600
            # Means and precisions of its own documents; tokens of all of them.
            row["mapped_gib"] = 8 * K * d / workers / 2**30
            row["private_gib"] = (8 * d + 16 * d / workers + 60 * V * K) / 2**30
            rows.append(row)
    return rows


GLOO = """
import sys, time, torch
from docsigma.ranks import Ranks
ranks = Ranks.join()
for n in map(int, sys.argv[1:]):
    x, best = torch.ones(n), 9.0
    for _ in range(15):
        t = time.perf_counter(); ranks.sum(x); best = min(best, time.perf_counter() - t)
    if ranks.rank == 0: print(n, best, flush=True)
ranks.leave()
"""


def gloo(sizes: tuple[int, ...]) -> dict[str, float]:
    """Measure the sum over two processes: seconds per message and bytes per second."""
    script = Path("/tmp") / "docsigma-gloo.py"
    script.write_text(GLOO, "utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += [str(script), *map(str, sizes)]
    out = subprocess.run(
        command,
        env=thread_environment(1),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    points = np.array([line.split() for line in out.splitlines()], dtype=float)
    slope, start = np.polyfit(4 * points[:, 0], points[:, 1], 1)
    return {"latency": float(max(start, 0)), "bytes_per_second": float(1 / slope)}


def checked(cpu: dict[str, float], link: dict[str, float]) -> list[dict[str, Any]]:
    """Compare the model with the runs on two processes that were measured."""
    file = RESULTS / "beyond-one-machine.json"
    kept = json.loads(file.read_text("utf-8"))["cases"] if file.exists() else {}
    rows = []
    for name, case in kept.items():
        for run in case["runs"]:
            sizes = (case["n_documents"], case["n_features"], case["n_components"])
            one = pass_seconds(
                cpu, *sizes, run["ranks"], network=2 * link["bytes_per_second"]
            )
            rows.append(
                {
                    "case": name,
                    "ranks": run["ranks"],
                    "model_seconds": case["n_passes"] * one,
                    "measured_seconds": run["fit"]["seconds"],
                    # With imports and the start; a machine that is busy with other
                    # work makes the wall clock useless.
                    "processor_seconds": run["fit"]["processor_seconds"],
                    "others_busy_cores": run["fit"]["others_busy_cores"],
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=4096)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try it")
    parser.add_argument("--json", type=Path, required=True)
    chosen = parser.parse_args()
    report = describe_run(1)
    others = OtherWork()
    sizes, n = (QUICK, 400) if chosen.quick else (SIZES, chosen.documents)
    rows = calibrate(n, sizes)
    cpu, gpu = constants(rows), gpu_constants()
    link = gloo((10_000, 1_000_000, 10_000_000))
    report |= {
        "measured": rows,
        "cpu": cpu,
        "gpu": gpu,
        "gloo": link,
        "network": NETWORK,
        "forecast": forecast(cpu, gpu),
        "checked": checked(cpu, link),
        "others_busy_cores": others.busy_cores(),
    }
    chosen.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    for row in (*report["checked"], *report["forecast"]):
        print({k: f"{v:.3g}" if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
