r"""Labels in English and texts in another language, by one embedding for all.

    python benchmarks/languages.py fit --seed 0 --models /tmp/languages
    python benchmarks/languages.py kinds --models /tmp/languages
    python benchmarks/languages.py zero-shot --models /tmp/languages
    python benchmarks/languages.py extend --models /tmp/languages
    python benchmarks/languages.py search --models /tmp/languages
    python benchmarks/languages.py martingale --models /tmp/languages
    python benchmarks/languages.py views --components 100 --models /tmp/languages

`parallel-verses` has 7950 verses in 21 languages, and one of six labels for 1077 of
them. `fit` trains a ParallelEmbedder on the verses without a label, and notes time and
memory. `zero-shot` fits classifiers to English training verses with their labels, and
predicts the test verses of the 20 other languages; beside it are latent semantic
analysis of the joined TF-IDF with as many components, and classifiers fitted to labels
in the language itself. Means that languages are centred by are those of verses without
label. Differences have standard errors from a bootstrap over the 111 test verses, the
same in all languages. `kinds` compares classifiers on other verses, those of `dev`:
`zero-shot` uses the best. `extend` fits without five of the languages, and adds each.
`search` looks a verse up among its translations; probabilities are counted with the
translation there, and with it left out. `martingale` compares a verse in one
language with the same in all. `views` classifies texts of one language with two views,
subject and body or words and characters, and with one. A work that is run replaces its
own results only.
"""

from __future__ import annotations

import argparse
import functools
import json
import lzma
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import normalize

from _corpora import load
from _versions import changed_commit
from docsigma import DocumentEmbedder, ParallelEmbedder, TopicClassifier
from docsigma.classifiers.counts_classifier import ACROSS, KINDS, CountsClassifier
from docsigma.distances import same_document
from docsigma.search._measures import SameText
from peers_machine import describe_run

ROOT = Path(__file__).parents[1]
OUT = ROOT / "benchmarks" / "results" / "languages.json"
LANGUAGES = (
    *("eng", "ces", "dan", "deu", "epo", "ewe", "hat", "hau", "hrv", "hun", "ind"),
    *("ita", "lat", "luo", "pol", "por", "ron", "sna", "spa", "srp", "swh"),
)
# Of five families, and with much and little of English in them.
ADDED = ("deu", "hun", "ind", "swh", "ewe")
SEARCHED = ("eng", "deu", "spa", "hun", "ind", "swh")


