"""The E-step of two versions on unseen documents: bound, passes, time.

    python benchmarks/bounds.py OLD/src src --json benchmarks/results/bounds.json
    python benchmarks/bounds.py OLD/src OLD/src --settings exact_from=1000000

The old version trains one model per corpus, kind and number of components, and saves
it. Each version embeds the same test documents; those of more than 50 tokens are also
cut to 5. One version judges both posteriors by the same Monte-Carlo bound, 64 draws.
`--settings` changes fields of the E-step's `NewtonSettings` in the second run, for an
ablation of one version.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from _versions import commit, load_saved, run_version

KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "l1": {"l1": 0.1},
    "polya": {"likelihood": "polya"},
    "full prior": {"prior": "full"},
}
CORPORA = ("20newsgroups", "switchboard", "docstrings", "searchsnippets")
CORPORA += ("stackoverflow", "clinc150")


def load(name: str) -> Any:
    """Load a named corpus, or one of the folders of the data."""
    from docsigma import load_corpus

    root = Path(os.environ["DOCSIGMA_DATA"])
    for parent in ("short-texts", "open-intents"):
        folder = root / parent / name
        if folder.is_dir() and (parent, name) != ("open-intents", "stackoverflow"):
            files = (folder / f"{part}.jsonl.xz" for part in ("train", "test"))
            train, test = (load_corpus(str(file)).train for file in files)
            return train.texts, test.texts
    corpus = load_corpus(name)
    return corpus.train.texts, corpus.test.texts


def cut(counts: Any, n_tokens: int) -> Any:
    """Return documents of `n_tokens` tokens, drawn without replacement."""
    random = np.random.default_rng(0)
    short = counts.copy()
    for row in range(counts.shape[0]):
        some = slice(*counts.indptr[row : row + 2])
        own = counts.data[some].astype(np.int64)
        if own.sum() > n_tokens:
            short.data[some] = random.multivariate_hypergeometric(own, n_tokens)
    short.eliminate_zeros()
    return short


def train(chosen: argparse.Namespace) -> None:
    """Fit the models of one corpus, and write them and the test documents."""
    import scipy.sparse as sp

    from docsigma import BayesianSMM, Vocabulary

    texts, unseen = load(chosen.corpora[0])
    words, counted = Vocabulary.fit_count(texts[: chosen.documents], min_df=2)
    test = words.count(unseen[: chosen.test_documents]).counts.astype(np.float32)
    sp.save_npz(chosen.folder / "whole.npz", test)
    if np.median(np.asarray(test.sum(axis=1))) > 50:
        sp.save_npz(chosen.folder / "cut.npz", cut(test, 5))
    for kind in chosen.kinds:
        for k in chosen.components:
            model = BayesianSMM(k, device="cpu", random_state=0, **KINDS[kind])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(counted.counts)
            model.save(chosen.folder / f"{kind} {k}", overwrite=True)


def embed(chosen: argparse.Namespace) -> dict[str, Any]:
    """Embed the test documents by one version; write the posteriors."""
    import dataclasses

    import scipy.sparse as sp

    from docsigma.estep import NewtonSettings, infer
    from docsigma.kernels import CountTensor

    try:
        from docsigma.covariances import Diagonal
    except ImportError:
        from docsigma.posteriors import Diagonal

    changed = dict(pair.split("=") for pair in chosen.settings)
    settings = dataclasses.replace(
        NewtonSettings(), **{name: json.loads(value) for name, value in changed.items()}
    )
    counts = CountTensor(
        sp.load_npz(chosen.folder / f"{chosen.part}.npz"),
        (model := load_saved(chosen.folder / chosen.model)._model()).bias,
    )
    infer(counts[: min(64, len(counts))], model, Diagonal(), settings=settings)
    started = time.process_time()
    found = infer(counts, model, Diagonal(), settings=settings)
    spent = time.process_time() - started
    q = found.posterior
    np.savez(chosen.folder / f"{chosen.out}.npz", mean=q.mean, variance=q.variance)
    return {
        "not_converged": int((~found.converged).sum()),
        "passes": float(found.n_iter.double().mean()),
        "most_passes": int(found.n_iter.max()),
        "cpu_seconds": spent,
    }


def judge(chosen: argparse.Namespace) -> dict[str, float]:
    """Return the bound per token of the posteriors that were written."""
    import scipy.sparse as sp

    from docsigma import GaussianPosterior

    model = load_saved(chosen.folder / chosen.model)
    counts = sp.load_npz(chosen.folder / f"{chosen.part}.npz")
    spoken = np.flatnonzero(np.asarray(counts.sum(axis=1)).ravel())
    bounds = {}
    for name in ("old", "new"):
        arrays = np.load(chosen.folder / f"{name}.npz")
        q = GaussianPosterior(arrays["mean"][spoken], arrays["variance"][spoken])
        found = model.perplexity(counts[spoken], posterior=q, n_draws=64)
        bounds[name] = -float(np.log(found.corpus))
    return bounds


def compare(chosen: argparse.Namespace, corpus: str, folder: Path) -> list[Any]:
    """Compare the two versions on one corpus."""
    common = ("--folder", folder, "--corpora", corpus, "--documents", chosen.documents)
    common += ("--test-documents", chosen.test_documents, "--kinds", *chosen.kinds)
    common += ("--components", *chosen.components)
    versions = (chosen.old, chosen.new)
    run_version(chosen.old, __file__, *versions, "--worker", "train", *common)
    rows = []
    for part in ("whole", "cut"):
        if not (folder / f"{part}.npz").exists():
            continue
        for kind in chosen.kinds:
            for k in chosen.components:
                own = ("--part", part, "--model", f"{kind} {k}", "--folder", folder)
                row: dict[str, Any] = {"corpus": corpus, "part": part}
                row |= {"kind": kind, "components": k}
                for name, source in zip(("old", "new"), versions, strict=True):
                    given = ("--out", name, "--worker", "embed", *own)
                    if name == "new" and chosen.settings:
                        given += ("--settings", *chosen.settings)
                    row[name] = run_version(source, __file__, *versions, *given)
                given = ("--worker", "judge", *own)
                bounds = run_version(chosen.new, __file__, *versions, *given)
                row["bound"] = bounds
                row["gain_percent"] = 100 * (1 - bounds["new"] / bounds["old"])
                rows.append(row)
                print(json.dumps(row), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--components", nargs="+", type=int, default=[4, 20, 100])
    parser.add_argument("--documents", type=int, default=4000, help="to train on")
    parser.add_argument("--test-documents", type=int, default=1000)
    parser.add_argument("--settings", nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    for name in ("worker", "part", "model", "out"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        work = {"train": train, "embed": embed, "judge": judge}[chosen.worker]
        print(json.dumps(work(chosen)))
        return
    rows = []
    for corpus in chosen.corpora:
        with tempfile.TemporaryDirectory() as name:
            rows += compare(chosen, corpus, Path(name))
    if chosen.json is not None:
        commits = {"old": commit(chosen.old), "new": commit(chosen.new)}
        about = commits | {"settings": chosen.settings, "rows": rows}
        text = json.dumps(about, indent=1)
        chosen.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
