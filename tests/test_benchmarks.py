"""The speed benchmarks run, and the documentation can show what they write."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[1]
MEASURED = {"fit_seconds", "peak_gib", "before_gib", "work_gib", "settings", "library"}
# Templates of tables, less those that are part of others or of the results.
BENCHMARKS = {file.stem for file in (ROOT / "docs" / "tables").iterdir()}
BENCHMARKS -= {"command", "made_by", "result", "tuning"}
JUDGED = {"embed_documents_per_second", "accuracy", "cross_entropy"}


def start(script: str, *arguments: object, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, ROOT / "benchmarks" / script, *map(str, arguments)],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    hidden = tmp_path_factory.mktemp("hidden")
    (hidden / "tomotopy.py").write_text('raise ImportError("no tomotopy here")\n')
    bound = folder / "bound.json"
    bound.write_text('{"n_components": 4, "corpus": 90.5, "per_document": 91.5}')
    systems = ("lsa", "paper", "tomotopy-lda")
    sizes = ("--corpus", "synthetic", "--limit", 200, "--components", 4)
    options = ("--threads", 1, "--paper-passes", 2, "--paper-bound", bound)
    where = ("--json", folder / "peers.json")
    peers = start(
        "peers.py",
        *(*sizes, *options, *where, "--systems", *systems),
        PYTHONPATH=str(hidden),
    )
    # Here and meanwhile, to save time.
    where = ("--json", folder / "growth.json")
    threads = torch.get_num_threads()
    try:
        call("growth", "--quick", "--solver", "paper", "--threads", 1, *where)
    finally:
        torch.set_num_threads(threads)
        shown, _ = peers.communicate()
    assert peers.returncode == 0, shown
    assert all(name in shown for name in systems)
    return folder


def call(name: str, *arguments: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        patch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        load(ROOT / "benchmarks" / f"{name}.py").main()


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(path: Path) -> dict[str, dict[str, object]]:
    report = json.loads(path.read_text("utf-8"))
    return {row["system"]: row for row in report["systems"]}


def test_report_says_what_it_ran_on(results: Path) -> None:
    report = json.loads((results / "peers.json").read_text("utf-8"))
    assert report["corpus"]["n_train"] == 200
    assert report["corpus"]["n_test"] == 100
    assert {"cpu", "cores", "memory_gib"} <= set(report["machine"])
    assert {"python", "torch", "tomotopy", "gensim"} <= set(report["versions"])
    assert "--systems lsa paper" in report["command"]
    assert report["date"]


def test_system_is_measured_and_judged(results: Path) -> None:
    row = read(results / "peers.json")["lsa"]
    assert set(row) >= MEASURED | JUDGED
    assert row["status"] == "measured"
    assert row["perplexity"] is None
    assert row["peak_gib"] > row["work_gib"] > 0
    assert row["accuracy"] > 30  # five classes


def test_paper_is_extrapolated_and_says_so(results: Path) -> None:
    row = read(results / "peers.json")["paper"]
    assert set(row) >= MEASURED
    assert not JUDGED & set(row)
    assert row["measured_passes"] == 2
    assert row["fit_seconds"] == pytest.approx(600 * row["seconds_a_pass"])
    assert "extrapolated to 600" in row["note"]
    assert row["perplexity"]["corpus"] == 90.5


def test_missing_peer_is_skipped_with_the_command(results: Path) -> None:
    row = read(results / "peers.json")["tomotopy-lda"]
    assert row["status"] == "skipped"
    assert "pip install 'docsigma[bench]'" in row["reason"]


def test_growth_has_four_points_a_size(results: Path) -> None:
    report = json.loads((results / "growth.json").read_text("utf-8"))
    assert len(report["axes"]) == 4
    for found in report["axes"].values():
        sizes = [row["size"] for row in found["rows"]]
        assert sizes == [sizes[0] * 2**n for n in range(4)]
        assert {"pass_exponent", "embed_exponent"} <= set(found)


@pytest.fixture
def macros() -> ModuleType:
    """What pages call to show results."""
    return load(ROOT / "docs" / "hooks" / "macros.py")


def test_documentation_shows_the_results(
    results: Path, macros: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert macros.figure("no-such", "words") == ""
    monkeypatch.setattr(macros, "BENCHMARKS", results)
    shown = macros.table("peers")
    assert "| lsa |" in shown
    assert "skipped" in shown
    assert "tokens per document" in macros.table("growth")
    assert "Not run" in macros.table("gpu")


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_every_row_has_the_columns_of_its_table(name: str, macros: ModuleType) -> None:
    shown = macros.table(name)
    blocks = shown.split("\n\n")
    tables = [block.splitlines() for block in blocks if block.startswith("|")]
    assert tables
    for rows in tables:
        assert len(rows) > 2
        assert len({row.count("|") for row in rows}) == 1


def test_documentation_shows_a_gpu_run(
    tmp_path: Path, macros: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"ms": 2.0, "floor_ms": 1.0, "ratio": 2.0}
    row = {"variant": "fused", "n": 8, "V": 9, "K": 2, "errors": {"lse": 1e-3}}
    row |= {"training": times, "inference": times}
    report = {"device": "a GPU", "torch": "2", "rows": [row]}
    (tmp_path / "gpu.json").write_text(json.dumps(report))
    monkeypatch.setattr(macros, "BENCHMARKS", tmp_path)
    row = "| fused | 8 | 9 | 2 | 2.00 | 2.00 | 2.00 | 2.00 | 1e-03 |"
    assert row in macros.table("gpu")


@pytest.mark.release
def test_threads_wait_as_the_benchmark_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    module = load(ROOT / "benchmarks" / "busy_neighbour.py")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    ours = module.measure("docsigma", True, module.QUICK)
    spinning = module.measure("spinning", False, module.QUICK)
    assert ours["environment"]["OMP_WAIT_POLICY"] == "PASSIVE"
    assert set(spinning["environment"].values()) == {None}
    assert min(ours["seconds"], spinning["seconds"]) > 0


def test_kept_fit_beside_a_busy_process_is_within_the_limit() -> None:
    file = ROOT / "benchmarks" / "results" / "busy-neighbour.json"
    report = json.loads(file.read_text("utf-8"))
    assert report["ways"]["docsigma"]["ratio"] <= report["limit"] == 2.5


def test_pictures_are_drawn(results: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    call("plots", "--results", results, "--out", tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {
        "speed-peers.png",
        "speed-growth.png",
    }


def test_every_picture_of_the_pages_is_drawn_by_one_command(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location(
        "figures", ROOT / "benchmarks" / "figures.py"
    )
    assert spec is not None
    assert spec.loader is not None
    figures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figures)
    drawn = figures.draw_cuts(ROOT / "benchmarks" / "results", tmp_path)
    drawn.append(figures.draw_labels(ROOT / "benchmarks" / "results", tmp_path))
    assert all(file.stat().st_size > 10_000 for file in drawn)
    names = {file.name for file in drawn} | set(figures.DEMO) | {figures.PAGE}
    names |= {f"speed-{name}.png" for name in ("peers", "growth")}
    names |= {"words.png", *figures.SPEECHES}
    images = (ROOT / "docs" / "images").glob("*.png")
    assert names == {file.name for file in images}
    found = figures.experiments(ROOT / "results")
    assert set(found) == {file.stem for file in (ROOT / "results").glob("*.png")}
