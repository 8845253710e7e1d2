r"""What covariates are worth: the State of the Union with year and party.

    python benchmarks/covariates.py prediction time facts coverage
    python benchmarks/covariates.py peers --folds 3

``prediction``: whole speeches are held out, in ten folds, so that each is tested once.
From the first ten known words of a passage, with and without year and party, the rest
is predicted word by word; figures are nats per word, and differences have the speech
as their unit. ``peers``: the same for tomotopy's LDA and DMR, with party and decade,
on the first folds. ``time``: fits with and without ten covariates, in turn. ``facts``:
the facts of ``covariates_facts.json``, which were written before any fit.
``coverage``: contrasts of T A in corpora drawn from a known model, with T learned.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from _versions import changed_commit
from docsigma import BayesianSMM, DocumentEmbedder
from peers_machine import describe_run
from quality import write

ROOT = Path(__file__).parents[1]
FORMULA = "party + spline(year)"
KNOWN, DRAWS, FOLDS, K = 10, 16, 10, 50


def speeches() -> dict[str, Any]:
    """Return texts, their table of covariates, and the speech of each."""
    data = Path(os.environ["DOCSIGMA_DATA"]) / "state-of-the-union/passages.jsonl.xz"
    with lzma.open(data, "rt") as file:
        rows = [json.loads(line) for line in file]
    return {
        "texts": [row["text"] for row in rows],
        "table": {name: [row[name] for row in rows] for name in ("party", "year")},
        "speech": np.array([row["id"].rsplit("-", 1)[0] for row in rows]),
    }


def folds(speech: Any) -> list[Any]:
    """Return the test rows of each fold: whole speeches."""
    names = np.random.default_rng(0).permutation(np.unique(speech))
    return [
        np.flatnonzero(np.isin(speech, some)) for some in np.array_split(names, FOLDS)
    ]


def rows_of(table: dict[str, list[Any]], rows: Any) -> dict[str, list[Any]]:
    return {name: [column[i] for i in rows] for name, column in table.items()}


def summary(losses: dict[str, Any], n_words: Any, speech: Any) -> dict[str, Any]:
    """Return nats per word, and the differences from the first, by speech."""
    codes = np.unique(speech, return_inverse=True)[1]
    words = np.bincount(codes, n_words)
    report: dict[str, Any] = {"n_passages": len(speech), "n_speeches": len(words)}
    first = None
    for name, loss in losses.items():
        total = np.bincount(codes, loss)
        nats = total.sum() / words.sum()
        report[name] = {"nats": nats, "perplexity": float(np.exp(nats))}
        if first is None:
            first = total
            continue
        gain = (first - total).sum() / words.sum()
        # Of a ratio of sums over speeches.
        apart = first - total - gain * words
        n = len(words)
        error = np.sqrt(n / (n - 1) * np.square(apart).sum()) / words.sum()
        report[name] |= {"gain": gain, "standard_error": float(error)}
    return report


def rest_loss(model: BayesianSMM, q: Any, rest: list[Any]) -> Any:
    """Return minus the log predictive probability of the rest of each document."""
    loadings, bias = model.components_.T.astype(np.float32), model.log_unigram_
    found = np.zeros(len(rest))
    for start in range(0, len(rest), 200):
        some = slice(start, start + 200)
        total: Any = 0.0
        for w in q[some].draws(DRAWS, random_state=start):
            logits = w.astype(np.float32) @ loadings.T + bias
            logits -= logits.max(axis=1, keepdims=True)
            theta = np.exp(logits)
            total = total + theta / theta.sum(axis=1, keepdims=True)
        log = np.log(total / DRAWS)
        for i, words in enumerate(rest[some]):
            found[start + i] = -log[i, words].sum()
    return found


def prediction(n_folds: int) -> dict[str, Any]:
    """Predict the rest of passages of held-out speeches."""
    data = speeches()
    texts, table, speech = data["texts"], data["table"], data["speech"]
    losses: dict[str, list[Any]] = {"without": [], "with": []}
    n_words, tested = [], []
    for number, test in enumerate(folds(speech)[:n_folds]):
        train = np.setdiff1d(np.arange(len(texts)), test)
        given = [texts[i] for i in train]
        for name in losses:
            embedder, options = DocumentEmbedder(K, random_state=number), {}
            if name == "with":
                options = {"covariates": rows_of(table, train), "formula": FORMULA}
            embedder.fit(given, **options)
            model: Any = embedder.model_
            order = model.vocabulary_.in_order([texts[i] for i in test])
            head, rest = [o[:KNOWN] for o in order], [o[KNOWN:] for o in order]
            counts = counted(head, model.n_features_in_)
            more = {}
            if name == "with":
                more["covariates"] = embedder.design_.matrix(rows_of(table, test))
            q = model.posterior(counts, **more)
            losses[name].append(rest_loss(model, q, rest))
        n_words.append(np.array([len(o) for o in rest]))
        tested.append(speech[test])
        report = summary(
            {name: np.concatenate(some) for name, some in losses.items()},
            np.concatenate(n_words),
            np.concatenate(tested),
        )
        print("prediction", number, json.dumps(report), flush=True)
    return report | {"n_folds": n_folds, "n_components": K, "formula": FORMULA}


def counted(documents: list[Any], n_features: int) -> sp.csr_matrix:
    ends = np.cumsum([0] + [len(words) for words in documents])
    words = np.concatenate(documents)
    found = sp.csr_matrix(
        (np.ones(len(words), np.float32), words, ends), (len(documents), n_features)
    )
    found.sum_duplicates()
    return found


def peers(n_folds: int, n_passes: int = 150) -> dict[str, Any]:
    """Predict with tomotopy's LDA and with its DMR, given party and decade."""
    import tomotopy

    data = speeches()
    texts, table, speech = data["texts"], data["table"], data["speech"]
    about = [
        [f"party {party}", f"decade {int(year) // 10}"]
        for party, year in zip(table["party"], table["year"], strict=True)
    ]
    losses: dict[str, list[Any]] = {"lda": [], "dmr": []}
    n_words, tested = [], []
    for number, test in enumerate(folds(speech)[:n_folds]):
        train = np.setdiff1d(np.arange(len(texts)), test)
        vocabulary, _ = DocumentEmbedder(K).learn_words([texts[i] for i in train])
        names = np.array(vocabulary.words)
        order = vocabulary.in_order([texts[i] for i in train])
        asked = vocabulary.in_order([texts[i] for i in test])
        for name in losses:
            kind = {"lda": tomotopy.LDAModel, "dmr": tomotopy.DMRModel}[name]
            model = kind(k=K, seed=number)
            for row, words in zip(train, order, strict=True):
                if len(words):
                    model.add_doc(names[words].tolist(), **metadata(name, about[row]))
            model.train(n_passes, workers=1)
            columns = {word: i for i, word in enumerate(model.used_vocabs)}
            topics = np.stack([model.get_topic_word_dist(k) for k in range(K)])
            loss = np.zeros(len(test))
            for i, (row, words) in enumerate(zip(test, asked, strict=True)):
                known = names[words[:KNOWN]].tolist() or [model.used_vocabs[0]]
                document = model.make_doc(known, **metadata(name, about[row]))
                shares = np.array(model.infer(document, iterations=100)[0])
                wanted = [columns[word] for word in names[words[KNOWN:]]]
                loss[i] = -np.log(shares @ topics[:, wanted]).sum()
            losses[name].append(loss)
        n_words.append(np.array([max(len(o) - KNOWN, 0) for o in asked]))
        tested.append(speech[test])
        report = summary(
            {name: np.concatenate(some) for name, some in losses.items()},
            np.concatenate(n_words),
            np.concatenate(tested),
        )
        print("peers", number, json.dumps(report), flush=True)
    return report | {"n_folds": n_folds, "n_components": K, "passes": n_passes}


