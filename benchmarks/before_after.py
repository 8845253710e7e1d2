"""Speed and memory of two versions of docsigma, in interleaved runs.

    python benchmarks/before_after.py OLD/src src --json before-after.json
    python benchmarks/before_after.py OLD/src src --jobs read count fit-disk

Each run is a process of its own, old and new in turn. The number beside a job is the
median over the pairs of old seconds over new seconds: over 1, the new version is
faster. The interval holds the middle of the pairs' ratios with 94 % (the least and the
greatest of five). Counts are Poisson draws of a fixed seed: documents of 290 and of 5
words, as long as those of 20 Newsgroups and as titles, over as many words; embeddings
are made by one model, which the old version trains and saves.

Jobs that only run if asked for: `read` reads documents of 100 words from .jsonl, .csv
and .csv.gz, `count` writes their counts to disk, and `fit-disk` fits a model on the
counts that the same version has written.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import io
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from _versions import commit, load_saved, run_version

JOBS = ("fit", "embed", "fit-short", "embed-short")
DISK_JOBS = ("read", "count", "fit-disk")


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


def write_texts(folder: Path, n_documents: int) -> None:
    """Write documents of 100 words as .jsonl, .csv and .csv.gz."""
    counts = draw(n_documents, 20_000, 100)
    words = np.array([f"word{number}" for number in range(counts.shape[1])])
    random = np.random.default_rng(0)
    with (
        (folder / "texts.jsonl").open("w") as lines,
        (folder / "texts.csv").open("w", newline="") as table,
    ):
        rows = csv.writer(table)
        rows.writerow(["id", "text", "label"])
        for number, row in enumerate(counts):
            tokens = np.repeat(words[row.indices], row.data.astype(int))
            text = ", ".join(random.permutation(tokens))
            values = (f"d{number}", text, f"topic{number % 20}")
            rows.writerow(values)
            record = dict(zip(("id", "text", "label"), values, strict=True))
            lines.write(json.dumps(record) + "\n")
    compressed = gzip.compress((folder / "texts.csv").read_bytes())
    (folder / "texts.csv.gz").write_bytes(compressed)


def count(texts: Path, out: Path) -> None:
    """Count by the command, which all versions have."""
    from docsigma.cli.__main__ import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(["count", str(texts), "--out", str(out), "--min-df", "2"])


def run_on_disk(job: str, folder: Path, make: bool) -> dict[str, float]:
    """Run one of the `DISK_JOBS`."""
    from docsigma import BayesianSMM, read_documents
    from docsigma.counts import DiskCounts

    stored = folder / "-".join(["counts", *Path(sys.argv[1]).resolve().parts[1:]])
    if make:
        count(folder / "texts.jsonl", stored)
        return {}
    counts = DiskCounts(stored)
    # Imports are done before the clock starts.
    (folder / "few.txt").write_text("sun and rain\n" * 9)
    count(folder / "few.txt", folder / "few")
    started = time.perf_counter()
    if job == "read":
        for suffix in ("jsonl", "csv", "csv.gz"):
            read_documents(folder / f"texts.{suffix}")
    elif job == "count":
        count(folder / "texts.jsonl", folder / "counted")
    else:
        model = BayesianSMM(20, max_iter=3, tol=0, device="cpu", random_state=0)
        model.fit(counts)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": seconds, "peak_gib": peak}


def run(job: str, folder: Path, device: str, make: bool) -> dict[str, float]:
    if job in DISK_JOBS:
        return run_on_disk(job, folder, make)
    import scipy.sparse as sp
    import torch

    from docsigma import BayesianSMM

    kind = "short" if job.endswith("short") else "long"
    counts = sp.load_npz(folder / f"{kind}.npz")
    settings: dict[str, Any] = {"random_state": 0, "device": device, "tol": 0}
    model = BayesianSMM(100, max_iter=4, l1=0.1, **settings)
    cuda = device == "cuda"
    if make:
        model.fit(counts).save(folder / kind, overwrite=True)
        return {}
    stored = None
    if job.startswith("embed"):
        stored = load_saved(folder / kind).set_params(device=device)

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
    command: list[Any] = [__file__, source, source, "--worker", job]
    command += ["--folder", folder, "--device", device] + ["--make"] * make
    return run_version(source, *command)


def main() -> None:
    import scipy.sparse as sp

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--words", type=int, default=30_000)
    parser.add_argument("--jobs", nargs="+", default=JOBS, choices=JOBS + DISK_JOBS)
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
        if not set(JOBS).isdisjoint(chosen.jobs):
            sp.save_npz(folder / "long.npz", draw(n, v, 290))
            sp.save_npz(folder / "short.npz", draw(4 * n, v // 10, 5))
            for job in ("fit", "fit-short"):
                call(chosen.old, job, folder, chosen.device, make=True)
        if not set(DISK_JOBS).isdisjoint(chosen.jobs):
            write_texts(folder, 5 * n)
            for source in (chosen.old, chosen.new):
                call(source, "count", folder, chosen.device, make=True)
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
        commits = {"old": commit(chosen.old), "new": commit(chosen.new)}
        about = commits | {
            "device": chosen.device,
            "documents": n,
            "words": v,
            "jobs": report,
        }
        chosen.json.write_text(json.dumps(about, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
