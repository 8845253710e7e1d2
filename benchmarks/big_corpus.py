r"""A corpus as big as wanted, drawn to disk, fitted and embedded from there.

    python benchmarks/big_corpus.py make --out big --documents 2000000
    python benchmarks/big_corpus.py run --documents 250000 500000 1000000 2000000 \
        --json benchmarks/results/big-corpus.json

`run` draws each corpus that is not there yet, makes one pass of the training over it
and embeds all of it, in blocks and without keeping the embeddings. Each step has a
process of its own: its seconds are those of the work without imports, its peak is
the most memory that the process ever held. The exponent b of time ~ documents^b is
the slope of the line through the logarithms.

A third of the tokens follow Zipf's law. The rest are of a topic, which has the same law
for other words: it shuffles the words within bands of ranks, so that the whole corpus
stays close to Zipf's law. A document mixes three topics; its label is the one that
weighs most.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from docsigma.counts import CountsWriter, DiskCounts
from peers_machine import OtherWork, describe_run, resident_gib, thread_environment

BLOCK = 16384
N_TOPICS = 20
TOPICS_A_DOCUMENT = 3
MEAN_TOKENS = 60
SHARED = 1 / 3  # of the tokens, whatever the topic


@dataclass(frozen=True)
class Truth:
    """What the documents are drawn from.

    Attributes
    ----------
    cumulative : array of n_features
        Sums of the probabilities of the words, by rank.
    words : array of n_topics x n_features
        The word that has each rank in each topic.
    """

    cumulative: np.ndarray
    words: np.ndarray

    def probabilities(self) -> np.ndarray:
        """Word probabilities of each topic, n_topics x n_features."""
        by_rank = np.diff(self.cumulative, prepend=0.0)
        result = np.empty(self.words.shape)
        np.put_along_axis(result, self.words, by_rank[None, :], axis=1)
        return SHARED * by_rank + (1 - SHARED) * result


def draw_truth(n_features: int, seed: int) -> Truth:
    generator = np.random.default_rng([seed, 0])
    weights = 1.0 / (np.arange(n_features) + 2.7)
    cumulative = np.cumsum(weights / weights.sum())
    cumulative[-1] = 1.0
    bands = [0, *(2 ** np.arange(3, n_features.bit_length(), 4)), n_features]
    words = np.empty((N_TOPICS, n_features), dtype=np.int32)
    for topic in words:
        for start, stop in pairwise(bands):
            topic[start:stop] = generator.permutation(np.arange(start, stop))
    return Truth(cumulative, words)


def draw_block(
    truth: Truth, n_documents: int, generator: np.random.Generator
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Draw documents; give their counts and the topic that weighs most."""
    n_features = truth.words.shape[1]
    shape = (n_documents, TOPICS_A_DOCUMENT)
    topics = generator.integers(N_TOPICS, size=shape)
    weights = generator.standard_gamma(0.5, size=shape)
    weights /= weights.sum(axis=1, keepdims=True)
    # Lengths vary as those of real documents do: some have a handful of tokens.
    rate = generator.standard_gamma(2.0, n_documents) * (MEAN_TOKENS - 1) / 2.0
    lengths = 1 + generator.poisson(rate)
    rows = np.repeat(np.arange(n_documents), lengths)
    uniform = generator.random(len(rows))
    bounds = weights.cumsum(axis=1)[rows, :-1]
    chosen = topics[rows, (uniform[:, None] > bounds).sum(axis=1)]
    ranks = np.searchsorted(truth.cumulative, generator.random(len(rows)), "right")
    shared = generator.random(len(rows)) < SHARED
    columns = np.where(shared, ranks, truth.words[chosen, ranks])
    ones = np.ones(len(rows), dtype=np.float32)
    indptr = np.concatenate([[0], lengths.cumsum()])
    counts = sp.csr_matrix((ones, columns, indptr), shape=(n_documents, n_features))
    counts.sum_duplicates()
    return counts, topics[np.arange(n_documents), weights.argmax(axis=1)]


