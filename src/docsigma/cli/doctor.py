"""`docsigma doctor`: versions, hardware and data."""

from __future__ import annotations

import os
import platform
from typing import Any

from docsigma.cli import _common

REQUIRED = ("docsigma", "torch", "numpy", "scipy", "scikit-learn", "safetensors")
# Purpose of each optional package, and what to install for it.
OPTIONAL = {
    "docsigma-paper": ("the paper's tables", "docsigma-paper"),
    "pyarrow": ("Parquet", "docsigma[tables]"),
    "matplotlib": ("plots", "docsigma[plots]"),
    "openTSNE": ("the explorer's second layout", "docsigma[neighbours]"),
    "optuna": ("tune", "docsigma[tune]"),
    "jieba": ("Chinese", "docsigma[languages]"),
    "janome": ("Japanese", "docsigma[languages]"),
    "pythainlp": ("Thai", "docsigma[languages]"),
}


def doctor(as_json: _common.JsonFlag = False) -> None:
    """Print versions, threads, GPU and data, to go with the report of a problem."""
    import torch

    from docsigma._devices import memory_of
    from docsigma._threads import CHOICES
    from docsigma.corpora import available_corpora
    from docsigma.corpora._data import DATA_VARIABLE
    from docsigma.metrics.environment import installed_version

    gpu = torch.cuda.is_available()
    memory = memory_of(torch.device("cpu"))
    found = available_corpora()
    report: dict[str, Any] = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "versions": {name: installed_version(name) for name in (*REQUIRED, *OPTIONAL)},
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "waiting": {name: os.environ.get(name) for name in CHOICES},
        "memory_bytes": memory,
        "gpu": torch.cuda.get_device_name() if gpu else None,
        "data_folder": os.environ.get(DATA_VARIABLE),
        "corpora": {entry.name: entry.available for entry in found},
    }
    rows: dict[str, Any] = {"Python": report["python"], "system": report["system"]}
    for name in REQUIRED:
        rows[name] = report["versions"][name] or "missing"
    for name, (purpose, extra) in OPTIONAL.items():
        missing = f"missing: pip install {extra}"
        rows[f"{name} ({purpose})"] = report["versions"][name] or missing
    rows["cores, threads of torch"] = f"{report['cores']}, {report['threads']}"
    for name, value in report["waiting"].items():
        rows[name] = value or "not set"
    rows["memory"] = None if memory is None else f"{memory / 2**30:.1f} GiB"
    rows["GPU"] = report["gpu"] or "none that torch can use"
    rows[DATA_VARIABLE] = report["data_folder"] or "not set"
    at_hand = [entry.name for entry in found if entry.available]
    rows["corpora at hand"] = ", ".join(at_hand)
    _common.print_report(report, as_json, "docsigma on this machine", rows)
