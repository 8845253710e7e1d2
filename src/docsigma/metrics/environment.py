"""Where and with what a result was made, to be kept beside it."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
from typing import Any

import torch

import docsigma

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "optuna", "tomotopy", "gensim")


def installed_version(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def gpu_work() -> int:
    """Count what was put on a GPU since the process began."""
    if not torch.cuda.is_available():
        return 0
    return int(torch.cuda.memory_stats().get("allocation.all.allocated", 0))


def environment(*, on_gpu: bool) -> dict[str, Any]:
    """Return the time, the machine that computed and the versions of libraries."""
    versions = {"python": platform.python_version(), "docsigma": docsigma.__version__}
    found = {package: installed_version(package) for package in PACKAGES}
    versions |= {name: version for name, version in found.items() if version}
    now = datetime.datetime.now(datetime.UTC)
    return {
        "date": now.isoformat(timespec="seconds"),
        "machine": torch.cuda.get_device_name() if on_gpu else platform.machine(),
        "versions": versions,
    }
