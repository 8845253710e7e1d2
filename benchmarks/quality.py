r"""Quality of `TopicClassifier` on texts, with default settings, beside baselines.

    python benchmarks/quality.py whole switchboard 20newsgroups --seeds 0 1 2
    python benchmarks/quality.py few switchboard --per-class 1 5 20 --draws 10
    python benchmarks/quality.py baselines whole switchboard
    python benchmarks/quality.py baselines few switchboard --per-class 1 5 20 --draws 3
    python benchmarks/quality.py compare
    python benchmarks/quality.py time

Without a name, all six corpora are run. `whole` trains on all training texts and
evaluates the test texts, whole and cut to their first words. `few` keeps the labels of
a few random documents of each class; the seeds of the embedder take turns over the
draws. Nothing is chosen on test texts. The loss of each test text is kept, so that
`compare` can compare document by document: ours below `benchmarks/.cache`, those of
baselines, which take an hour and a half, in `benchmarks/results/losses`. Documents are
embedded once per embedder, as an embedding depends on nothing else. Seconds are CPU
seconds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pickle
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold

import _baselines
from _corpora import CORPORA, Corpus, draw_labels, load
from _versions import changed_commit
from docsigma import DocumentEmbedder, TopicClassifier
from docsigma.classifiers._labels import fingerprints
from docsigma.metrics import entropies, error_detection_area
from docsigma.metrics.calibration import expected_calibration_error
from peers_machine import describe_run

ROOT = Path(__file__).parents[1]
OURS = "docsigma"
N_SEEDS = 3
WHOLE: dict[str, Callable[[], _baselines.Baseline]] = {
    "TF-IDF + LR": _baselines.Regression,
    "TF-IDF of pairs + LR": lambda: _baselines.Regression(2),
    "SVM": _baselines.SupportVectors,
    "SVM of pairs": lambda: _baselines.SupportVectors(2),
    "NB-SVM": lambda: _baselines.NaiveBayesVectors(2),
    "LSA + LR": _baselines.LsaRegression,
}
FEW: dict[str, Callable[[], _baselines.Baseline]] = {
    "TF-IDF + LR": _baselines.Regression,
    "LSA + LR": _baselines.LsaRegression,
    "naive Bayes with EM, counts": lambda: _baselines.ExpectedLabels(True),
    "naive Bayes with EM, TF-IDF": lambda: _baselines.ExpectedLabels(False),
    "label spreading": _baselines.Spreading,
    "self-training": _baselines.SelfTraining,
}


class Losses:
    """Losses and hits of test texts, in one file per part and corpus."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, key: str, losses: dict[str, Any]) -> None:
        """Keep what one classifier achieves; a thousandth of a nat is enough."""
        part, corpus, method, number = key.split("/")
        path = self._folder / f"{part}-{corpus}.npz"
        found = dict(np.load(path)) if path.exists() else {}
        for name, values in losses.items():
            small = np.float16 if name.startswith("loss") else np.bool_
            found[f"{method}/{number}/{name}"] = values.astype(small)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".part.npz")
        np.savez_compressed(temporary, **found)
        temporary.replace(path)

    def has(self, key: str) -> bool:
        """Whether those of one classifier are kept."""
        part, corpus, method, number = key.split("/")
        return int(number) in self.of(part, corpus).get(method, {})

    def parts(self) -> list[tuple[str, str]]:
        """Return the parts and corpora that are there."""
        names = sorted(path.stem for path in self._folder.glob("*.npz"))
        return [tuple(name.rsplit("-", 1)) for name in names]

    def of(self, part: str, corpus: str) -> dict[str, dict[int, dict[str, Any]]]:
        """Return arrays by method, number of seed or draw, and name."""
        path = self._folder / f"{part}-{corpus}.npz"
        found: dict[str, dict[int, dict[str, Any]]] = {}
        for key, values in (np.load(path) if path.exists() else {}).items():
            method, number, name = key.split("/")
            found.setdefault(method, {}).setdefault(int(number), {})[name] = values
        return found


