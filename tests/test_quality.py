"""The benchmark of quality runs, and finds what was put into its corpus."""

from __future__ import annotations

import importlib
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
WORDS = ("sun rain wind snow", "bread salt butter egg", "goal team match ball")


@pytest.fixture
def quality(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    random = np.random.default_rng(0)
    (tmp_path / "small").mkdir()
    for name, n_texts in (("train", 120), ("test", 60)):
        with lzma.open(tmp_path / "small" / f"{name}.jsonl.xz", "wt") as file:
            for row in range(n_texts):
                words = [*WORDS[row % 3].split(), "and", "the"]
                text = " ".join(random.choice(words, 12))
                label = ("weather", "food", "sport")[row % 3]
                file.write(json.dumps({"text": text, "label": label}) + "\n")
    # Processes that the benchmark starts read the corpus as well.
    monkeypatch.setenv("DOCSIGMA_DATA", str(tmp_path))
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("quality")


def test_ours_is_compared_with_the_best_baseline(quality: Any, tmp_path: Path) -> None:
    def run(*arguments: object) -> None:
        losses = ("--cache", tmp_path, "--losses", tmp_path / "losses")
        where = ("--out", tmp_path, *losses)
        quality.main([str(a) for a in (*arguments, *where)])

    few = ("few", "small", "--per-class", 1, 5, "--draws", 2)
    run("whole", "small", "--seeds", 0, 1)
    run("baselines", "whole", "small")
    run("baselines", *few)
    run(*few)
    run("compare")
    report = json.loads((tmp_path / "quality-whole.json").read_text())
    (run_of,) = report["runs"].values()
    assert {"commit", "date", "versions", "machine"} <= set(run_of)
    assert set(report["rows"]) == {f"whole/small/docsigma/{n}" for n in (0, 1)}
    baselines = json.loads((tmp_path / "quality-baselines.json").read_text())["rows"]
    assert len(baselines) == 6 + 2 * 2 * 6
    for key, row in baselines.items():
        assert "few-1" in key or row["whole"]["accuracy"] > 90, key
    compared = json.loads((tmp_path / "quality-compare.json").read_text())["rows"]
    cells = {(row["part"], row["words"]) for row in compared}
    assert cells == {("whole", 0), ("whole", 10), ("few-1", 0), ("few-5", 0)}
    mean = np.mean([row["10"]["cross_entropy"] for row in report["rows"].values()])
    cell = next(row for row in compared if row["words"] == 10)["cross_entropy"]
    assert cell["ours"] == pytest.approx(mean, abs=1e-4)
    (theirs,) = (
        row["10"]["cross_entropy"]
        for key, row in baselines.items()
        if key == f"whole/small/{cell['baseline']}/0"
    )
    assert cell["theirs"] == pytest.approx(theirs, abs=1e-4)
