"""How soon `docsigma explore` shows 100 000 documents, and how smoothly they move.

Headless Chromium without a GPU, 1280 x 800 pixels; the page is loaded five times, and
dragged by the mouse for three seconds each time.

    python benchmarks/explore.py
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "explore.json"


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from playwright.sync_api import sync_playwright

    from _versions import changed_commit
    from docsigma.metrics.environment import environment
    from explorer import Served, measure, synthetic_workspace

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    found = []
    with Served(synthetic_workspace(chosen.documents)) as url, sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        for _ in range(chosen.rounds):
            load = os.getloadavg()[0]
            found.append(measure(page, url) | {"load_average_before": load})
            print(found[-1], flush=True)
        version = browser.version
        browser.close()
    report = {
        "n_documents": chosen.documents,
        "browser": f"Chromium {version}, headless, software rendering",
        "n_cpus": os.cpu_count(),
        **changed_commit(ROOT),
        "environment": environment(on_gpu=False),
        "rounds": found,
        "median": {
            name: round(statistics.median(one[name] for one in found), 2)
            for name in found[0]
        },
    }
    chosen.json.write_text(json.dumps(report, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
