"""The targets of the Makefile run what they say, and tests that are there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETTINGS = (
    "ATEN_CPU_CAPABILITY=default",
    "ATEN_CPU_CAPABILITY=avx2",
    "MKL_ENABLE_INSTRUCTIONS=SSE4_2",
    "OMP_NUM_THREADS=4",
)


def commands(target):
    return subprocess.run(
        [
            "make",
            "--dry-run",
            "--no-print-directory",
            "--old-file=.venv/.installed",
            target,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_a_release_is_tested_by_everything_and_the_site_is_built_once():
    quick, release = commands("test"), commands("test-release")
    for tool in ("ruff check", "lint-imports", "mypy", "pytest -n 2"):
        assert quick.count(tool) == 1
    assert "mkdocs" not in quick
    assert release.startswith(quick)
    assert "pytest -m release" in release.removeprefix(quick)


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_numerical_tests_are_run_under_every_setting():
    shown = commands("test-portable")
    assert [setting for setting in SETTINGS if setting not in shown] == []
    named = re.findall(r"(?:\bpaper/)?\btests/[\w/.]+", shown)
    assert {"tests/kernels", "paper/tests/models"} <= set(named)
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_an_unsuitable_python_is_told_in_one_sentence(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "paper").mkdir()
    shutil.copy(ROOT / "paper" / "pyproject.toml", tmp_path / "paper")
    old = tmp_path / "python-old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = subprocess.run(
        ["make", "setup", f"PYTHON={old} no-such-python"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "docsigma needs Python 3.11 or newer" in done.stderr
    assert not (tmp_path / ".venv").exists()
