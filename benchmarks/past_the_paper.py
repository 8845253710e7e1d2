"""What the options past the paper bring, on test documents of five corpora.

    DOCSIGMA_DATA=../shared/data python benchmarks/past_the_paper.py perplexity
    DOCSIGMA_DATA=../shared/data python benchmarks/past_the_paper.py defaults cost

Each part writes rows to a JSON file as they come, and skips those that are there.
Nothing is chosen on test documents: settings are the defaults or given by name.
A GPU is used if there is one; the rows kept were made on one.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.feature_extraction.text import CountVectorizer

from docsigma import BayesianSMM, load_corpus
from docsigma.classifiers import CrossValidatedLogisticRegression
from docsigma.corpora import read_documents
from docsigma_paper.corpora import register

SHORT = ("searchsnippets", "stackoverflow")
CORPORA = ("20newsgroups", "switchboard", "docstrings", *SHORT)


class Task:
    """Counts and labels of a corpus."""

    def __init__(self, name: str) -> None:
        if name in SHORT:
            folder = Path(os.environ["DOCSIGMA_DATA"]) / "short-texts" / name
            train, test = (
                read_documents(folder / f"{part}.jsonl.xz")
                for part in ("train", "test")
            )
        else:
            corpus = load_corpus(name)
            train, test = corpus.train, corpus.test
        self.train_labels, self.test_labels = train.labels, test.labels
        if getattr(train, "texts", None) is None:
            self.train, self.test = train.counts, test.counts
            return
        vectorizer = CountVectorizer(min_df=2)
        self.train = vectorizer.fit_transform(train.texts)
        self.test = vectorizer.transform(test.texts)


@cache
def task(name: str) -> Task:
    """Return a corpus, read once."""
    return Task(name)


class Rows:
    """Rows of a JSON file, written as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        if path.exists():
            self.rows = json.loads(path.read_text())

    def add(self, key: dict[str, Any], make: Any) -> None:
        """Make a row unless one with this key is there."""
        if any(row["key"] == key for row in self.rows):
            return
        started = time.perf_counter()
        row = {"key": key, **make()}
        row["seconds"] = round(time.perf_counter() - started, 1)
        self.rows.append(row)
        print(row, flush=True)
        temporary = self.path.with_suffix(".part")
        temporary.write_text(json.dumps(self.rows, indent=1) + "\n")
        temporary.replace(self.path)


def _pair(model: BayesianSMM, counts: sp.csr_matrix, **options: Any) -> list[float]:
    found = model.perplexity(counts, **options)
    return [round(found.corpus, 1), round(found.per_document, 1)]


def perplexity(rows: Rows, seeds: Sequence[int]) -> None:
    """Measure valid bounds on 20 Newsgroups by likelihood, loadings and covariance."""
    cases = [
        ("20newsgroups-2k", 200, {}),
        ("20newsgroups-2k", 200, {"likelihood": "polya"}),
        ("20newsgroups-2k", 200, {"prior": "full"}),
        ("20newsgroups", 400, {}),
        ("20newsgroups", 400, {"likelihood": "polya"}),
        ("20newsgroups-2k", 200, {"l1": 1.0}),
        ("20newsgroups", 400, {"l1": 1.0}),
    ]
    for seed in seeds:
        for corpus, k, options in cases:

            def make(corpus=corpus, k=k, options=options, seed=seed) -> dict[str, Any]:
                counts = task(corpus)
                model = BayesianSMM(k, random_state=seed, **options).fit(counts.train)
                test = counts.test
                found: dict[str, Any] = {"diagonal": _pair(model, test)}
                full = model.posterior(test, covariance="full")
                found["full"] = _pair(model, test, posterior=full)
                importance = {"estimator": "importance", "n_draws": 200}
                found["importance"] = _pair(model, test, posterior=full, **importance)
                likelihood = model.parts_.likelihood
                if hasattr(likelihood, "concentration_"):
                    found["concentration"] = round(float(likelihood.concentration_), 1)
                found["n_effective"] = model.n_effective_components_
                return found

            rows.add({"corpus": corpus, "K": k, **options, "seed": seed}, make)


