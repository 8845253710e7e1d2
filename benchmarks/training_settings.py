"""Settings of the training, compared on held-out training documents.

    cd benchmarks; python training_settings.py --json results/training-settings.json

Each row changes one value and fits again: `bound` is the bound on the log evidence per
token of the held-out documents (Jensen's, without draws), `gain` what that is over the
bound of the values as they are, in per cent of its size: below 0, the value as it is
pays. Rows of the baseline with other seeds show the noise. Corpora lie in
DOCSIGMA_DATA: search snippets, Stack Overflow titles, Switchboard calls, and 3000
documents of 20 Newsgroups. Every fifth training document is held out; test documents
are not read.

A name with a colon is a constant of a module, others are fields of MinibatchSettings.
Those of streams are measured by `partial_fit` in five calls, in batches of 16
documents, and those of the Polya likelihood with that. Each call adds a run to the
file, with the commit that made it: values that were removed are in older ones.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from docsigma import BayesianSMM, Vocabulary, load_corpus

if TYPE_CHECKING:
    from collections.abc import Iterator

CORPORA = (
    "short-texts/searchsnippets",
    "short-texts/stackoverflow",
    "switchboard",
    "20newsgroups",
)
MOST = 5000  # documents of a corpus, 3000 of 20 Newsgroups
CHANGES: dict[str, list[Any]] = {
    "seed": [1, 2],
    "spare": [0],
    "ridge": [0.0, 40.0],
    "ridge_documents": [0],
    "damping": [0.4, 0.6],
    "reach": [1e9],
    "basis_every": [10_000],
    "curved_every": [1, 10_000],
    "rare_word_rate": [1.0],
    "head_tokens": [1.0],
    "end": [0.01, 0.3],
    "docsigma.loadings.gaussian:TOGETHER": [0.0],
    "docsigma.loadings.gaussian:EACH": [0.0],
    "docsigma.loadings.gaussian:START": [0.0],
    "docsigma.likelihoods.polya:DEFAULT": [50.0],
    "stream_passes": [2, 8],
    "stream_slowing": [25, 100, 1e9],
}


def counted(name: str) -> tuple[Any, Any]:
    """Return the counts of training documents, and of those held out."""
    if name == "20newsgroups":
        corpus = load_corpus(name)
    else:
        root = Path(os.environ["DOCSIGMA_DATA"]) / name
        corpus = load_corpus(root / "train.jsonl.xz")
    texts = list(corpus.train.texts)
    order = np.random.default_rng(0).permutation(len(texts))
    some = [texts[i] for i in order[: 3000 if name == "20newsgroups" else MOST]]
    held = [text for i, text in enumerate(some) if i % 5 == 0]
    kept = [text for i, text in enumerate(some) if i % 5]
    words, found = Vocabulary.fit_count(kept, min_df=2)
    return found.counts, words.count(held).counts


def fit(name: str, value: Any, counts: Any, k: int) -> Any:
    """Fit with one setting changed."""
    seed, settings = 0, BayesianSMM.minibatch_settings
    patched: tuple[Any, str] | None = None
    if name == "seed":
        seed = value or 0
    elif ":" in name:
        module, constant = name.split(":")
        patched = importlib.import_module(module), constant
    elif value is not None:
        settings = replace(settings, **{name: value})

    class Changed(BayesianSMM):
        minibatch_settings: ClassVar = settings

    likelihood = "polya" if "polya" in name else "multinomial"
    # So that a stream of some thousand documents has steps enough.
    size = 16 if name.startswith("stream") else 1024
    model = Changed(
        k, random_state=seed, likelihood=likelihood, batch_size=size, device="cpu"
    )
    before = None if patched is None else getattr(*patched)
    try:
        if patched is not None and value is not None:
            setattr(*patched, value)
        if not name.startswith("stream"):
            return model.fit(counts)
        for part in np.array_split(np.arange(counts.shape[0]), 5):
            model.partial_fit(counts[part])
    finally:
        if patched is not None:
            setattr(*patched, before)
    return model


def group(name: str) -> str:
    """Return which baseline a change is compared with."""
    if "polya" in name:
        return name
    return "stream" if name.startswith("stream") else ""


def compare(corpus: str, k: int, names: list[str]) -> Iterator[dict[str, Any]]:
    """Change one value at a time."""
    counts, held = counted(corpus)
    print(corpus, counts.shape, int(counts.sum()), "tokens", flush=True)
    bases: dict[str, float] = {}

    def measure(name: str, value: Any) -> dict[str, Any]:
        begun = time.process_time()
        model = fit(name, value, counts, k)
        seconds = time.process_time() - begun
        found = model.perplexity(held, estimator="jensen")
        bound = -float(np.log(found.corpus))
        base = bases.setdefault(group(name), bound)
        return {
            "corpus": corpus,
            "setting": name.split(":")[-1],
            "value": value,
            "bound": round(bound, 5),
            "gain": round(100 * (bound - base) / abs(base), 3),
            "cpu_seconds": round(seconds, 2),
        }

    for name in names:
        if group(name) not in bases:
            yield measure(name, None)
        for value in CHANGES[name]:
            yield measure(name, value)


def main() -> None:
    """Compare the settings on all corpora."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--settings", nargs="+", default=list(CHANGES))
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for corpus in chosen.corpora:
        for row in compare(corpus, chosen.components, chosen.settings):
            print(row, flush=True)
            rows.append(row)
    if chosen.json:
        here = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
        commit = subprocess.run(here, capture_output=True, text=True).stdout.strip()
        about = {"commit": commit, "components": chosen.components, "rows": rows}
        runs = json.loads(chosen.json.read_text()) if chosen.json.exists() else []
        chosen.json.write_text(json.dumps([*runs, about], indent=1) + "\n")


if __name__ == "__main__":
    main()
