"""The page on the architecture lists the files that an E-step runs."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import docsigma
from docsigma.covariances import Diagonal
from docsigma.estep import infer
from docsigma.kernels import CountTensor
from toy import toy

if TYPE_CHECKING:
    from types import FrameType

PACKAGE = Path(docsigma.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
BELOW_THE_PRIMITIVE = {"kernels/tiles.py", "kernels/fused.py", "kernels/rounding.py"}
# Of it run only methods that treat all tensors of a posterior alike: select, mix and
# replace rows. The reader has what they hold in covariances/diagonal.py.
CONTRACTS = {"covariances/_base.py"}


def listed() -> list[str]:
    text = PAGE.read_text("utf-8")
    between = re.search(
        r"<!-- e-step files -->(.*)<!-- end of e-step files -->", text, re.DOTALL
    )
    assert between is not None
    return re.findall(r"^\d+\. `([^`]+)`", between[1], re.MULTILINE)


def trace(function: Any, *arguments: Any) -> tuple[Any, dict[str, set[str]]]:
    """Return what a function returned, and the functions it ran by file."""
    ran: dict[str, set[str]] = {}

    def see(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            name = path.relative_to(PACKAGE).as_posix()
            ran.setdefault(name, set()).add(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        result = function(*arguments)
    finally:
        sys.setprofile(before)
    return result, ran


def test_e_step_runs_the_files_on_the_page() -> None:
    problem = toy(2, n=40, tokens=60, seed=1)
    tokens = np.asarray(problem.matrix.sum(axis=1)).ravel()
    counts = CountTensor(problem.matrix[tokens > 6], problem.bias)
    found, ran = trace(infer, counts, problem.model, Diagonal())

    assert bool(found.converged.all())
    assert int(found.n_iter.max()) < 12
    files = {name for name in ran if not name.endswith("__init__.py")}
    assert files - BELOW_THE_PRIMITIVE - CONTRACTS <= set(listed())
    # The first file of the list calls `infer`; all others are needed.
    assert set(listed()[1:]) <= files


def test_page_lists_files_that_exist() -> None:
    names = listed()
    assert names
    assert [name for name in names if not (PACKAGE / name).is_file()] == []


def test_layers_on_the_page_are_those_that_lint_holds() -> None:
    with (PAGE.parents[1] / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    held = [re.split(r" [|:] ", layer) for layer in contracts[0]["layers"]]
    section = PAGE.read_text("utf-8").split("## Layers")[1]
    rows = re.findall(r"^\d+\. (.*)$", section, re.MULTILINE)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == held
