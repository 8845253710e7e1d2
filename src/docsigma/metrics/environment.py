"""The machine and the library versions of a result, to be saved with it."""

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
    """Return the number of allocations on a GPU since the process started."""
    if not torch.cuda.is_available():
        return 0
    return int(torch.cuda.memory_stats().get("allocation.all.allocated", 0))


def environment(*, on_gpu: bool) -> dict[str, Any]:
    """Return the time, the device that computed and the versions of libraries."""
    versions = {"python": platform.python_version(), "docsigma": docsigma.__version__}
    for package in PACKAGES:
        if version := installed_version(package):
            versions[package] = version
    now = datetime.datetime.now(datetime.UTC)
    return {
        "date": now.isoformat(timespec="seconds"),
        "machine": torch.cuda.get_device_name() if on_gpu else platform.machine(),
        "versions": versions,
    }
