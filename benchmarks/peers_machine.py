"""What a measurement needs to say of the machine, and memory as the kernel counts it.

Only the standard library is imported: the process that starts the measurements stays
small, and so does what a new process inherits from it.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import os
import platform
import resource
import shlex
import sys
import time
from pathlib import Path
from typing import Any

PACKAGES = (
    "docsigma",
    "torch",
    "numpy",
    "scipy",
    "scikit-learn",
    "tomotopy",
    "gensim",
)
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def describe_run(threads: int) -> dict[str, Any]:
    """Give date, command, machine and versions of a run that starts now."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        "date": now.isoformat(timespec="seconds"),
        "command": shlex.join(["python", *sys.argv]),
        "threads": threads,
        "machine": _machine(),
        "versions": {"python": platform.python_version()} | _versions(),
    }


def thread_environment(threads: int) -> dict[str, str]:
    """Give the environment of a process that is to use `threads` threads."""
    return os.environ | {name: str(threads) for name in THREAD_VARIABLES}


class OtherWork:
    """How busy the machine is with what this process did not start.

    Examples
    --------
    >>> others = OtherWork()
    >>> busy_cores = others.busy_cores()
    """

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._before = self._seconds()

    def busy_cores(self) -> float | None:
        """Cores that others kept busy since the start, on average."""
        now = self._seconds()
        if now is None or self._before is None:
            return None
        spent = now - self._before
        return max(0.0, spent / (time.perf_counter() - self._started))

    @staticmethod
    def _seconds() -> float | None:
        try:
            lines = Path("/proc/stat").read_text("ascii").splitlines()
        except OSError:
            return None
        user, nice, system, _, _, *interrupts = map(int, lines[0].split()[1:9])
        ticks = user + nice + system + sum(interrupts)
        own = sum(os.times()[:4])
        return ticks / os.sysconf("SC_CLK_TCK") - own


def resident_gib() -> float:
    """Memory that this process holds now."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return _own_peak_gib()
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**30


def peak_gib() -> float:
    """Peak memory of this process, and of the processes that work for it now."""
    return _own_peak_gib() + sum(map(_peak_of_child, _statuses()))


def _own_peak_gib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)


def _statuses() -> list[dict[str, str]]:
    found = []
    for file in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            lines = file.read_text("utf-8").splitlines()
            found.append(dict(line.split(":\t", 1) for line in lines if ":\t" in line))
    return found


def _peak_of_child(status: dict[str, str]) -> float:
    if status.get("PPid") != str(os.getpid()) or "VmHWM" not in status:
        return 0.0
    return int(status["VmHWM"].split()[0]) / 2**20


def _machine() -> dict[str, Any]:
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        "system": platform.platform(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found
