"""Draw every figure of the README and the pages again, from what is in the repository.

Those of measurements are drawn from their files in `results/` and
`benchmarks/results/`: nothing is measured again. Those of the demo, and of the State of
the Union where $DOCSIGMA_DATA has it, train a model, which takes a minute or two.
`docs/images/architecture.svg` is drawn by hand, and the
notebooks draw their own when the site is built.

    python benchmarks/figures.py
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from docsigma.cli._demo import run_demo
from docsigma.metrics.plots import PALETTE, blank, save_figures
from docsigma_paper.cut_documents import Cut, plot_cuts

ROOT = Path(__file__).parents[1]
# Of the pictures that the demo draws, those that pages show.
DEMO = ("uncertainty.png", "map.png")
# The demo's page as it looks in a browser.
PAGE = "explore.png"
# What moves topics in the State of the Union.
SPEECHES = ("effects-year.png", "topics-over-time.png")
PROGRAM = "from docsigma.cli.__main__ import main; main()"


def draw_cuts(results: Path, images: Path) -> list[Path]:
    """Draw the tables of cut documents."""
    drawn = []
    for file in sorted(results.glob("cut-*.json")):
        report = json.loads(file.read_text("utf-8"))
        cuts = [Cut(**row) for row in report["cuts"]]
        title = f"{report['corpus']}: whole documents in training, cut ones in test"
        drawn.append(images / f"{file.stem}.png")
        plot_cuts(cuts, title).savefig(drawn[-1])
    return drawn


def label_curves(report: dict[str, Any]) -> Any:
    """Draw accuracy over labelled documents per order of labelling.

    A report has `n_labels`, and per order in `accuracy` one list of them per draw;
    draws are thin lines, their mean a thick one.
    """
    figure, axes = blank()
    axes.set_ylim(0, 100)
    for place, (order, draws) in enumerate(report["accuracy"].items()):
        color = PALETTE[3 * place]
        for one in draws:
            axes.plot(report["n_labels"], one, color=color, alpha=0.25, linewidth=1)
        mean = np.mean(draws, axis=0)
        label = f"{order} order"
        axes.plot(report["n_labels"], mean, color=color, marker="o", label=label)
    axes.set_xticks(report["n_labels"])
    axes.set_xlabel("labelled documents")
    axes.set_ylabel("accuracy on test documents (%)")
    axes.set_title(f"Labels on {report['corpus']}, {len(draws)} draws each")
    axes.legend(frameon=False, loc="lower right")
    return figure


def draw_labels(results: Path, images: Path) -> Path:
    """Draw what labels in a proposed order are worth."""
    report = json.loads((results / "active-labels.json").read_text("utf-8"))
    save_figures({"active-labels.png": label_curves(report)}, images)
    return images / "active-labels.png"


def photograph(page: Path, image: Path) -> None:
    """Photograph the demo's page, with a document open."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        shown = browser.new_page(
            viewport={"width": 1280, "height": 760}, device_scale_factor=1.5
        )
        shown.goto(page.as_uri())
        shown.wait_for_selector("html[data-ready]", state="attached")
        # Of a document that is neither sure nor unknown, the ellipse says most.
        shown.evaluate(
            """(() => { const { certainty } = DS.app.points;
              const order = [...certainty.keys()].sort(
                (a, b) => certainty[a] - certainty[b]);
              return DS.app.open(order[Math.floor(order.length / 2)]); })()"""
        )
        shown.wait_for_timeout(500)
        shown.screenshot(path=image)
        browser.close()


def draw_speeches(images: Path, folder: Path) -> list[Path]:
    """Draw effects of the year and topics over time, as the page says."""
    data = os.environ.get("DOCSIGMA_DATA")
    if data is None:
        print(f"no DOCSIGMA_DATA: {', '.join(SPEECHES)} stay as they are")
        return []
    docs = Path(data) / "state-of-the-union" / "passages.jsonl.xz"
    model, (effects, topics) = folder / "model", (images / name for name in SPEECHES)
    formula = ("--covariates", "party + spline(year)", "--components", "50")
    words = ("--words", "gold,soviet,jobs,slavery")
    for command in (
        ("fit", docs, *formula, "--stop-words", "english", "--out", model),
        ("effects", model, "--column", "year", *words, "--plot", effects, "--force"),
        (
            *("topics", model, docs, "--clusters", "6", "--time-column", "year"),
            *("--plot", topics, "--force"),
        ),
    ):
        subprocess.run(
            [sys.executable, "-c", PROGRAM, *map(str, command)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return [effects, topics]


def experiments(results: Path) -> dict[str, int]:
    """Return the experiments whose rows are there, and of how many seeds."""
    found = {}
    for file in sorted(results.glob("*.png")):
        report = json.loads(file.with_suffix(".json").read_text("utf-8"))
        found[file.stem] = len(report["seeds"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--no-demo", action="store_true", help="Train nothing.")
    chosen = parser.parse_args()
    images, results = chosen.root / "docs" / "images", chosen.root / "results"
    measured = chosen.root / "benchmarks" / "results"
    print(*draw_cuts(measured, images), draw_labels(measured, images), sep="\n")
    plots = [sys.executable, ROOT / "benchmarks" / "plots.py", "--results", measured]
    subprocess.run([*plots, "--out", images], check=True)
    for name, n_seeds in experiments(results).items():
        command = [sys.executable, "-c", PROGRAM, "reproduce", name, "--no-compute"]
        options = ["--seeds", str(n_seeds), "--out", results]
        subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
        print(results / f"{name}.png")
    if chosen.no_demo:
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "speeches").mkdir()
        print(*draw_speeches(images, Path(folder) / "speeches"), sep="\n")
        run_demo(Path(folder), log=print)
        for name in DEMO:
            shutil.copy(Path(folder) / name, images / name)
            print(images / name)
        photograph((Path(folder) / "explore.html").resolve(), images / PAGE)
        print(images / PAGE)


if __name__ == "__main__":
    main()
