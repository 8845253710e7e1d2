"""Two versions of docsigma beside each other: run one, and load what another saved."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def run_version(source: Path, script: str, *arguments: object) -> Any:
    """Run a script in a process that imports docsigma from `source`.

    Return the JSON of the last line it prints.
    """
    paths = [source.resolve(), source.resolve().parent / "paper" / "src"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    done = subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def commit(source: Path) -> str:
    """Return the commit that is checked out at `source`.

    A copy without its history says in DOCSIGMA_COMMIT what it is.
    """
    if "DOCSIGMA_COMMIT" in os.environ:
        return os.environ["DOCSIGMA_COMMIT"]
    command = ["git", "-C", str(source), "rev-parse", "--short", "HEAD"]
    return subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.strip()


def changed_commit(root: Path) -> dict[str, Any]:
    """Return the commit, and whether the code has changed since."""
    found = {"commit": commit(root), "changed_since": False}
    if (root / ".git").exists():
        command = f"git -C {root} status --porcelain src benchmarks/*.py"
        done = subprocess.run(command.split(), check=True, capture_output=True)
        found["changed_since"] = bool(done.stdout)
    return found


def load_saved(folder: Path) -> Any:
    """Load a model that any version saved: parameters not known here are left out."""
    from docsigma import BayesianSMM

    known = inspect.signature(BayesianSMM).parameters
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "model"
        shutil.copytree(folder, copy)
        config = json.loads((copy / "config.json").read_text("utf-8"))
        given = config["parameters"]
        config["parameters"] = {k: v for k, v in given.items() if k in known}
        (copy / "config.json").write_text(json.dumps(config), "utf-8")
        return BayesianSMM.load(copy)