def metadata(name: str, about: list[str]) -> dict[str, Any]:
    return {"multi_metadata": about} if name == "dmr" else {}


def seconds(repeats: int = 3) -> dict[str, Any]:
    """Fit with and without ten covariates, in turn; the medians, and their ratio."""
    data = speeches()
    random = np.random.default_rng(0)
    _, counts = DocumentEmbedder(K).learn_words(data["texts"])
    covariates = random.standard_normal((counts.shape[0], 10))
    found: dict[str, list[float]] = {"without": [], "with": []}
    for repeat in range(repeats):
        for name in found:
            options = {"covariates": covariates} if name == "with" else {}
            prior = "covariates" if name == "with" else "isotropic"
            model = BayesianSMM(K, prior=prior, random_state=repeat)
            started = time.process_time()
            model.fit(counts, **options)
            found[name].append(round(time.process_time() - started, 2))
        print("time", repeat, found, flush=True)
    medians = {name: float(np.median(some)) for name, some in found.items()}
    ratio = medians["with"] / medians["without"]
    return {"cpu_seconds": found, "ratio": round(ratio, 3)}


def rates(data: dict[str, Any]) -> dict[int, Counter[str]]:
    """Return the words of each year."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for text, year in zip(data["texts"], data["table"]["year"], strict=True):
        found[year].update(re.findall(r"\b\w\w+\b", text.lower()))
    return found


def facts() -> dict[str, Any]:
    """Compare effects of the year with facts of word counts."""
    data = speeches()
    stated = json.loads((ROOT / "benchmarks/covariates_facts.json").read_text())
    counts = rates(data)
    embedder = DocumentEmbedder(K, random_state=0)
    embedder.fit(data["texts"], covariates=data["table"], formula=FORMULA)
    report: dict[str, Any] = {"facts": []}
    for fact in stated["facts"]:
        word, years = fact["word"], (fact["from"], fact["to"])
        near = [[y for y in counts if abs(y - year) <= 5] for year in years]
        per_million = [
            1e6
            * sum(counts[y][word] for y in some)
            / sum(sum(counts[y].values()) for y in some)
            for some in near
        ]
        effect = embedder.effect(
            "year", words=[word], values=[years[1]], reference=years[0], level=0.9
        )
        (row,) = effect.rows
        agrees = (row.low > 0) if fact["change"] == "more" else (row.high < 0)
        report["facts"].append(
            fact
            | {
                "per_million": [round(rate, 1) for rate in per_million],
                "log_ratio": [round(v, 2) for v in (row.estimate, row.low, row.high)],
                "agrees": bool(agrees),
            }
        )
        print("fact", report["facts"][-1], flush=True)
    report["n_agree"] = sum(fact["agrees"] for fact in report["facts"])
    return report


def coverage(n_corpora: int = 15) -> dict[str, Any]:
    """Cover changes of words in corpora of a known model, T learned, by strength."""
    rows = []
    for strength in (0.2, 0.3, 0.5, 1.0):
        found = [drawn_coverage(seed, strength) for seed in range(n_corpora)]
        means = np.sqrt(np.mean(np.square([one[0] for one in found])))
        inside = np.mean([one[1:] for one in found], axis=0)
        rows.append(
            {
                "strength": strength,
                "effect": round(float(means), 3),
                "coverage": round(float(inside[0]), 4),
                "weights_only": round(float(inside[1]), 4),
            }
        )
        print("coverage", rows[-1], flush=True)
    return {"rows": rows, "n_corpora": n_corpora, "level": 0.9}


def drawn_coverage(seed: int, strength: float) -> tuple[float, float, float]:
    """Return the size of the true changes, and the shares of intervals that cover."""
    from docsigma.models.effects import word_effects

    random = np.random.default_rng(seed)
    n, v, k, p, lam = 1500, 150, 3, 3, 10.0
    loadings = strength * np.sqrt(lam) * random.standard_normal((v, k))
    bias = 0.7 * random.standard_normal(v)
    weights = random.standard_normal((p, k)) / np.sqrt(lam)
    covariates = random.standard_normal((n, p))
    w = covariates @ weights + random.standard_normal((n, k)) / np.sqrt(lam)
    theta = np.exp(bias + w @ loadings.T)
    theta /= theta.sum(axis=1, keepdims=True)
    counts = random.multinomial(random.choice([20, 40, 80], n), theta)
    model = BayesianSMM(k, prior="covariates", random_state=seed)
    model.fit(sp.csr_matrix(counts.astype(np.float32)), covariates=covariates)
    unigram = np.exp(model.training_log_unigram_)
    truth = weights @ (loadings - unigram @ loadings).T
    inside = []
    for with_words in (True, False):
        found = word_effects(model, np.eye(p), np.eye(v), with_words=with_words)
        inside.append(float(np.mean(np.abs(found[0] - truth) < 1.6449 * found[1])))
    return float(np.sqrt((truth**2 @ unigram).mean())), inside[0], inside[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "benchmarks/results/covariates.json"
    )
    given = parser.parse_args()
    parts = {
        "prediction": lambda: prediction(given.folds),
        "peers": lambda: peers(given.folds),
        "time": seconds,
        "facts": facts,
        "coverage": coverage,
    }
    for name in given.parts:
        run = describe_run(torch.get_num_threads()) | changed_commit(ROOT)
        found = parts[name]()
        # Read again: other parts may have been measured meanwhile.
        report = json.loads(given.out.read_text()) if given.out.exists() else {}
        report[name] = {"run": run, **found}
        write(given.out, report)


if __name__ == "__main__":
    main()