def make_counts(
    folder: str | Path, n_documents: int, n_features: int, seed: int = 0
) -> DiskCounts:
    """Write a corpus to `folder`; the same arguments give the same bytes."""
    truth = draw_truth(n_features, seed)
    with CountsWriter(folder, n_features) as writer:
        for number, start in enumerate(range(0, n_documents, BLOCK), start=1):
            generator = np.random.default_rng([seed, number])
            size = min(BLOCK, n_documents - start)
            counts, topics = draw_block(truth, size, generator)
            writer.add(counts, labels=[f"topic{topic:02d}" for topic in topics])
    return DiskCounts(folder)


def make(arguments: argparse.Namespace) -> None:
    started = time.perf_counter()
    counts = make_counts(
        arguments.out, arguments.documents, arguments.features, arguments.seed
    )
    seconds = time.perf_counter() - started
    report = {
        "n_documents": counts.n_documents,
        "n_features": counts.n_features,
        "n_tokens": int(counts.n_tokens.sum()),
        "nnz": counts.nnz,
        "bytes": counts.nbytes,
        "seconds": seconds,
        "documents_per_second": counts.n_documents / seconds,
        "peak_gib": peak_gib(),
    }
    print(json.dumps(report, indent=1))


def fit(arguments: argparse.Namespace) -> None:
    from docsigma import BayesianSMM

    counts = DiskCounts(arguments.counts)
    model = BayesianSMM(
        arguments.components,
        max_iter=arguments.passes,
        tol=0,
        device="cpu",
        random_state=arguments.seed,
    )
    before = resident_gib()
    started = time.perf_counter()
    model.fit(counts)
    seconds = time.perf_counter() - started
    model.save(arguments.out, overwrite=True)
    report = {
        "n_documents": counts.n_documents,
        "passes": model.n_iter_,
        "bound_per_token": model.history_[-1]["bound"] / float(counts.n_tokens.sum()),
        "seconds": seconds,
        # A pass over a document counts as one.
        "documents_per_second": counts.n_documents * model.n_iter_ / seconds,
        "before_gib": before,
        "peak_gib": peak_gib(),
    }
    print(json.dumps(report, indent=1))


def embed(arguments: argparse.Namespace) -> None:
    from docsigma import BayesianSMM

    counts = DiskCounts(arguments.counts)
    model = BayesianSMM.load(arguments.model).set_params(device="cpu")
    if arguments.tol is not None:
        model.set_params(inference_tol=arguments.tol)
    before = resident_gib()
    variance = 0.0
    started = time.perf_counter()
    for block in counts.iter_blocks():
        variance += float(model.posterior(block).total_variance.sum(dtype=np.float64))
    seconds = time.perf_counter() - started
    report = {
        "n_documents": counts.n_documents,
        "inference_tol": model.inference_tol,
        "mean_total_variance": variance / counts.n_documents,
        "seconds": seconds,
        "documents_per_second": counts.n_documents / seconds,
        "before_gib": before,
        "peak_gib": peak_gib(),
    }
    print(json.dumps(report, indent=1))


def peak_gib() -> float:
    """Most memory that this process ever held."""
    try:
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 2**20
    # On Linux this one may be that of the process which started this one.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def take_step(threads: int, *arguments: object) -> dict[str, Any]:
    """Take a step in a new process; give its report and how busy others were."""
    others = OtherWork()
    done = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)],
        env=thread_environment(threads),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{arguments[0]} ended with status {done.returncode}")
    return json.loads(done.stdout) | {"others_busy_cores": others.busy_cores()}


