"""The experiments where the command line's libraries are missing, as on a bare GPU.

PYTHONPATH=src:paper/src python -m docsigma_paper.reproduce NAME --out results
"""

from __future__ import annotations

import argparse
from pathlib import Path

from docsigma.exceptions import InputError
from docsigma_paper.corpora import register
from docsigma_paper.reproduce import EXPERIMENTS, reproduce
from docsigma_paper.reproduce._setting import Setting


def main() -> None:
    """Run experiments one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="+", choices=EXPERIMENTS)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, default=3, help="0, 1, and so on")
    parser.add_argument("--seed", type=int, nargs="+", help="these instead")
    parser.add_argument("--also", type=Path, nargs="+", default=[], help="folders")
    parser.add_argument("--system", nargs="+", help="these systems' rows only")
    parser.add_argument("--ulmfit-weights", type=Path)
    chosen = parser.parse_args()
    register()
    if chosen.seeds < 1:
        parser.exit(2, f"docsigma: --seeds must be 1 or more, got {chosen.seeds}\n")
    setting = Setting(
        quick=chosen.quick,
        device=chosen.device,
        seeds=tuple(chosen.seed or range(chosen.seeds)),
        options={"ulmfit_weights": chosen.ulmfit_weights, "systems": chosen.system},
    )
    try:
        for name in chosen.names:
            for path in reproduce(name, chosen.out, setting, print, chosen.also):
                print(path)
    except InputError as error:
        parser.exit(2, f"docsigma: {error}\n")


if __name__ == "__main__":
    main()
