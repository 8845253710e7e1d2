"""Draw every figure of the README and the pages again, from what is in the repository.

Those of measurements are drawn from their files in `results/` and
`benchmarks/results/`: nothing is measured again. Those of the demo train its model,
which takes a minute or two. `docs/images/architecture.svg` is drawn by hand, and the
notebooks draw their own when the site is built.

    python benchmarks/figures.py
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docsigma.experiments.demo import run_demo
from docsigma_paper.cut_documents import Cut, plot_cuts

ROOT = Path(__file__).parents[1]
# Of the pictures that the demo draws, those that pages show.
DEMO = ("uncertainty.png", "map.png")


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
    print(*draw_cuts(measured, images), sep="\n")
    plots = [sys.executable, ROOT / "benchmarks" / "plots.py", "--results", measured]
    subprocess.run([*plots, "--out", images], check=True)
    program = "from docsigma.cli.__main__ import main; main()"
    for name, n_seeds in experiments(results).items():
        command = [sys.executable, "-c", program, "reproduce", name, "--no-compute"]
        options = ["--seeds", str(n_seeds), "--out", results]
        subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
        print(results / f"{name}.png")
    if chosen.no_demo:
        return
    with tempfile.TemporaryDirectory() as folder:
        run_demo(Path(folder), log=print)
        for name in DEMO:
            shutil.copy(Path(folder) / name, images / name)
            print(images / name)


if __name__ == "__main__":
    main()
