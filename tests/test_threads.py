"""The wait policy of OpenMP is set before torch loads, and a user's own stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from docsigma._threads import CHOICES, SPINS

SHOW = f"import json, os; print(json.dumps([os.environ.get(n) for n in {CHOICES}]))"
OURS = ["PASSIVE", None, SPINS]
HELP = """
from docsigma.cli.__main__ import main
try:
    main(["--help"])
except SystemExit:
    pass
"""


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    others = {name: v for name, v in os.environ.items() if name not in CHOICES}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=others | variables,
        capture_output=True,
        text=True,
        check=True,
    )


def settings_after(code: str, **variables: str) -> list[str | None]:
    return json.loads(run(f"{code}\n{SHOW}", **variables).stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "code",
    ["import docsigma", "from docsigma import BayesianSMM", HELP],
    ids=["package", "model", "command line"],
)
def test_threads_wait_passively(code):
    assert settings_after(code) == OURS


@pytest.mark.parametrize(
    ("name", "value"),
    [("OMP_WAIT_POLICY", "ACTIVE"), ("KMP_BLOCKTIME", "7"), ("GOMP_SPINCOUNT", "7")],
)
def test_a_users_setting_stays_alone(name, value):
    expected = [value if choice == name else None for choice in CHOICES]
    assert settings_after("import docsigma", **{name: value}) == expected


def test_nothing_is_set_where_torch_came_first():
    assert settings_after("import torch, docsigma") == [None, None, None]


def test_the_package_alone_does_not_load_torch():
    run("import sys, docsigma; assert 'torch' not in sys.modules")


def test_torchs_runtime_takes_the_settings():
    # libgomp prints its settings when it is loaded.
    shown = run("import docsigma, torch", OMP_DISPLAY_ENV="VERBOSE").stderr
    if "GOMP_SPINCOUNT" not in shown:
        pytest.skip("this build of torch does not use libgomp")
    assert f"GOMP_SPINCOUNT = '{SPINS}'" in shown
