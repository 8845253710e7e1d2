r"""Whether promises are kept: sets, risk, p-values of the unknown, and triage.

    python benchmarks/promises.py switchboard short-texts/searchsnippets

`TopicClassifier` with default settings learns from nine tenths of the training texts.
Then, as a user would, it is calibrated on the last tenth and evaluated on test texts;
and, as the promise has it, test texts are dealt 200 times to halves, one to calibrate
and one to evaluate. Test texts are whole, or cut to their first words; they are
calibrated on whole texts (and the copies that the classifier cuts itself), or on texts
cut alike. Unknown texts are those out of scope where a corpus has such, as clinc150,
else 500 of another one: of the first of `--others` that differs, or of a fixed one.
Triage orders test texts, of which a tenth is unknown; TF-IDF + LR has the same training
texts. Result: results/promises.json.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import ks_2samp
from sklearn.metrics import roc_auc_score

import _baselines
from _corpora import CORPORA, Corpus, _read, cut, load
from _versions import changed_commit
from docsigma import DocumentEmbedder, TopicClassifier
from docsigma.classifiers.guarantees import Guarantees
from docsigma.classifiers.settings import CUTS
from docsigma.classifiers.triage import known_share
from docsigma.metrics import entropies
from peers_machine import describe_run

ROOT = Path(__file__).parents[1]
SPLITS, COVERAGE, RISK, CONFIDENCE = 200, 0.9, 0.05, 0.9
# Where unknown texts come from.
OTHERS = {
    "switchboard": "20newsgroups",
    "docstrings": "20newsgroups",
    "short-texts/searchsnippets": "short-texts/stackoverflow",
    "short-texts/stackoverflow": "short-texts/searchsnippets",
    "20newsgroups": "docstrings",
}


def describe(topics: TopicClassifier, texts: list[str]) -> dict[str, Any]:
    """Return what promises are made of, for each text."""
    documents = topics.embed(texts)
    return {
        "log_proba": topics.classifier_.predict_log_proba(documents),
        "lengths": documents.lengths,
        "familiarity": topics.classifier_._familiarity(documents),
    }


def promise(found: list[dict[str, Any]], codes: list[Any], rows: Any) -> Guarantees:
    """Return the promises of some whole texts, and of their cut copies."""
    parts = []
    for number, (one, own) in enumerate(zip(found, codes, strict=True)):
        chosen = rows & (own >= 0)
        proba = np.exp(one["log_proba"][chosen])
        columns = [
            proba[np.arange(len(proba)), own[chosen]],
            proba.max(axis=1),
            one["lengths"][chosen],
            one["familiarity"][chosen],
            np.full(len(proba), float(number > 0)),
        ]
        parts.append(np.stack(columns))
    return Guarantees.of_array(np.concatenate(parts, axis=1))


def keeps(held_out: Guarantees, one: dict[str, Any], codes: Any) -> dict[str, float]:
    """Return how promises turn out on other texts."""
    proba = np.exp(one["log_proba"])
    hits = proba.argmax(axis=1) == codes
    chosen = held_out.sets(proba, one["lengths"], COVERAGE)
    at = held_out.reject(RISK, CONFIDENCE)
    answered = proba.max(axis=1) >= at
    p_values = held_out.p_values(one["familiarity"], one["lengths"])
    own = held_out.p_values(held_out.familiarity, held_out.lengths)
    whole = held_out.is_cut == 0
    middle = np.median(held_out.lengths[whole])
    alike, alike_short = (
        ks_2samp(p_values[new], own[old]).pvalue > 0.05
        for new, old in (
            (slice(None), whole),
            (one["lengths"] < middle, whole & (held_out.lengths < middle)),
        )
    )
    return {
        "coverage": float(chosen[np.arange(len(codes)), codes].mean()),
        "size": float(chosen.sum(axis=1).mean()),
        "answered": float(answered.mean()),
        "risk": float(1 - hits[answered].mean()) if answered.any() else 0.0,
        "alike": float(alike),
        "alike_short": float(alike_short),
        "called_unknown": float((p_values <= 0.05).mean()),
    }


def split(
    found: list[dict[str, Any]], codes: list[Any], one: dict[str, Any], truth: Any
) -> dict[str, float]:
    """Return means over random halves, and how often the risk is exceeded."""
    rows: list[dict[str, float]] = []
    for number in range(SPLITS):
        half = np.random.default_rng(number).random(len(truth)) < 0.5
        other = {name: values[~half] for name, values in one.items()}
        rows.append(keeps(promise(found, codes, half), other, truth[~half]))
    means = {k: float(np.mean([row[k] for row in rows])) for k in rows[0]}
    means["exceeded"] = float(np.mean([row["risk"] > RISK for row in rows]))
    return {name: round(value, 4) for name, value in means.items()}


def unknown_texts(name: str, others: list[str]) -> list[str]:
    """Return texts that are of no class of a corpus."""
    path = Path(os.environ["DOCSIGMA_DATA"]) / name / "out-of-scope-test.jsonl.xz"
    if path.exists():
        return _read(path)[0]
    other = [each for each in others if each != name] or [OTHERS[name]]
    texts = load(other[0]).test_texts
    rows = np.random.default_rng(0).permutation(len(texts))[:500]
    return [texts[row] for row in rows]


def measure(name: str, others: list[str]) -> dict[str, Any]:
    """Return how all promises turn out on one corpus."""
    corpus, begun = load(name), time.process_time()
    last = np.random.default_rng(0).random(len(corpus.labels)) < 0.1
    texts = np.array(corpus.texts, dtype=object)
    train, labels = list(texts[~last]), corpus.labels[~last]
    topics = TopicClassifier(DocumentEmbedder(random_state=0)).fit(train, labels)
    report: dict[str, Any] = {"fit_seconds": round(time.process_time() - begun, 1)}
    truth = np.searchsorted(topics.classes_, corpus.test_labels)
    tests = {n: describe(topics, corpus.test(n)) for n in (0, 50, 10)}
    lengths = np.array([len(text.split()) for text in corpus.test_texts])
    copies = []
    for n in CUTS:
        every = describe(topics, cut(corpus.test_texts, [n] * len(truth)))
        copies.append((every, np.where(lengths > n, truth, -1)))
    whole = [tests[0], *(every for every, _ in copies)]
    codes = [truth, *(own for _, own in copies)]
    for n in (0, 50, 10):
        if np.mean(lengths > n) < 0.5:
            continue
        hits = tests[n]["log_proba"].argmax(axis=1) == truth
        report[str(n or "whole")] = {
            "accuracy": round(float(hits.mean()), 4),
            "calibrated on whole texts": split(whole, codes, tests[n], truth),
            "calibrated on texts cut alike": split(
                [tests[n]], [truth], tests[n], truth
            ),
        }
    topics.calibrate(list(texts[last]), corpus.labels[last])
    kept = keeps(topics.classifier_.guarantees, tests[0], truth)
    report["calibrated on training texts"] = {k: round(v, 4) for k, v in kept.items()}
    unknown = unknown_texts(name, others)
    return report | doubtful(corpus, unknown, topics, tests[0], truth, (train, labels))


def doubtful(
    corpus: Corpus,
    unknown: list[str],
    topics: TopicClassifier,
    known: dict[str, Any],
    truth: Any,
    train: tuple[list[str], Any],
) -> dict[str, Any]:
    """Return how well unknown texts and wrong answers are found."""
    regression = _baselines.Regression().fit(*train)
    new = describe(topics, unknown)
    p = [topics.unknown_p_value(texts) for texts in (corpus.test_texts, unknown)]
    theirs = [
        regression.predict_log_proba(texts) for texts in (corpus.test_texts, unknown)
    ]
    scores: dict[str, list[Any]] = {
        "p-value": p,
        "familiarity": [known["familiarity"], new["familiarity"]],
        "entropy": [-entropies(each["log_proba"]) for each in (known, new)],
        "probability": [each["log_proba"].max(axis=1) for each in (known, new)],
        "TF-IDF + LR, entropy": [-entropies(each) for each in theirs],
        "TF-IDF + LR, probability": [each.max(axis=1) for each in theirs],
    }
    which = np.repeat([1, 0], [len(truth), len(unknown)])
    areas = {
        k: round(roc_auc_score(which, np.concatenate(v)), 4) for k, v in scores.items()
    }
    # One text in ten is unknown.
    random = np.random.default_rng(1)
    some = random.permutation(len(unknown))[: len(truth) // 9]
    wrong = known["log_proba"].argmax(axis=1) != truth
    bad = np.append(wrong, np.ones(len(some), dtype=bool))
    mixed = {k: np.append(a, b[some]) for k, (a, b) in scores.items()}
    every = topics.classifier_.guarantees.p_values(mixed["familiarity"])
    mixed["triage"] = np.exp(mixed["probability"]) * known_share(every)
    found = {
        k: int(bad[np.argsort(order, kind="stable")[:100]].sum())
        for k, order in mixed.items()
    }
    found["random"] = round(100 * float(bad.mean()), 1)
    return {"area": areas, "wrong_in_first_100": found}


def main() -> None:
    """Measure some corpora, and keep the rows of the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    path = ROOT / "benchmarks/results/promises.json"
    parser.add_argument("--out", type=Path, default=path)
    parser.add_argument("--others", nargs="+", default=[], metavar="CORPUS")
    options = parser.parse_args()
    torch.set_num_threads(1)
    run = describe_run(1) | changed_commit(ROOT)
    for name in options.corpora:
        report: dict[str, Any] = {"rows": {}}
        if options.out.exists():
            report = json.loads(options.out.read_text())
        row = {"run": run} | measure(name, options.others)
        report["rows"][Path(name).name] = row
        print(name, json.dumps(row), flush=True)
        options.out.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
