"""Peak resident memory of a fit on the full 20 Newsgroups vocabulary.

    python benchmarks/memory.py --json benchmarks/results/memory.json

Each size runs in its own process. The floor beside it counts what must be held: T and
five arrays of its size (two moments, gradient, its sparse half, a temporary), six
arrays of n x K for the posteriors and their moments, the counts and their transpose,
one block of logits. The n x V matrix that is never made is printed for comparison.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

LIMIT_GIB = 2.0


def measure(n_documents: int, n_components: int, passes: int) -> dict[str, float]:
    import psutil
    import torch

    from docsigma import BayesianSMM, Vocabulary, load_corpus

    texts = load_corpus("20newsgroups").train.texts
    _, counted = Vocabulary.fit_count(texts, min_df=2)
    counts = counted.counts[:n_documents]
    del texts, counted
    before = psutil.Process().memory_info().rss
    model = BayesianSMM(
        n_components, solver="paper", max_iter=passes, tol=0, random_state=0
    )
    model.fit(counts)
    n, v = counts.shape
    k, nnz = n_components, counts.nnz
    floor = 4 * (6 * v * k + 8 * n * k) + 2 * nnz * 12 + 2 * nnz * 12 + 16 * 2**20
    return {
        "n_documents": n,
        "n_features": v,
        "n_components": k,
        "passes": passes,
        "threads": torch.get_num_threads(),
        "resident_before_gib": before / 2**30,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "counted_floor_gib": floor / 2**30,
        "n_by_v_gib": 4 * n * v / 2**30,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", type=int, nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(measure(*arguments.worker)))
        return
    rows = []
    for size in ((2828, 100, 2), (5657, 100, 2), (11314, 100, 2), (11314, 200, 2)):
        command = [sys.executable, __file__, "--worker", *map(str, size)]
        row = json.loads(subprocess.check_output(command).decode().splitlines()[-1])
        rows.append(row)
        print(
            f"n {row['n_documents']:6d}  V {row['n_features']}  K "
            f"{row['n_components']:4d}  peak {row['peak_gib']:.2f} GiB (before the fit "
            f"{row['resident_before_gib']:.2f}, counted floor of the fit "
            f"{row['counted_floor_gib']:.2f}, n x V would be {row['n_by_v_gib']:.2f})",
            flush=True,
        )
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    worst = max(r["peak_gib"] for r in rows if r["n_components"] == 100)
    if worst >= LIMIT_GIB:
        sys.exit(f"peak {worst:.2f} GiB is not under {LIMIT_GIB} GiB at K 100")


if __name__ == "__main__":
    main()
