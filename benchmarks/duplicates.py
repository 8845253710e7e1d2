r"""Planted duplicates: precision and recall, beside MinHash.

    python benchmarks/duplicates.py

To 3000 training texts of at least five words, 100 copies of each of three kinds are
added. *Edited*: a tenth of the words, at least one, is replaced by words of other
texts. *Cut*: the last tenth, at least one word, is missing. *Joined*: the beginning of
another text, a tenth as long, follows. MinHash (datasketch, 128 permutations, with
locality-sensitive hashing) compares sets of the same words at the same threshold.
Recall is the share of copies found with their originals; a pair with a planted text is
right if it is of one original. The least overlap of a member with the first of its
group, and the size of the largest group, are those of all texts, planted or not.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from _corpora import load
from _versions import changed_commit
from docsigma.search.duplicates import every_word, find_duplicates
from peers_machine import describe_run
from quality import write

ROOT = Path(__file__).parents[1]
KINDS = ("edited", "cut", "joined")


def plant(texts: list[str], n: int, random: Any) -> tuple[list[str], list[int]]:
    """Return texts with n copies of each kind, and the original of every text."""
    found, sources = list(texts), list(range(len(texts)))
    for kind in KINDS:
        for row in random.permutation(len(texts))[:n].tolist():
            words, other = texts[row].split(), random.choice(texts).split()
            few = max(1, len(words) // 10)
            if kind == "edited":
                for place in random.permutation(len(words))[:few]:
                    words[place] = random.choice(other)
            words = words[:-few] if kind == "cut" else words
            words += other[:few] if kind == "joined" else []
            found.append(" ".join(words))
            sources.append(row)
    return found, sources


def min_hash(counts: Any, threshold: float) -> list[tuple[int, int]]:
    """Return the pairs that MinHash finds, verified by its own estimate."""
    from datasketch import MinHash, MinHashLSH

    index, hashes = MinHashLSH(threshold=threshold, num_perm=128), []
    for row in range(counts.shape[0]):
        hashed = MinHash(num_perm=128)
        own = counts.indices[counts.indptr[row] : counts.indptr[row + 1]]
        hashed.update_batch([str(word).encode() for word in own])
        hashes.append(hashed)
        index.insert(row, hashed)
    return [
        (row, other)
        for row, hashed in enumerate(hashes)
        for other in index.query(hashed)
        if row < other and hashed.jaccard(hashes[other]) >= threshold
    ]


def evaluate(pairs: Any, sources: list[int], n_texts: int, n: int) -> dict[str, Any]:
    """Return precision among pairs with a planted text, and recall of each kind."""
    found = {tuple(sorted(map(int, pair))) for pair in pairs}
    planted = [pair for pair in found if pair[1] >= n_texts]
    right = sum(sources[a] == sources[b] for a, b in planted)
    report: dict[str, Any] = {"precision": round(right / max(len(planted), 1), 3)}
    for number, kind in enumerate(KINDS):
        rows = range(n_texts + number * n, n_texts + (number + 1) * n)
        report[kind] = sum((sources[row], row) in found for row in rows) / n
    return report


def measure(name: str, threshold: float, n_texts: int, n: int) -> dict[str, Any]:
    """Plant duplicates in one corpus, and look for them."""
    random = np.random.default_rng(0)
    texts = [text for text in load(name).texts if len(text.split()) >= 5]
    texts = [texts[row] for row in random.permutation(len(texts))[:n_texts]]
    planted, sources = plant(texts, n, random)
    begun = time.perf_counter()
    counts = every_word(planted)
    ours = find_duplicates(counts, threshold)
    seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    theirs = min_hash(every_word(planted), threshold)
    least, sizes = 1.0, np.bincount(ours.groups[ours.groups >= 0])
    for number in range(len(sizes)):
        first, *others = np.flatnonzero(ours.groups == number).tolist()
        for other in others:
            both = counts[first].minimum(counts[other]).sum()
            least = min(least, both / counts[first].maximum(counts[other]).sum())
    return {
        "docsigma": evaluate(ours.pairs, sources, len(texts), n)
        | {"seconds": round(seconds, 2)},
        "minhash": evaluate(theirs, sources, len(texts), n)
        | {"seconds": round(time.perf_counter() - begun, 2)},
        "least_overlap_with_first": round(float(least), 4),
        "largest_group": int(sizes.max(initial=0)),
    }


def main() -> None:
    """Measure three corpora at two thresholds."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = ["open-intents/clinc150", "docstrings", "20newsgroups"]
    parser.add_argument("corpora", nargs="*", default=default)
    parser.add_argument("--texts", type=int, default=3000)
    parser.add_argument("--copies", type=int, default=100)
    folder = ROOT / "benchmarks/results"
    parser.add_argument("--out", type=Path, default=folder / "duplicates.json")
    given = parser.parse_args()
    report = describe_run(torch.get_num_threads()) | changed_commit(ROOT)
    report["corpora"] = {}
    for name in given.corpora:
        for threshold in (0.8, 0.6):
            found = measure(name, threshold, given.texts, given.copies)
            print(name, threshold, found, flush=True)
            report["corpora"].setdefault(Path(name).name, {})[str(threshold)] = found
    write(given.out, report)


if __name__ == "__main__":
    main()
