r"""Fit and embed on many processes: how much faster, and how much memory each needs.

    python benchmarks/beyond_one_machine.py speedup two-million ten-million \
        --json benchmarks/results/beyond-one-machine.json

Each case draws its corpus (as big_corpus.py does) unless it is there, and runs what a
user runs: `torchrun --nproc-per-node N -m docsigma fit`, and N times
`docsigma embed --shard i/N` side by side, one thread each. Memory is private memory
(RssAnon, which leaves mapped files out), the most that any of the processes had at a
look every fifth of a second. Cases that were measured before stay in the JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import big_corpus
from docsigma.counts import DiskCounts
from peers_machine import OtherWork, describe_run, thread_environment

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node"]


@dataclass(frozen=True)
class Case:
    """A corpus, and what is done with it by how many processes."""

    n_documents: int
    n_features: int
    n_components: int
    n_passes: int
    mean_tokens: int = 60
    ranks: tuple[int, ...] = (2,)
    embed: bool = True


CASES = {
    "speedup": Case(60_000, 50_000, 50, 2, ranks=(1, 2), embed=False),
    "two-million": Case(2_000_000, 100_000, 10, 1),
    "ten-million": Case(10_000_000, 10_000, 50, 1, mean_tokens=20, embed=False),
    "quick": Case(400, 300, 3, 2, ranks=(1, 2)),
}


def corpus_of(case: Case, folder: Path) -> Path:
    """Draw the corpus of a case unless it is there."""
    name = f"{case.n_documents}x{case.n_features}x{case.mean_tokens}"
    if not (folder / name).is_dir():
        big_corpus.MEAN_TOKENS = case.mean_tokens
        big_corpus.make_counts(folder / name, case.n_documents, case.n_features)
    return folder / name


def private_gib(process: psutil.Process) -> float:
    """Return the private memory of the process that has most, of one and its heirs."""
    most = 0.0
    for one in [process, *process.children(recursive=True)]:
        try:
            lines = Path(f"/proc/{one.pid}/status").read_text("utf-8").splitlines()
        except OSError:
            continue  # it ended meanwhile
        found = [line for line in lines if line.startswith("RssAnon:")]
        most = max(most, *(int(line.split()[1]) / 2**20 for line in found), 0.0)
    return most


def processor_seconds(process: psutil.Process) -> dict[int, float]:
    """Return the processor time of a process and its heirs, by their numbers."""
    found = {}
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            times = one.cpu_times()
            found[one.pid] = times.user + times.system
    return found


def watch(commands: list[list[str]]) -> dict[str, Any]:
    """Run commands side by side, one thread each; return what the first printed."""
    others, started, peak = OtherWork(), time.perf_counter(), 0.0
    spent: dict[int, float] = {}
    running = [
        subprocess.Popen(
            command, env=thread_environment(1), stdout=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    while any(one.poll() is None for one in running):
        for one in running:
            if one.poll() is None:
                peak = max(peak, private_gib(psutil.Process(one.pid)))
                spent |= processor_seconds(psutil.Process(one.pid))
        time.sleep(0.2)
    if any(one.returncode for one in running):
        raise SystemExit(f"{commands[0]} failed")
    printed = [json.loads(one.communicate()[0]) for one in running]
    return {
        "wall_seconds": time.perf_counter() - started,
        "private_gib": peak,
        # Of the busiest process: its time on a machine that does nothing else.
        "processor_seconds": max(spent.values()),
        "others_busy_cores": others.busy_cores(),
        "printed": printed,
    }


def measure(case: Case, folder: Path) -> dict[str, Any]:
    corpus = corpus_of(case, folder)
    counts = DiskCounts(corpus)
    found: dict[str, Any] = {
        "n_documents": case.n_documents,
        "n_features": case.n_features,
        "n_components": case.n_components,
        "n_passes": case.n_passes,
        "nnz": counts.nnz,
        "runs": [],
    }
    for ranks in case.ranks:
        model = folder / f"{corpus.name}-model-{ranks}"
        fit = [*TORCHRUN, str(ranks), "-m", "docsigma", "fit", str(corpus)]
        fit += ["--out", str(model), "--components", str(case.n_components)]
        fit += ["--max-iter", str(case.n_passes), "--tol", "0", "--device", "cpu"]
        row = {"ranks": ranks, "fit": watch([[*fit, "--json", "--force"]])}
        row["fit"]["seconds"] = row["fit"]["printed"][0]["seconds"]
        if case.embed:
            command = [sys.executable, "-m", "docsigma", "embed", str(model)]
            command += [str(corpus), "--out", str(folder / f"embedded-{ranks}.parquet")]
            command += ["--device", "cpu", "--json", "--force"]
            shards = [["--shard", f"{i}/{ranks}"] for i in range(ranks)]
            row["embed"] = watch([[*command, *shard] for shard in shards])
            done = sum(one["n_documents"] for one in row["embed"]["printed"])
            assert done == case.n_documents
        found["runs"].append(row)
        print(json.dumps(row), flush=True)
    if len(found["runs"]) == 2:
        one, two = (row["fit"]["seconds"] for row in found["runs"])
        found["fit_speedup"] = one / two
        one, two = (row["fit"]["processor_seconds"] for row in found["runs"])
        found["fit_speedup_by_processor_time"] = one / two
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="+", choices=CASES)
    parser.add_argument("--folder", type=Path, default=Path("big"))
    parser.add_argument("--json", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for name in chosen.cases:
        report = describe_run(1)
        found = measure(CASES[name], chosen.folder)
        kept = {"cases": {}}
        if chosen.json.exists():
            kept = json.loads(chosen.json.read_text("utf-8"))
        kept["cases"][name] = report | {"load": os.getloadavg()} | found
        chosen.json.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
