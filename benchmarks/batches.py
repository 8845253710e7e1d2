"""How much an embedding depends on the documents it was computed with.

    DOCSIGMA_DATA=../shared/data python benchmarks/batches.py model \
        --json benchmarks/results/batches.json

Test documents are embedded all at once and in batches of several sizes; the largest
difference of a document's mean is kept, and how many differ by more than 1e-4.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from docsigma import load_corpus, load_model

NEAR = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--docs", default="20newsgroups")
    parser.add_argument("--limit", type=int, help="documents")
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--json", type=Path, required=True)
    chosen = parser.parse_args()
    model = load_model(chosen.model)
    texts = load_corpus(chosen.docs).test.texts[: chosen.limit]
    counts = model.vocabulary_.count(texts).counts
    together = model.posterior(counts).mean
    rows = []
    for size in chosen.sizes:
        starts = range(0, len(texts), size)
        parts = [model.posterior(counts[i : i + size]).mean for i in starts]
        off = np.abs(np.concatenate(parts) - together).max(axis=1)
        row = {"size": size, "n_documents": len(off), "largest": float(off.max())}
        rows.append(row | {"n_off": int((off > NEAR).sum())})
        print(rows[-1], flush=True)
    found = {"docs": chosen.docs, "n_components": together.shape[1], "rows": rows}
    chosen.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