def measure(n_documents: int, chosen: argparse.Namespace) -> dict[str, Any]:
    """Take all steps with a corpus of that size."""
    name = f"{n_documents}x{chosen.features}-{chosen.seed}"
    corpus, model = chosen.folder / name, chosen.folder / f"{name}-model"
    seed = ("--seed", chosen.seed)
    row: dict[str, Any] = {}
    if not corpus.is_dir():
        sizes = ("--documents", n_documents, "--features", chosen.features)
        row["make"] = take_step(chosen.threads, "make", "--out", corpus, *sizes, *seed)
        print(step_line("make", row["make"]), flush=True)
    options = ("--components", chosen.components, "--passes", chosen.passes, *seed)
    row["fit"] = take_step(chosen.threads, "fit", corpus, "--out", model, *options)
    print(step_line("fit", row["fit"]), flush=True)
    options = () if chosen.tol is None else ("--tol", chosen.tol)
    row["embed"] = take_step(chosen.threads, "embed", model, corpus, *options)
    print(step_line("embed", row["embed"]), flush=True)
    counts = DiskCounts(corpus)
    return {
        "n_documents": counts.n_documents,
        "n_tokens": int(counts.n_tokens.sum()),
        "nnz": counts.nnz,
        "bytes": counts.nbytes,
        **row,
    }


def growth(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Give how time and peak memory of each step grow with the documents."""
    from growth import exponent

    found = {}
    for step in ("make", "fit", "embed"):
        taken = [row for row in rows if step in row]
        sizes = [float(row["n_documents"]) for row in taken]
        if len(set(sizes)) < 2:
            continue
        peaks = [row[step]["peak_gib"] * 2**30 for row in taken]
        found[step] = {
            "exponent": exponent(sizes, [row[step]["seconds"] for row in taken]),
            "peak_bytes_a_document": float(np.polyfit(sizes, peaks, 1)[0]),
        }
    return found


def step_line(step: str, row: dict[str, Any]) -> str:
    return (
        f"{step:>6s} {row['n_documents']:9d} documents {row['seconds']:9.1f} s "
        f"{row['documents_per_second']:9.0f} documents/s {row['peak_gib']:6.2f} GiB"
    )


def run(chosen: argparse.Namespace) -> None:
    report = describe_run(chosen.threads) | {
        "n_features": chosen.features,
        "n_components": chosen.components,
        "passes": chosen.passes,
    }
    chosen.folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for n_documents in sorted(set(chosen.documents)):
        rows.append(measure(n_documents, chosen))
        report |= {"rows": rows, "growth": growth(rows)}
        if chosen.json:  # after each size: the next may take an hour
            chosen.json.parent.mkdir(parents=True, exist_ok=True)
            chosen.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    for step, grown in growth(rows).items():
        print(
            f"{step:>6s}: time ~ documents^{grown['exponent']:.2f}, peak + "
            f"{grown['peak_bytes_a_document']:.0f} bytes per document"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step", required=True)
    step = steps.add_parser("make", help="draw a corpus and write it to disk")
    step.add_argument("--out", type=Path, required=True)
    step.add_argument("--documents", type=int, default=2_000_000)
    step.add_argument("--features", type=int, default=100_000)
    step.add_argument("--seed", type=int, default=0)
    step.set_defaults(run=make)
    step = steps.add_parser("fit", help="train on a corpus on disk")
    step.add_argument("counts", type=Path)
    step.add_argument("--out", type=Path, required=True, help="model folder")
    step.add_argument("--components", type=int, default=10)
    step.add_argument("--passes", type=int, default=1)
    step.add_argument("--seed", type=int, default=0)
    step.set_defaults(run=fit)
    step = steps.add_parser("embed", help="embed a corpus on disk, keeping nothing")
    step.add_argument("model", type=Path)
    step.add_argument("counts", type=Path)
    step.add_argument("--tol", type=float, help="inference_tol, else the model's")
    step.set_defaults(run=embed)
    step = steps.add_parser("run", help="all of it for several sizes")
    step.add_argument("--documents", type=int, nargs="+", default=[2_000_000])
    step.add_argument("--features", type=int, default=100_000)
    step.add_argument("--components", type=int, default=10)
    step.add_argument("--passes", type=int, default=1)
    step.add_argument("--tol", type=float, help="inference_tol, else the model's")
    step.add_argument("--seed", type=int, default=0)
    step.add_argument("--threads", type=int, default=2)
    step.add_argument(
        "--folder", type=Path, default=Path("big"), help="where the corpora are kept"
    )
    step.add_argument("--json", type=Path)
    step.set_defaults(run=run)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
