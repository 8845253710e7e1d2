r"""How fast and how complete an index of 100 000 documents is.

    python benchmarks/search_speed.py --json benchmarks/results/search-speed.json

Documents are drawn from a known model: topics, documents around them, and evidence
that depends on their length. It prints, in one run, recall at 10 of the re-ranked list
against the exact ranking, queries per second of both, and of the same library on plain
means; seconds to build, and bytes per document in memory and on disk.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from _versions import changed_commit
from docsigma import EvidenceClassifier, GaussianPosterior, GaussianPrior
from docsigma.search import GaussianIndex
from docsigma.search._neighbours import Neighbours
from peers_machine import describe_run

ROOT = Path(__file__).parents[1]


def draw(
    n: int, k: int, topics: Any, random: np.random.Generator
) -> tuple[GaussianPosterior, Any]:
    """Return documents of some topics, long ones and short ones."""
    labels = random.integers(len(topics), size=n)
    # Few dimensions matter much, as in fitted models.
    scale = 1 / np.sqrt(1 + np.arange(k))
    w = topics[labels] * scale + 0.7 * scale * random.standard_normal((n, k))
    n_tokens = np.exp(random.normal(4.5, 1.0, n)).clip(1).round()
    precision = 0.05 * n_tokens[:, None] * random.gamma(4.0, 0.25, (n, k))
    seen = w + random.standard_normal((n, k)) / np.sqrt(precision)
    prior = GaussianPrior.isotropic(1.0, k)
    variance = 1 / (1 + precision)
    q = GaussianPosterior(
        (seen * precision * variance).astype(np.float32),
        variance.astype(np.float32),
        prior=prior,
        n_tokens=n_tokens,
        model_digest="drawn",
    )
    return q, labels


def timed(function: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    found = function()
    return time.perf_counter() - start, found


def measure(n: int, k: int, n_queries: int, n_exact: int) -> dict[str, Any]:
    random = np.random.default_rng(0)
    topics = random.standard_normal((200, k))
    documents, _ = draw(n, k, topics, random)
    queries, _ = draw(n_queries, k, topics, random)
    train, labels = draw(min(n, 4000), k, topics, random)
    classifier = EvidenceClassifier()
    classifier.fit(train, labels)
    report: dict[str, Any] = {"n_documents": n, "n_components": k}
    report["n_queries"] = n_queries
    for name, chosen in (("wasserstein2", None), ("same_topic", classifier)):
        index = GaussianIndex(chosen, approximate=True)
        build, _ = timed(lambda index=index: index.add(documents))
        brute, exact = timed(
            lambda index=index: index.search(queries[:n_exact], exact=True)
        )
        fast, found = timed(lambda index=index: index.search(queries))
        shared = [
            len(set(a.ids) & set(b.ids)) for a, b in zip(exact, found, strict=False)
        ]
        assert index._neighbours is not None
        graph = int(index._neighbours._index.memory_usage)
        arrays = sum(array.nbytes for array in index._arrays.values())
        with tempfile.TemporaryDirectory() as folder:
            save, _ = timed(lambda index=index: index.save(f"{folder}/index"))
            files = Path(folder).rglob("*")
            on_disk = sum(file.stat().st_size for file in files if file.is_file())
            load, _ = timed(lambda: GaussianIndex.load(f"{folder}/index"))
        report[name] = {
            "candidates": index.n_candidates,
            "recall_at_10": sum(shared) / (10 * n_exact),
            "queries_per_second": n_queries / fast,
            "queries_per_second_brute_force": n_exact / brute,
            "build_seconds": build,
            "save_seconds": save,
            "load_seconds": load,
            "memory_bytes_per_document": (graph + arrays) / n,
            "disk_bytes_per_document": on_disk / n,
        }
    plain = Neighbours(k, "l2sq")
    seconds, _ = timed(lambda: plain.add(np.arange(n), documents.mean))
    fast, _ = timed(lambda: plain.search(queries.mean, 10))
    report["usearch_on_means"] = {
        "queries_per_second": n_queries / fast,
        "build_seconds": seconds,
        "memory_bytes_per_document": int(plain._index.memory_usage) / n,
    }
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--exact", type=int, default=100, help="queries of the recall")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    sizes = given.documents, given.components, given.queries, given.exact
    report = describe_run(torch.get_num_threads()) | changed_commit(ROOT)
    report |= measure(*sizes)
    text = json.dumps(report, indent=1)
    print(text)
    if given.json is not None:
        given.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