class Results:
    """A JSON file of rows, and the losses of test texts."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._path = options.out / f"quality-{options.command}.json"
        ours = options.command != "baselines"
        self._losses = Losses(options.cache if ours else options.losses)
        found = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._runs, self._rows = found.get("runs", {}), found.get("rows", {})
        self._run = describe_run(torch.get_num_threads()) | changed_commit(ROOT)

    def has(self, key: str) -> bool:
        """Whether a row and its losses are there."""
        return key in self._rows and self._losses.has(key)

    def add(self, key: str, row: dict[str, Any], losses: dict[str, Any]) -> None:
        """Keep a row, and the losses it is made of."""
        self._losses.add(key, losses)
        print(key, json.dumps(row), flush=True)
        self._rows[key] = {"run": self._run["date"], **row}
        self._runs[self._run["date"]] = self._run
        used = {row["run"] for row in self._rows.values()}
        runs = {date: run for date, run in self._runs.items() if date in used}
        rows = dict(sorted(self._rows.items()))
        write(self._path, {"runs": runs, "rows": rows})


def evaluate(
    classifier: Any, corpus: Corpus, sizes: list[int], **about: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a classifier achieves on test texts by length, and their losses."""
    losses: dict[str, Any] = {}
    row: dict[str, Any] = dict(about)
    codes = np.searchsorted(classifier.classes_, corpus.test_labels)
    begun = time.process_time()
    for size in sizes:
        log_proba = np.nan_to_num(
            classifier.predict_log_proba(corpus.test(size)),
            neginf=np.log(1e-12),
            nan=np.nan,
        )
        losses[f"loss_{size}"] = -log_proba[np.arange(len(codes)), codes]
        losses[f"hit_{size}"] = hits = log_proba.argmax(axis=1) == codes
        ece = expected_calibration_error(
            np.exp(log_proba), corpus.test_labels, classes=classifier.classes_
        )
        found = error_detection_area(entropies(log_proba), ~hits)
        row[str(size or "whole")] = {
            "accuracy": round(100 * float(hits.mean()), 3),
            "cross_entropy": round(float(losses[f"loss_{size}"].mean()), 5),
            "ece": round(ece, 4),
            "errors_found": round(found, 4),
        }
    row["predict_seconds"] = round(time.process_time() - begun, 2)
    return row, losses


def write(path: Path, report: Any) -> None:
    """Write a JSON file at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps(report, indent=1) + "\n")
    temporary.replace(path)


def key_of(part: str, corpus: str, method: str, number: int) -> str:
    """Return the name of a row; `part` is "whole", or "few-5" for five per class."""
    return "/".join((part, Path(corpus).name, method.replace(" ", "-"), str(number)))


def parts_of(part: str, options: argparse.Namespace) -> list[tuple[str, int]]:
    """Return what to train on: part, and number of the seed or of the draw."""
    if part == "whole":
        return [(part, seed) for seed in options.seeds]
    draws = range(options.draws)
    return [(f"few-{n}", draw) for n, draw in product(options.per_class, draws)]


def training_labels(corpus: Corpus, part: str, number: int) -> np.ndarray:
    """Return the labels to train on, None where there is none."""
    if part == "whole":
        return corpus.labels
    return draw_labels(corpus.labels, int(part.split("-")[1]), number)


def embed(name: str, seed: int, folder: Path) -> float:
    """Fit an embedder with default settings, and save it; return CPU seconds.

    One that is there is used as it is.
    """
    torch.set_num_threads(1)
    if folder.exists():
        return 0.0
    begun = time.process_time()
    DocumentEmbedder(random_state=seed).fit(load(name).texts).save(folder)
    return round(time.process_time() - begun, 2)


def measure_one(
    name: str, part: str, number: int, method: str, embedders: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit one classifier, and evaluate it."""
    torch.set_num_threads(1)
    corpus = load(name)
    labels = training_labels(corpus, part, number)
    sizes = corpus.cuts() if part == "whole" else [0]
    about: dict[str, Any] = {"seed": number % N_SEEDS}
    classifier: Any
    if method == OURS:
        folder = embedders / embedder_name(name, number % N_SEEDS)
        embedder = DocumentEmbedder.load(folder)
        remember(embedder.model_, folder)
        classifier = TopicClassifier(embedder)
    else:
        classifier = (WHOLE if part == "whole" else FEW)[method]()
    begun = time.process_time()
    classifier.fit(corpus.texts, labels)
    about["fit_seconds"] = round(time.process_time() - begun, 2)
    about["settings"] = repr(classifier) if method == OURS else classifier.settings_
    return evaluate(classifier, corpus, sizes, **about)