def lines(name: str) -> list[dict[str, Any]]:
    folder = Path(os.environ["DOCSIGMA_DATA"]) / "parallel-verses"
    with lzma.open(folder / f"{name}.jsonl.xz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@functools.cache
def verses(language: str) -> dict[str, str]:
    return {row["id"]: row["text"] for row in lines(language)}


@functools.cache
def labelled(*splits: str) -> list[tuple[str, str]]:
    return [
        (row["id"], row["label"]) for row in lines("labels") if row["split"] in splits
    ]


def unlabelled(languages: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the parallel rows: no verse that has a label is among them."""
    known = {name for name, _ in labelled("train", "dev", "test")}
    names = [name for name in verses("eng") if name not in known]
    return {one: [verses(one).get(name, "") for name in names] for one in languages}


def texts(language: str, *splits: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return labelled verses in a language, their labels and their numbers."""
    found = [
        (verses(language)[name], label, number)
        for number, (name, label) in enumerate(labelled(*splits))
        if name in verses(language)
    ]
    each, labels, numbers = zip(*found, strict=True)
    return list(each), np.array(labels), np.array(numbers)


def fit(languages: tuple[str, ...], k: int, seed: int, models: Path) -> dict[str, Any]:
    models.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    template = DocumentEmbedder(k, random_state=seed)
    parallel = ParallelEmbedder(template).fit(unlabelled(languages))
    seconds = time.perf_counter() - started
    parallel.save(folder_of(models, languages, k, seed), overwrite=True)
    model = parallel.model_
    return {
        "seed": seed,
        "n_components": k,
        "languages": len(languages),
        "seconds": round(seconds, 1),
        "threads": torch.get_num_threads(),
        "passes": model.n_iter_,
        "words": model.n_features_in_,
        "peak_gib": round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2
        ),
        "load": [round(load, 1) for load in os.getloadavg()],
    }


def folder_of(models: Path, languages: tuple[str, ...], k: int, seed: int) -> Path:
    return models / f"{len(languages)}-languages-{k}-{seed}"


class LSI:
    """Singular vectors of the joined TF-IDF of all languages."""

    def __init__(self, parallel: ParallelEmbedder, k: int, seed: int) -> None:
        self._words = parallel.model_.vocabularies_
        rows = unlabelled(LANGUAGES)
        counts = {one: self._words[one].count(rows[one]).counts for one in LANGUAGES}
        self._idf = {
            one: TfidfTransformer(sublinear_tf=True).fit(counts[one])
            for one in LANGUAGES
        }
        weighted = [self._idf[one].transform(counts[one]) for one in LANGUAGES]
        svd = TruncatedSVD(k, random_state=seed, n_iter=2).fit(
            sp.hstack(weighted).tocsr()
        )
        ends = np.cumsum([matrix.shape[1] for matrix in weighted])[:-1]
        parts = np.split(svd.components_, ends, axis=1)
        self._axes = dict(zip(LANGUAGES, parts, strict=True))
        self._means = {
            one: normalize(matrix @ self._axes[one].T).mean(axis=0)
            for one, matrix in zip(LANGUAGES, weighted, strict=True)
        }

    def embed(self, each: list[str], language: str) -> np.ndarray:
        """Return centred points."""
        weighted = self._idf[language].transform(
            self._words[language].count(each).counts
        )
        found: np.ndarray = normalize(weighted @ self._axes[language].T)
        return found - self._means[language]


def logistic(X: Any, y: Any, C: float) -> LogisticRegression:
    return LogisticRegression(C=C, max_iter=500, class_weight="balanced").fit(X, y)


def zero_shot(models: Path, k: int, seed: int) -> dict[str, Any]:
    parallel = ParallelEmbedder.load(folder_of(models, LANGUAGES, k, seed))
    each, labels, _ = texts("eng", "train")
    english = TopicClassifier(parallel.language("eng"), kind=ACROSS).fit(each, labels)
    rows = unlabelled(LANGUAGES)
    means = {
        one: parallel.transform(rows[one][:3000], one).mean(axis=0) for one in LANGUAGES
    }
    centred = logistic(parallel.transform(each, "eng") - means["eng"], labels, 1.0)
    plain = logistic(parallel.transform(each, "eng"), labels, 1.0)
    lsi = LSI(parallel, k, seed)
    of_lsi = logistic(lsi.embed(each, "eng"), labels, 10.0)
    predicted: dict[str, dict[str, Any]] = {}
    for one in LANGUAGES:
        test, true, numbers = texts(one, "test")
        own, own_labels, _ = texts(one, "train")
        points = parallel.transform(test, one)
        in_it = TopicClassifier(parallel.language(one), kind=ACROSS)
        words = parallel.model_.vocabularies_[one]
        counts = words.count(own).counts
        idf = TfidfTransformer(sublinear_tf=True).fit(words.count(rows[one]).counts)
        tfidf = logistic(idf.transform(counts), own_labels, 10.0)
        predicted[one] = {
            "true": true,
            "numbers": numbers,
            "docsigma": english.in_language(one).predict(test),
            "LR on means": plain.predict(points),
            "LR on centred means": centred.predict(points - means[one]),
            "LSI + LR": of_lsi.predict(lsi.embed(test, one)),
            "docsigma, labels in the language": in_it.fit(own, own_labels).predict(
                test
            ),
            "TF-IDF + LR, labels in the language": tfidf.predict(
                idf.transform(words.count(test).counts)
            ),
        }
    others = [predicted[one] for one in LANGUAGES[1:]]
    systems = [name for name in others[0] if name not in ("true", "numbers")]
    found = {
        name: {
            "macro_f1": scored(others, name),
            "english": scored([predicted["eng"]], name),
            "by_language": {
                one: round(scored([predicted[one]], name), 2) for one in LANGUAGES
            },
        }
        for name in systems
    }
    rng = np.random.default_rng(0)
    n = 1 + max(int(rows["numbers"].max()) for rows in others)
    draws = [np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(500)]
    for name in systems[1:]:
        gaps = [
            scored(others, systems[0], times) - scored(others, name, times)
            for times in draws
        ]
        found[name]["below_docsigma"] = (
            found[systems[0]]["macro_f1"] - found[name]["macro_f1"]
        )
        found[name]["standard_error"] = float(np.std(gaps))
    return {"seed": seed, "n_components": k, "kind": ACROSS, "systems": found}


def scored(rows: list[dict[str, Any]], name: str, times: Any = None) -> float:
    """Return the mean macro-F1 in per cent; `times` is how often each verse counts."""
    found = []
    for row in rows:
        weights = 1.0 if times is None else times[row["numbers"]]
        classes = np.unique(row["true"])[:, None]
        true, predicted = row["true"] == classes, row[name] == classes
        right = (weights * (true & predicted)).sum(axis=1)
        either = (weights * true).sum(axis=1) + (weights * predicted).sum(axis=1)
        found.append((2 * right / np.maximum(either, 1)).mean())
    return 100 * float(np.mean(found))


def kinds(models: Path, k: int, seed: int) -> dict[str, Any]:
    """Compare classifiers on the verses of `dev`, on which the default is chosen."""
    parallel = ParallelEmbedder.load(folder_of(models, LANGUAGES, k, seed))
    each, labels, _ = texts("eng", "train")
    known = parallel.posterior(each, "eng")
    rows = []
    for one in LANGUAGES:
        test, true, _ = texts(one, "dev")
        rows.append({"q": parallel.posterior(test, one), "true": true})
    found = {}
    for kind in ("lr", "glc", "glcu", "evidence"):
        classifier: Any = KINDS[kind]()
        points = classifier.takes == "means"
        classifier.fit(known.mean if points else known, labels)
        for row in rows:
            row[kind] = classifier.predict(row["q"].mean if points else row["q"])
        found[kind] = {
            "macro_f1": round(scored(rows[1:], kind), 2),
            "english": round(scored(rows[:1], kind), 2),
        }
    return {"seed": seed, "n_components": k, "kinds": found}


def extend(models: Path, k: int, seed: int) -> dict[str, Any]:
    known = tuple(one for one in LANGUAGES if one not in ADDED)
    parallel = ParallelEmbedder.load(folder_of(models, known, k, seed))
    whole = ParallelEmbedder.load(folder_of(models, LANGUAGES, k, seed))
    rows = unlabelled(LANGUAGES)
    each, labels, _ = texts("eng", "train")
    classifiers = [
        TopicClassifier(one.language("eng"), kind=ACROSS).fit(each, labels)
        for one in (parallel, whole)
    ]
    found = {}
    for one in ADDED:
        started = time.perf_counter()
        parallel.extend(one, rows[one], {name: rows[name] for name in known})
        seconds = time.perf_counter() - started
        test, true, _ = texts(one, "test")
        after, with_it = (
            classifier.classifier_.classifier_.predict(embedder.posterior(test, one))
            for classifier, embedder in zip(classifiers, (parallel, whole), strict=True)
        )
        found[one] = {
            "extended": round(100 * f1_score(true, after, average="macro"), 2),
            "trained_with": round(100 * f1_score(true, with_it, average="macro"), 2),
            "seconds": round(seconds, 1),
        }
    return {"seed": seed, "n_components": k, "languages": found}


def search(models: Path, k: int, seed: int) -> dict[str, Any]:
    parallel = ParallelEmbedder.load(folder_of(models, LANGUAGES, k, seed))
    lsi = LSI(parallel, k, seed)
    everywhere = [
        name
        for name, _ in labelled("dev", "test")
        if all(name in verses(one) for one in SEARCHED)
    ]
    each = {one: [verses(one)[name] for name in everywhere] for one in SEARCHED}
    q = {one: parallel.posterior(each[one], one) for one in SEARCHED}
    points = {one: normalize(lsi.embed(each[one], one)) for one in SEARCHED}
    n, hits = len(everywhere), {"docsigma": [], "cosine of means": [], "LSI": []}
    sure, right = [], []
    for a in SEARCHED:
        for b in SEARCHED:
            if a == b:
                continue
            ratio = same_document(q[a], q[b])
            means = normalize(q[a].mean) @ normalize(q[b].mean).T
            for name, alike in (
                ("docsigma", ratio),
                ("cosine of means", means),
                ("LSI", points[a] @ points[b].T),
            ):
                hits[name].append(alike.argmax(axis=1) == np.arange(n))
            # As announced: in half of the cases the text asked for is not there.
            lacking = ratio.copy()
            np.fill_diagonal(lacking, -np.inf)
            for there, known in ((True, ratio), (False, lacking)):
                size = n if there else n - 1
                each = [SameText.probabilities(row, size) for row in known]
                sure.append(np.max(each, axis=1))
                right.append(hits["docsigma"][-1] & there)
    gap = np.mean(hits["docsigma"], axis=0) - np.mean(hits["LSI"], axis=0)
    sure, right = np.concatenate(sure), np.concatenate(right)
    edges = [0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.01]
    place = np.digitize(sure, edges) - 1
    return {
        "seed": seed,
        "n_components": k,
        "n_verses": n,
        "first_hit": {
            name: round(100 * float(np.mean(x)), 2) for name, x in hits.items()
        },
        "above_LSI": round(100 * float(gap.mean()), 2),
        "standard_error": round(100 * float(gap.std(ddof=1) / n**0.5), 2),
        "probabilities": [
            {
                "from": edges[i],
                "announced": round(float(sure[place == i].mean()), 3),
                "right": round(float(right[place == i].mean()), 3),
                "n": int((place == i).sum()),
            }
            for i in range(len(edges) - 1)
            if (place == i).any()
        ],
    }


def martingale(models: Path, k: int, seed: int) -> dict[str, Any]:
    parallel = ParallelEmbedder.load(folder_of(models, LANGUAGES, k, seed))
    names = [name for name, _ in labelled("train", "dev", "test")]
    rows = {one: [verses(one).get(name, "") for name in names] for one in LANGUAGES}
    whole = parallel.posterior(rows)
    found = {}
    for one in LANGUAGES:
        q = parallel.posterior(rows[one], one)
        moved = ((q.mean - whole.mean).astype(float) ** 2).sum()
        found[one] = round(float(moved / (q.variance - whole.variance).sum()), 3)
    half = LANGUAGES[:10]
    q = parallel.posterior({one: rows[one] for one in half})
    moved = ((q.mean - whole.mean).astype(float) ** 2).sum()
    return {
        "seed": seed,
        "n_components": k,
        "one_of_all": found,
        "mean": round(float(np.mean(list(found.values()))), 3),
        "ten_of_all": round(float(moved / (q.variance - whole.variance).sum()), 3),
    }


def views_of(corpus: str, each: list[str]) -> dict[str, list[str]]:
    """Return two views of texts in one language."""
    if corpus != "20newsgroups":
        return {"words": each, "characters": each}
    subjects, bodies = [], []
    for text in each:
        head, _, body = text.partition("\n\n")
        lines = [line for line in head.splitlines() if line.startswith("Subject:")]
        subjects.append(" ".join(line.removeprefix("Subject:") for line in lines))
        # What the other headers say stays where one view has it.
        others = [line for line in head.splitlines() if line not in lines]
        bodies.append("\n".join([*others, body]))
    return {"subject": subjects, "body": bodies}


def views(models: Path, k: int, seed: int) -> dict[str, Any]:  # noqa: ARG001
    found: dict[str, Any] = {}
    for name in ("open-intents/clinc150", "20newsgroups"):
        corpus = load(name)
        settings = None
        if name != "20newsgroups":
            settings = {"characters": {"analyzer": "char_wb", "ngram_range": (2, 4)}}
        one = DocumentEmbedder(k, random_state=seed).fit(corpus.texts)
        both = ParallelEmbedder(
            DocumentEmbedder(k, random_state=seed), settings=settings
        )
        rows = views_of(name, corpus.texts)
        both.fit(rows)
        test = views_of(name, corpus.test_texts)
        counts = {
            "one view": (one._counts(corpus.texts), one._counts(corpus.test_texts)),
            "two views": (both._counts(rows), both._counts(test)),
        }
        fitted = {"one view": one.model_, "two views": both.model_}
        found[name] = {"words": {way: fitted[way].n_features_in_ for way in fitted}}
        for kind in ("evidence", "lr", "hybrid"):
            right, losses = {}, {}
            for way, (train_counts, test_counts) in counts.items():
                classifier = CountsClassifier(fitted[way], kind)
                classifier.fit(train_counts, corpus.labels)
                log_proba = classifier.predict_log_proba(test_counts)
                places = np.searchsorted(classifier.classes_, corpus.test_labels)
                right[way] = log_proba.argmax(axis=1) == places
                losses[way] = -log_proba[np.arange(len(places)), places]
            gaps = [
                right["two views"].astype(float) - right["one view"],
                losses["one view"] - losses["two views"],
            ]
            found[name][kind] = {
                "accuracy": {way: round(100 * x.mean(), 2) for way, x in right.items()},
                "cross_entropy": {way: round(x.mean(), 4) for way, x in losses.items()},
                "gained_accuracy": round(100 * gaps[0].mean(), 2),
                "gained_cross_entropy": round(gaps[1].mean(), 4),
                "standard_errors": [
                    round(100 * gaps[0].std() / len(gaps[0]) ** 0.5, 2),
                    round(gaps[1].std() / len(gaps[1]) ** 0.5, 4),
                ],
            }
    return {"seed": seed, "n_components": k, "corpora": found}


WORKS = {
    "kinds": kinds,
    "zero-shot": zero_shot,
    "extend": extend,
    "search": search,
    "martingale": martingale,
    "views": views,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", choices=["fit", "fit-fewer", *WORKS])
    parser.add_argument("--components", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--json", type=Path, default=OUT)
    given = parser.parse_args()
    k, seed = given.components, given.seed
    if given.work == "fit":
        found = fit(LANGUAGES, k, seed, given.models)
    elif given.work == "fit-fewer":
        known = tuple(one for one in LANGUAGES if one not in ADDED)
        found = fit(known, k, seed, given.models)
    else:
        found = WORKS[given.work](given.models, k, seed)
    run = describe_run(torch.get_num_threads())
    found |= {"run": {**run, **changed_commit(ROOT)}}
    everything = (
        json.loads(given.json.read_text("utf-8")) if given.json.exists() else {}
    )
    everything.setdefault(given.work, {})[f"K {k} seed {seed}"] = found
    given.json.write_text(json.dumps(everything, indent=1) + "\n", "utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
