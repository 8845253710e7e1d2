"""How much slower a fit is while another process keeps one core busy.

    python benchmarks/busy_neighbour.py --json benchmarks/results/busy-neighbour.json

Counts are drawn from a known model. Fits run in turn, each in its own process, quietly
and beside a process that only spins, with threads that wait in three ways: as docsigma
sets them, passively from the start, and spinning, which is OpenMP's default. Times are
of the fit alone, summaries are medians. A fit that other work on the machine disturbed
is repeated.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peers_machine import OtherWork, describe_run

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 2.5  # times the quiet fit, as docsigma sets the threads
SIZE = {"n_documents": 4000, "n_features": 8000, "n_components": 50}
QUICK = {"n_documents": 40, "n_features": 100, "n_components": 4}
CHOICES = ("OMP_WAIT_POLICY", "KMP_BLOCKTIME", "GOMP_SPINCOUNT")
# For each way to wait what a user would have set, and what is loaded first: before
# docsigma torch keeps OpenMP's default.
WAYS: dict[str, tuple[dict[str, str], str]] = {
    "docsigma": ({}, "docsigma"),
    "passive": ({"OMP_WAIT_POLICY": "PASSIVE"}, "docsigma"),
    "spinning": ({}, "torch"),
}
DISTURBED = 0.1  # cores that others may keep busy during a fit
PATIENCE = 3600.0  # seconds, for one undisturbed fit
PAUSE = 1.0  # seconds that the machine has to be quiet before a fit


def fit(first: str, size: dict[str, int]) -> dict[str, Any]:
    importlib.import_module(first)
    import torch

    import docsigma
    from docsigma.corpora.synthetic import load_synthetic

    # The first fit starts threads and fills caches; the second counts.
    for current in (QUICK, size):
        corpus = load_synthetic(
            n_train=current["n_documents"],
            n_test=1,
            n_features=current["n_features"],
            n_components=current["n_components"],
        )
        model = docsigma.BayesianSMM(
            current["n_components"], device="cpu", random_state=0
        )
        started = time.perf_counter()
        model.fit(corpus.train.counts)
        seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "threads": torch.get_num_threads(),
        "environment": {name: os.environ.get(name) for name in CHOICES},
    }


@contextlib.contextmanager
def neighbour() -> Iterator[None]:
    """Keep one core busy inside the block."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def measure(way: str, busy: bool, size: dict[str, int]) -> dict[str, Any]:
    """Run one fit in a process of its own."""
    variables, first = WAYS[way]
    others = {k: v for k, v in os.environ.items() if k not in CHOICES}
    command = [sys.executable, __file__, "--worker", first, json.dumps(size)]
    with neighbour() if busy else contextlib.nullcontext():
        shown = subprocess.check_output(command, env=others | variables, text=True)
    found: dict[str, Any] = json.loads(shown.splitlines()[-1])
    return found


def measure_undisturbed(way: str, busy: bool, size: dict[str, int]) -> dict[str, Any]:
    """Run fits until one had the machine to itself and its neighbour."""
    started = time.monotonic()
    while time.monotonic() < started + PATIENCE:
        others = OtherWork()
        time.sleep(PAUSE)
        if (others.busy_cores() or 0.0) > DISTURBED:
            continue
        others = OtherWork()
        found = measure(way, busy, size)
        if (others.busy_cores() or 0.0) <= DISTURBED:
            return found
    sys.exit(f"other work kept the machine busy for {PATIENCE:.0f} seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--quick", action="store_true", help="tiny and disturbed, to try it"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.worker:
        first, size = arguments.worker
        print(json.dumps(fit(first, json.loads(size))))
        return
    size = QUICK if arguments.quick else SIZE
    run = measure if arguments.quick else measure_undisturbed
    report = describe_run(0)
    ways: dict[str, dict[str, Any]] = {way: {"quiet": [], "busy": []} for way in WAYS}
    for _ in range(arguments.rounds):
        for way, times in ways.items():
            for name in ("quiet", "busy"):
                found = run(way, name == "busy", size)
                times[name].append(found["seconds"])
                times["environment"] = found["environment"]
                report["threads"] = found["threads"]
                print(f"{way:8s} {name:5s} {found['seconds']:7.2f} s", flush=True)
    for way, times in ways.items():
        quiet, busy = (statistics.median(times[name]) for name in ("quiet", "busy"))
        times |= {"median_quiet": quiet, "median_busy": busy, "ratio": busy / quiet}
        print(
            f"{way}: quiet {quiet:.2f} s, beside a busy process {busy:.2f} s, "
            f"{busy / quiet:.2f} times"
        )
    report |= {"size": size, "limit": LIMIT, "ways": ways}
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    ratio = ways["docsigma"]["ratio"]
    if ratio > LIMIT and not arguments.quick:
        sys.exit(f"{ratio:.2f} times the quiet fit, over {LIMIT}")


if __name__ == "__main__":
    main()