def _scores(probabilities: Any, classes: Any, labels: Any) -> list[float]:
    number = {label: i for i, label in enumerate(classes)}
    known = np.array([label in number for label in labels])
    true = np.array([number[label] for label in np.asarray(labels)[known]])
    p = np.asarray(probabilities)[known]
    right = 100 * float((p.argmax(axis=1) == true).mean())
    log = np.log(np.maximum(p[np.arange(len(true)), true], 1e-300))
    return [round(right, 2), round(-float(log.mean()), 4)]


def _classify(task: Task, model: BayesianSMM) -> list[float]:
    classifier = CrossValidatedLogisticRegression()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(model.transform(task.train), task.train_labels)
    probabilities = classifier.predict_proba(model.transform(task.test))
    return _scores(probabilities, classifier.classes_, task.test_labels)


def defaults(
    rows: Rows, seeds: Sequence[int], corpora: Sequence[str] = CORPORA
) -> None:
    """Measure the defaults beside the paper's settings, K 100."""
    settings: dict[str, Any] = {
        "default": BayesianSMM(100),
        # The paper's objective, by the fast solver.
        "l1 1": BayesianSMM(100, l1=1.0),
        "polya": BayesianSMM(100, likelihood="polya"),
        "prior full": BayesianSMM(100, prior="full"),
    }
    for seed in seeds:
        for corpus in corpora:
            for name, model in settings.items():

                def make(corpus=corpus, model=model, seed=seed) -> dict[str, Any]:
                    counts = task(corpus)
                    model = model.set_params(random_state=seed).fit(counts.train)
                    found = {"diagonal": _pair(model, counts.test)}
                    return found | {"LR": _classify(counts, model)}

                rows.add({"corpus": corpus, "setting": name, "seed": seed}, make)


def cost(rows: Rows, seeds: Sequence[int]) -> None:
    """Time four passes, and embedding, of three models."""
    counts = task("20newsgroups")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    settings: dict[str, Any] = {
        "point": {"l1": 1.0},
        "gaussian": {},
        "polya": {"l1": 1.0, "likelihood": "polya"},
    }
    for repeat in seeds:
        for name, options in settings.items():

            def make(options=options) -> dict[str, Any]:
                model = BayesianSMM(100, max_iter=4, tol=0, random_state=0, **options)
                started = time.perf_counter()
                model.fit(counts.train)
                fit = time.perf_counter() - started
                started = time.perf_counter()
                model.transform(counts.test)
                embed = time.perf_counter() - started
                return {"fit": round(fit, 3), "embed": round(embed, 3)}

            rows.add({"device": device, "setting": name, "repeat": repeat}, make)


def words(rows: Rows, seeds: Sequence[int]) -> None:
    """Measure how wide words are, by how often they come in training."""
    for seed in seeds[:1]:

        def make(seed=seed) -> dict[str, Any]:
            counts = task("docstrings").train
            model = BayesianSMM(100, random_state=seed).fit(counts)
            often = np.asarray(counts.sum(axis=0)).ravel()
            width = np.sqrt(model.words().variance.mean(axis=1))
            edges = 2.0 ** np.arange(1, 1 + int(np.log2(often.max())) + 1)
            bands = []
            for low, high in pairwise(edges):
                own = width[(often >= low) & (often < high)]
                if len(own):
                    quantiles = np.quantile(own, (0.1, 0.5, 0.9)).round(4).tolist()
                    bands.append({"count": low, "words": len(own), "width": quantiles})
            prior = model.parts_.loadings.prior_variance_
            return {"bands": bands, "prior": round(float(np.sqrt(prior.mean())), 4)}

        rows.add({"corpus": "docstrings", "K": 100, "seed": seed}, make)


PARTS: dict[str, Callable[..., None]] = {
    "perplexity": perplexity,
    "defaults": defaults,
    "cost": cost,
    "words": words,
}


def main() -> None:
    """Make the rows of the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--corpora", nargs="+", default=CORPORA, help="of `defaults`")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    chosen = parser.parse_args()
    register()
    for part in chosen.parts:
        rows = Rows(chosen.out / f"past-the-paper-{part}.json")
        options = {"corpora": chosen.corpora} if part == "defaults" else {}
        PARTS[part](rows, chosen.seeds, **options)


if __name__ == "__main__":
    main()
