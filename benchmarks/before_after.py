"""Speed and memory of two versions of docsigma, in interleaved runs.

    python benchmarks/before_after.py OLD/src src --json before-after.json

Each run is a process of its own, old and new in turn. The number beside a job is the
median over the pairs of old seconds over new seconds: over 1, the new version is
faster. The interval holds the middle of the pairs' ratios with 94 % (the least and the
greatest of five). Counts are Poisson draws of a fixed seed: documents of 290 and of 5
words, as long as those of 20 Newsgroups and as titles, over as many words; embeddings
are made by one model, which the old version trains and saves.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

JOBS = ("fit", "embed", "fit-short", "embed-short")


def draw(n_documents: int, n_words: int, length: float, seed: int = 0) -> Any:
    """Draw documents of eight topics with Zipf's frequencies."""
    import scipy.sparse as sp

    random = np.random.default_rng(seed)
    weight = 1 / np.arange(1, n_words + 1)
    tilts = random.gamma(0.3, size=(8, n_words)) + 0.02
    topics = tilts * weight
    shares = np.cumsum(topics, axis=1) / topics.sum(axis=1, keepdims=True)
    rows = []
    for _ in range(n_documents):
        n = max(1, random.poisson(length * random.gamma(2.0, 0.5)))
        words = np.searchsorted(shares[random.integers(8)], random.random(n))
        words = words.clip(max=n_words - 1)
        column, count = np.unique(words, return_counts=True)
        rows.append((column, count))
    indptr = np.concatenate([[0], np.cumsum([len(c) for c, _ in rows])])
    data = np.concatenate([c for _, c in rows]).astype(np.float32)
    indices = np.concatenate([c for c, _ in rows]).astype(np.int32)
    return sp.csr_matrix((data, indices, indptr), shape=(n_documents, n_words))


def run(job: str, folder: Path, device: str, make: bool) -> dict[str, float]:
    import scipy.sparse as sp
    import torch

    from docsigma import BayesianSMM

    kind = "short" if job.endswith("short") else "long"
    counts = sp.load_npz(folder / f"{kind}.npz")
    if job == "embed-short":
        # The version before issue 15 needs a minute for some thousand.
        counts = counts[:500]
    settings: dict[str, Any] = {"random_state": 0, "device": device, "tol": 0}
    model = BayesianSMM(100, max_iter=4, l1=0.1, **settings)
    cuda = device == "cuda"
    if make:
        model.fit(counts).save(folder / kind)
        return {}
    stored = None
    if job.startswith("embed"):
        stored = BayesianSMM.load(folder / kind).set_params(device=device)

    def once() -> None:
        if stored is None:
            model.fit(counts)
        else:
            stored.posterior(counts)
        if cuda:
            torch.cuda.synchronize()

    if cuda:
        # Kernels are compiled in the first run.
        once()
        torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(15 if cuda else 1):
        started = time.perf_counter()
        once()
        seconds.append(time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    if cuda:
        peak = torch.cuda.max_memory_allocated() / 2**30
    return {"seconds": float(np.median(seconds)), "peak_gib": peak}


def call(source: Path, job: str, folder: Path, device: str, make: bool = False) -> Any:
    """Run one job in a process that imports docsigma from `source`."""
    command = [sys.executable, __file__, str(source), str(source), "--worker", job]
    command += ["--folder", str(folder), "--device", device] + ["--make"] * make
    environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    done = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    import scipy.sparse as sp

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--words", type=int, default=30_000)
    parser.add_argument("--jobs", nargs="+", default=JOBS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        found = run(chosen.worker, chosen.folder, chosen.device, chosen.make)
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as name:
        folder, report = Path(name), {}
        n, v = chosen.documents, chosen.words
        sp.save_npz(folder / "long.npz", draw(n, v, 290))
        sp.save_npz(folder / "short.npz", draw(4 * n, v // 10, 5))
        for job in ("fit", "fit-short"):
            call(chosen.old, job, folder, chosen.device, make=True)
        for job in chosen.jobs:
            pairs = []
            for number in range(chosen.runs):
                order = (chosen.old, chosen.new)
                both = {
                    str(source): call(source, job, folder, chosen.device)
                    for source in (order if number % 2 == 0 else order[::-1])
                }
                pairs.append([both[str(source)] for source in order])
            ratios = sorted(old["seconds"] / new["seconds"] for old, new in pairs)
            peaks = [
                float(np.median([p[i]["peak_gib"] for p in pairs])) for i in (0, 1)
            ]
            seconds = [
                float(np.median([p[i]["seconds"] for p in pairs])) for i in (0, 1)
            ]
            report[job] = {
                "ratio": float(np.median(ratios)),
                "least": ratios[0],
                "greatest": ratios[-1],
                "seconds": seconds,
                "peak_gib": peaks,
            }
            print(job, json.dumps(report[job]), flush=True)
    if chosen.json is not None:
        about = {"device": chosen.device, "documents": n, "words": v, "jobs": report}
        chosen.json.write_text(json.dumps(about, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