def remember(model: Any, folder: Path) -> None:
    """Keep posteriors in files: they depend on the model and the document only."""
    infer = model.posterior

    def posterior(X: Any) -> Any:
        counts = X[:]
        own = fingerprints(counts)
        for path in sorted(folder.parent.glob(f"{folder.name}-*.pkl")):
            known, found = pickle.loads(path.read_bytes())
            at = np.minimum(np.searchsorted(known, own), len(known) - 1)
            if (known[at] == own).all():
                return found[at]
        order = np.argsort(own)
        found = infer(counts[order])
        digest = hashlib.sha256(own[order].tobytes()).hexdigest()[:16]
        path = folder.with_name(f"{folder.name}-{digest}.pkl")
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(pickle.dumps((own[order], found)))
        temporary.replace(path)
        return found[np.argsort(order)]

    model.posterior = posterior


def embedder_name(corpus: str, seed: int) -> str:
    """Return where the embedder of a corpus is kept for a while."""
    return f"{Path(corpus).name}-{seed}"


def measure(options: argparse.Namespace) -> None:
    """Fit and evaluate `TopicClassifier`, or baselines; embedders once per seed."""
    ours = options.command != "baselines"
    part = options.command if ours else options.part
    kinds = [OURS] if ours else list(WHOLE if part == "whole" else FEW)
    results, jobs = Results(options), {}
    folder = options.embedders or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:

        def submit(name: str, numbers: list[tuple[str, int]]) -> None:
            for (part, number), method in product(numbers, kinds):
                key = key_of(part, name, method, number)
                if ours or options.again or not results.has(key):
                    arguments = name, part, number, method, folder
                    jobs[pool.submit(measure_one, *arguments)] = key

        # The largest first, so that nobody waits for them in the end.
        names = options.corpora[::-1]
        if ours:
            fits = {}
            seeds = sorted({n % N_SEEDS for _, n in parts_of(part, options)})
            for name, seed in product(names, seeds):
                path = folder / embedder_name(name, seed)
                fits[pool.submit(embed, name, seed, path)] = name, seed
            for done in as_completed(fits):
                name, seed = fits[done]
                print(name, seed, "embedded in", done.result(), "s", flush=True)
                found = parts_of(part, options)
                submit(name, [each for each in found if each[1] % N_SEEDS == seed])
        else:
            for name in names:
                submit(name, parts_of(part, options))
        for done in as_completed(jobs):
            results.add(jobs[done], *done.result())


def compare(options: argparse.Namespace) -> None:
    """Compare with the best baseline of each cell; positive means ours is worse."""
    rows = []
    mine, theirs = Losses(options.cache), Losses(options.losses)
    for part, corpus in mine.parts():
        own, others = mine.of(part, corpus)[OURS], theirs.of(part, corpus)
        if part == "whole":  # baselines have no seeds
            others = {k: dict.fromkeys(own, o[0]) for k, o in others.items()}
        for size in sorted(int(k[5:]) for k in next(iter(own.values())) if "loss" in k):
            row = {"part": part, "corpus": corpus, "words": size}
            for measure, kept in (("cross_entropy", "loss"), ("accuracy", "hit")):
                found = [
                    paired(own, other, f"{kept}_{size}") | {"baseline": name}
                    for name, other in others.items()
                    if set(own) & set(other)
                ]
                if found:
                    best = min if kept == "loss" else max
                    row[measure] = best(found, key=lambda cell: cell["theirs"])
            if "accuracy" in row:
                rows.append(row)
    for row in rows:
        name = f"{row['part']:7} {row['corpus']:15} {row['words'] or 'whole':5}"
        cells = [
            f"{c['ours']:7.3f} {c['theirs']:7.3f} {c['errors_worse']:+6.1f} "
            f"{c['baseline']:27}"
            for c in (row["cross_entropy"], row["accuracy"])
        ]
        print(name, *cells)
    for measure in ("cross_entropy", "accuracy"):
        cells = [row[measure] for row in rows]
        worse = sum(cell["errors_worse"] > 2 for cell in cells)
        mean = np.mean([cell["worse"] for cell in cells]) if cells else np.nan
        print(f"{measure}: {worse} of {len(cells)} cells worse, on average {mean:+.4f}")
    report = describe_run(1) | changed_commit(ROOT) | {"rows": rows}
    write(options.out / "quality-compare.json", report)


