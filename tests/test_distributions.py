"""Two distributions: the core has nothing of the paper, and says where it is."""

from __future__ import annotations

import configparser
import importlib
import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

from docsigma._extensions import PAPER
from docsigma_paper import SMM

pytest.importorskip("hatchling")

ROOT = Path(__file__).parents[1]
MOVED = {
    *("smm", "nvdm", "nvdm_network", "nvdm_trainer", "ulmfit", "naive_bayes"),
    *("_word_selection", "fisher", "switchboard", "reproduce", "topic_id"),
    *("early_stopping", "cut_documents", "docsigma_paper"),
}
INSTALL = "in docsigma-paper: pip install docsigma-paper"


def build(source: Path, folder: Path) -> Path:
    """Build a wheel as a release does, without a network."""
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", folder]
    done = subprocess.run(
        [*command, source], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def core_alone(core: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder of packages: all that are installed, and the core's wheel."""
    folder = tmp_path_factory.mktemp("packages")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if "docsigma" not in package.name and package.suffix != ".pth":
            (folder / package.name).symlink_to(package)
    with zipfile.ZipFile(core) as wheel:
        wheel.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the sdist of the core in a fresh environment; give its scripts."""
    folder = tmp_path_factory.mktemp("released")
    build_sdist = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d"]
    subprocess.run([*build_sdist, folder], cwd=ROOT, check=True, capture_output=True)
    (sdist,) = folder.glob("*.tar.gz")
    wheel = build(sdist, folder)
    environment = folder / "environment"
    command = [sys.executable, "-m", "venv", "--without-pip", environment]
    subprocess.run(command, check=True, capture_output=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    # Its dependencies are those here: they would take minutes to install.
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if "docsigma" not in package.name and package.suffix != ".pth":
            (packages / package.name).symlink_to(package)
    python = environment / "bin" / "python"
    options = ("--no-deps", "--no-index", "--quiet", "--no-compile")
    command = [sys.executable, "-m", "pip", "--python", python, "install", *options]
    subprocess.run([*command, wheel], check=True, capture_output=True)
    return environment / "bin"


def run_installed(command: list[object], folder: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_released_fits_outside_the_repository(
    installed: Path, tmp_path: Path
) -> None:
    where = "import docsigma; print(docsigma.__file__)"
    found = run_installed([installed / "python", "-c", where], tmp_path)
    assert str(installed.parent) in found
    texts = ROOT / "docs" / "examples" / "support.csv"
    fit = ["fit", texts, "--out", "model", "--components", "2"]
    run_installed([installed / "docsigma", *fit], tmp_path)
    assert (tmp_path / "model" / "README.md").is_file()


@pytest.mark.release
def test_what_is_released_runs_the_demo_outside_the_repository(
    installed: Path, tmp_path: Path
) -> None:
    run_installed([installed / "docsigma", "doctor"], tmp_path)
    demo = ["demo", "--components", "5", "--max-iter", "1"]
    shown = run_installed([installed / "docsigma", *demo], tmp_path)
    assert "Topic identification" in shown
    assert (tmp_path / "demo" / "model" / "README.md").is_file()


def test_one_version_everywhere() -> None:
    found = {}
    for folder in (ROOT, ROOT / "paper"):
        with (folder / "pyproject.toml").open("rb") as file:
            project = tomllib.load(file)["project"]
        found[project["name"]] = project["version"]
        for needed in project["dependencies"]:
            if needed.startswith("docsigma"):
                found[needed.split("[")[0] + " of the paper"] = needed.split("==")[1]
        (source,) = folder.glob("src/*/__init__.py")
        text = source.read_text("utf-8")
        found[str(source)] = re.findall(r'__version__ = "(.*)"', text)[0]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    found["CITATION.cff"] = re.findall(r"^version: (.*)$", citation, re.MULTILINE)[0]
    log = (ROOT / "CHANGELOG.md").read_text("utf-8")
    found["CHANGELOG.md"] = re.findall(r"^## (\S+)", log, re.MULTILINE)[0]
    assert len(set(found.values())) == 1, found


def run_alone(packages: Path, program: str) -> subprocess.CompletedProcess[str]:
    # -S: no site-packages, and so nothing of the editable installation.
    return subprocess.run(
        [sys.executable, "-S", "-c", program],
        env=os.environ | {"PYTHONPATH": str(packages)},
        cwd=packages,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_core_wheel_has_nothing_of_the_paper(core: Path) -> None:
    with zipfile.ZipFile(core) as wheel:
        names = wheel.namelist()
        parts = {Path(part).stem for name in names for part in Path(name).parts}
        sources = {n: wheel.read(n).decode() for n in names if n.endswith(".py")}
    assert "bayesian_smm" in parts
    assert parts & MOVED == set()
    imports = re.compile(r"^\s*(from|import) docsigma_paper", re.MULTILINE)
    assert [name for name, text in sources.items() if imports.search(text)] == []


def test_the_wheel_of_the_paper_joins_the_core(tmp_path: Path) -> None:
    with zipfile.ZipFile(build(ROOT / "paper", tmp_path)) as wheel:
        names = wheel.namelist()
        (file,) = (name for name in names if name.endswith("entry_points.txt"))
        joined = configparser.ConfigParser()
        joined.optionxform = str  # type: ignore[assignment]
        joined.read_string(wheel.read(file).decode())
    parts = {Path(part).stem for name in names for part in Path(name).parts}
    assert parts >= MOVED
    assert set(joined["docsigma.commands"]) == {"reproduce"}
    assert set(joined["docsigma.models"]) == {"SMM", "NVDM"}
    assert len(joined["docsigma.corpora"]) == 4
    for section in joined.sections():
        for target in joined[section].values():
            assert f"{target.split(':')[0].replace('.', '/')}.py" in names


@pytest.mark.parametrize(
    "program",
    [
        "from docsigma import {}",
        "import docsigma; docsigma.{}",
    ],
)
@pytest.mark.parametrize(
    "name", ["SMM", "NVDM", "SelectedNaiveBayes", "ULMFiTClassifier"]
)
def test_a_class_of_the_paper_says_what_to_install(
    core_alone: Path, program: str, name: str
) -> None:
    done = run_alone(core_alone, program.format(name))
    said = f"{name} is {INSTALL}, then `from docsigma_paper import {name}`"
    assert done.stderr.splitlines()[-1] == f"ImportError: {said}"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("load_corpus('switchboard')", "the corpus `switchboard` is"),
        ("load_corpus('fisher-asr')", "the corpus `fisher-asr` is"),
        ("load_model({folder!r})", "of the kind SMM, which is"),
    ],
)
def test_a_name_of_the_paper_says_what_to_install(
    core_alone: Path, tmp_path: Path, program: str, said: str
) -> None:
    folder = tmp_path / "smm"
    counts = np.ones((3, 4), dtype=np.float32)
    SMM(1, max_iter=1, random_state=0).fit(counts).save(folder)
    program = program.format(folder=str(folder))
    program = f"from docsigma import load_corpus, load_model; {program}"
    last = run_alone(core_alone, program).stderr.splitlines()[-1]
    assert last.startswith("docsigma.exceptions.InputError: ")
    assert last.endswith(f"{said} {INSTALL}")


@pytest.mark.parametrize("arguments", [[], ["convergence", "--quick"], ["--help"]])
def test_reproduce_says_what_to_install(core_alone: Path, arguments: list[str]) -> None:
    program = "from docsigma.cli.__main__ import main; main({})"
    done = run_alone(core_alone, program.format(["reproduce", *arguments]))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"docsigma: the command `reproduce` is {INSTALL}\n"


def test_help_is_listed_without_torch_and_without_what_is_missing(
    core_alone: Path,
) -> None:
    program = """
import sys
from docsigma.cli.__main__ import main
try:
    main(["--help"])
finally:
    assert "torch" not in sys.modules
"""
    alone = run_alone(core_alone, program)
    assert alone.returncode == 0, alone.stderr
    assert "reproduce" not in alone.stdout
    both = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert both.returncode == 0, both.stderr
    assert "reproduce" in both.stdout


def test_the_core_alone_fits_saves_and_loads(core_alone: Path, tmp_path: Path) -> None:
    program = f"""
from docsigma import BayesianSMM, load_corpus, load_model
from docsigma.corpora import available_corpora
counts = load_corpus("synthetic", n_train=20, n_test=5).train.counts
BayesianSMM(2, max_iter=2, random_state=0).fit(counts).save({str(tmp_path / "m")!r})
print(type(load_model({str(tmp_path / "m")!r})).__name__)
print(len(available_corpora()))
"""
    done = run_alone(core_alone, program)
    assert done.stdout.split() == ["BayesianSMM", "4"], done.stderr


def test_names_that_moved_are_those_that_the_paper_registers():
    with (ROOT / "paper" / "pyproject.toml").open("rb") as file:
        groups = tomllib.load(file)["project"]["entry-points"]
    for group in ("commands", "corpora", "models"):
        assert set(PAPER[group]) == set(groups[f"docsigma.{group}"])


def test_a_broken_distribution_does_not_stop_the_command_line(monkeypatch, capsys):
    broken = importlib.metadata.EntryPoint(
        "magic", "no_such_module:magic", "docsigma.commands"
    )
    found = importlib.metadata.entry_points

    def entry_points(*, group, **options):
        rest = [] if options.get("name", "magic") != "magic" else [broken]
        return [*found(group=group, **options), *rest]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.delitem(sys.modules, "docsigma.cli.app", raising=False)
    app = importlib.import_module("docsigma.cli.app")
    monkeypatch.undo()
    assert "no command `magic`" in capsys.readouterr().err
    assert "fit" in {command.name for command in app.app.registered_commands}