def paired(own: Any, other: Any, name: str) -> dict[str, Any]:
    """Return means and their difference, in crossed standard errors.

    Texts and draws both vary: the square of the standard error is the sum of those over
    texts and over the draws that both have.
    """
    numbers = sorted(set(own) & set(other))
    ours = np.array([own[n][name] for n in numbers], dtype=float)
    theirs = np.array([other[n][name] for n in numbers], dtype=float)
    if name.startswith("hit"):
        ours, theirs = 100 * ours, 100 * theirs
    worse = (ours - theirs) * (-1 if name.startswith("hit") else 1)
    variance = worse.mean(axis=0).var(ddof=1) / worse.shape[1]
    if len(numbers) > 1:
        variance += worse.mean(axis=1).var(ddof=1) / len(numbers)
    return {
        "ours": float(ours.mean()),
        "theirs": float(theirs.mean()),
        "worse": float(worse.mean()),
        "errors_worse": float(worse.mean() / max(variance, 1e-30) ** 0.5),
        "numbers": numbers,
    }


def measure_time(options: argparse.Namespace) -> None:
    """Time fits beside TF-IDF + LR, fits with few labels, and scoring."""
    about = describe_run(torch.get_num_threads()) | changed_commit(ROOT)
    report: dict[str, Any] = {**about, "corpora": {}}
    for corpus in map(load, options.corpora):
        embedder = DocumentEmbedder(random_state=0).fit(corpus.texts)
        topics = TopicClassifier(embedder)
        seconds = _seconds(lambda t=topics, c=corpus: t.fit(c.texts, c.labels))
        regression = _seconds(lambda c=corpus: six_regressions(c))
        inference = _seconds(lambda e=embedder, c=corpus: e.posterior(c.texts))
        embedded = topics.embed(corpus.test_texts)
        scoring = _seconds(
            lambda t=topics, e=embedded: t.classifier_.predict_log_proba(e)
        )
        found = {
            "fit": seconds,
            "TF-IDF + LR": regression,
            "of which inference": inference,
            "ratio": round(seconds["cpu"] / regression["cpu"], 2),
            "ratio without inference": round(
                (seconds["cpu"] - inference["cpu"]) / regression["cpu"], 2
            ),
            "scored_per_second": round(len(corpus.test_texts) / scoring["wall"]),
        }
        if options.few:
            large = DocumentEmbedder(300, random_state=0).fit(corpus.texts)
            some = draw_labels(corpus.labels, 5, 0)
            found["few, K 300"] = _seconds(
                lambda e=large, c=corpus, s=some: TopicClassifier(e).fit(c.texts, s)
            )
        print(corpus.name, json.dumps(found), flush=True)
        report["corpora"][Path(corpus.name).name] = found
        write(options.out / "quality-time.json", report)


def six_regressions(corpus: Corpus) -> LogisticRegressionCV:
    """Choose one of six C on three folds, as scikit-learn does it, from texts on."""
    tfidf = TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(corpus.texts)
    return LogisticRegressionCV(
        Cs=np.logspace(-1, 4, 6),
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
        scoring="neg_log_loss",
        max_iter=1000,
    ).fit(tfidf, corpus.labels)


def _seconds(work: Any) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {
        "cpu": round(time.process_time() - cpu, 3),
        "wall": round(time.perf_counter() - wall, 3),
    }


def main(arguments: list[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    works = {
        "whole": measure,
        "few": measure,
        "baselines": measure,
        "compare": compare,
        "time": measure_time,
    }
    for name, work in works.items():
        command = commands.add_parser(name)
        command.set_defaults(work=work)
        if name in ("whole", "few", "baselines"):
            command.add_argument("--jobs", type=int, default=1, help="processes")
            keep = "folder in which embedders of this commit are kept"
            command.add_argument("--embedders", type=Path, help=keep)
        if name == "baselines":
            command.add_argument("part", choices=("whole", "few"))
            command.add_argument("--again", action="store_true")
        if name != "compare":
            command.add_argument("corpora", nargs="*", default=CORPORA)
        if name == "time":
            command.add_argument("--few", action="store_true", help="K 300 as well")
        default = [0] if name == "baselines" else list(range(N_SEEDS))
        command.add_argument("--seeds", type=int, nargs="+", default=default)
        command.add_argument("--per-class", type=int, nargs="+", default=[1, 5, 20])
        command.add_argument("--draws", type=int, default=10)
        folder = ROOT / "benchmarks"
        command.add_argument("--out", type=Path, default=folder / "results")
        command.add_argument("--cache", type=Path, default=folder / ".cache/quality")
        losses = folder / "results" / "losses"
        command.add_argument("--losses", type=Path, default=losses)
    options = parser.parse_args(arguments)
    options.work(options)


if __name__ == "__main__":
    main()
