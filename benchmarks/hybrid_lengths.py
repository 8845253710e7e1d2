r"""Topic ID by documents of all lengths, with few labels, and what it does not know.

    python benchmarks/hybrid_lengths.py 20newsgroups --cache /tmp/models \
        --json benchmarks/results/hybrid-20newsgroups.json

A model of weighted counts and the classifiers are trained on whole training documents,
all settings chosen on these; test documents are then cut to their first words. For
each length it prints accuracy (per cent), cross-entropy (nats) and calibration error,
and by how many paired standard errors the hybrid's cross-entropy differs from that of
TF-IDF + LR, whose C is chosen on the same folds. Corpora are names, or folders with
train.jsonl.xz and test.jsonl.xz. `--few` adds fits with few labels; `--unknown` leaves
every fourth class out of training and asks whether it is told apart.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax
from scipy.stats import spearmanr

from docsigma import (
    BayesianSMM,
    CrossValidatedLogisticRegression,
    HybridClassifier,
    TokenWeights,
    Vocabulary,
    load_corpus,
)
from docsigma.classifiers._hybrid_search import GAINS, STEP, TOLERANCE
from docsigma.classifiers._softmax_regression import (
    Coefficients,
    Features,
    fit_regression,
)
from docsigma.classifiers._splits import make_splits
from docsigma.classifiers._words import (
    inverse_document_frequencies,
    shorten,
    tfidf,
)
from docsigma.classifiers.conformal import PredictionSets, length_bands
from docsigma.classifiers.uncertainty import entropies
from docsigma.experiments.evaluation import evaluate
from docsigma.metrics import error_detection_area
from docsigma_paper.corpora import register

LENGTHS = (200, 100, 50, 25, 10, 1)
# Calls begin with small talk and the question that was set.
STARTS = {"switchboard": 200}


@dataclass
class Setting:
    """A corpus counted and embedded: training documents, and test ones by length."""

    model: Any
    weights: TokenWeights
    counts: Any
    posterior: Any
    labels: Any
    test_labels: Any
    # By number of words, 0 for whole: counts and posterior.
    tests: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def embed(self, counts: Any) -> Any:
        """Return the posteriors of documents."""
        return self.model.posterior(self.weights.transform(counts))


def prepare(
    name: str,
    n_components: int,
    seed: int,
    cache: Path | None,
    leave_out: bool = False,
) -> Setting:
    """Count, train the model and embed; read from the cache what is there.

    With `leave_out` training documents of every fourth class are not there at all, and
    test documents stay whole.
    """
    kind = "-unknown" if leave_out else ""
    file = f"{Path(name).name}-{n_components}-{seed}{kind}.pickle"
    if cache is not None and (cache / file).exists():
        with (cache / file).open("rb") as handle:
            found: Setting = pickle.load(handle)
        return found
    if Path(name).is_dir():
        test_file = f"{name}/test.jsonl.xz"
        corpus = load_corpus(f"{name}/train.jsonl.xz", test=test_file)
    else:
        corpus = load_corpus(name)
    train, labels = corpus.train.labelled()
    if leave_out:
        rows = np.flatnonzero(~np.isin(labels, np.unique(labels)[::4]))
        train, labels = train[rows.tolist()].labelled()
    test, test_labels = corpus.test.labelled()
    words, counted = Vocabulary.fit_count(train.texts, min_df=2)
    weights = TokenWeights().fit(counted.counts)
    weighted = weights.transform(counted.counts)
    model = BayesianSMM(n_components, random_state=seed).fit(weighted)
    setting = Setting(
        model,
        weights,
        counted.counts,
        model.posterior(weighted),
        np.array(labels),
        np.array(test_labels),
    )
    mean = float(counted.counts.sum()) / len(labels)
    start = STARTS.get(name, 0)
    cuts = () if leave_out else tuple(n for n in LENGTHS if n < 2 * mean)
    for n_words in (0, *cuts):
        texts = test.texts
        if n_words:
            texts = [" ".join(t.split()[start : start + n_words]) for t in texts]
        counts = words.count(texts).counts
        setting.tests[n_words] = counts, setting.embed(counts)
    if cache is not None:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / file).open("wb") as handle:
            pickle.dump(setting, handle)
    return setting


class TfidfRegression:
    """TF-IDF + LR by the hybrid's own solver, its C chosen on the hybrid's folds."""

    def __init__(self, counts: Any, labels: Any, n_folds: int = 3) -> None:
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self._idf = inverse_document_frequencies(counts)
        features, targets = self._features(counts), np.eye(len(self.classes_))[codes]
        splits = make_splits(codes, n_folds, 0)
        zeros = Coefficients.zeros(features, len(self.classes_), 0.0)
        fits = [zeros for _ in splits]
        losses: dict[float, float] = {}

        def loss(C: float) -> float:
            if C not in losses:
                total = 0.0
                for i, (train, held_out) in enumerate(splits):
                    fits[i] = fit_regression(
                        features[train], targets[train], fits[i], C, tol=TOLERANCE
                    )
                    log_proba = log_softmax(fits[i].scores(features[held_out]), axis=1)
                    total -= float((targets[held_out] * log_proba).sum())
                losses[C] = total
            return losses[C]

        self.C_ = 100.0
        for factor in (STEP, 1 / STEP):
            while splits and 0.1 < self.C_ * factor < 3000:
                if loss(self.C_ * factor) >= loss(self.C_):
                    break
                self.C_ *= factor
        self._found = fit_regression(features, targets, zeros, self.C_)

    def _features(self, counts: Any) -> Features:
        return Features(tfidf(counts, self._idf), np.zeros((counts.shape[0], 1)))

    def predict_log_proba(self, counts: Any) -> Any:
        """Return log probabilities of the classes."""
        return log_softmax(self._found.scores(self._features(counts)), axis=1)


def fit_hybrid(setting: Setting, labels: Any) -> HybridClassifier:
    """Fit the hybrid as CountsClassifier does, in the model's own axes."""
    short = shorten(setting.counts)
    hybrid = HybridClassifier()
    return hybrid.fit(
        (setting.counts, setting.posterior),
        labels,
        shortened=(short, setting.embed(short)),
    )


def timed(function: Any, *arguments: Any) -> tuple[Any, float]:
    """Return a function's result and the processor seconds it took."""
    start = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - start


def lengths_and_doubt(setting: Setting) -> dict[str, Any]:
    """Fit all labels; evaluate by length, errors found, and prediction sets."""
    hybrid, seconds = timed(fit_hybrid, setting, setting.labels)
    baseline, baseline_seconds = timed(TfidfRegression, setting.counts, setting.labels)
    lr = CrossValidatedLogisticRegression(n_folds=3)
    lr.fit(setting.posterior.mean, setting.labels)
    classes, truth = hybrid.classes_, setting.test_labels
    codes = np.searchsorted(classes, truth)
    rows = np.arange(len(codes))
    report: dict[str, Any] = {
        "settings": {
            "gains": GAINS,
            "C": hybrid.C_,
            "scale": hybrid.scale_,
            "mixture": hybrid.mixture_.weights.tolist(),
            "C_tfidf": baseline.C_,
        },
        "cpu_seconds": {"hybrid": seconds, "TF-IDF + LR": baseline_seconds},
        "lengths": {},
    }
    losses = {}
    for n_words, (counts, q) in setting.tests.items():
        pair = counts, q
        systems = {
            "hybrid": hybrid.predict_log_proba(pair),
            "score": hybrid.score_.predict_log_proba(q),
            "TF-IDF + LR": baseline.predict_log_proba(counts),
            "LR": lr.predict_log_proba(q.mean),
        }
        cell: dict[str, Any] = {}
        for name, log_proba in systems.items():
            cell[name] = evaluate(log_proba, truth, classes)
            wrong = log_proba.argmax(axis=1) != codes
            area = error_detection_area(entropies(log_proba), wrong)
            cell[name]["error_detection"] = area
        wrong = systems["hybrid"].argmax(axis=1) != codes
        area = error_detection_area(q.total_variance, wrong)
        cell["total_variance_error_detection"] = area
        losses[n_words] = -systems["hybrid"][rows, codes]
        apart = losses[n_words] + systems["TF-IDF + LR"][rows, codes]
        error = apart.std() / np.sqrt(len(apart))
        cell["standard_errors_over_tfidf"] = float(apart.mean() / max(error, 1e-12))
        report["lengths"][n_words] = cell
    report["doubt"] = doubt(setting, hybrid, losses, codes)
    return report


def doubt(
    setting: Setting, hybrid: HybridClassifier, losses: dict[int, Any], codes: Any
) -> dict[str, Any]:
    """Return how well the epistemic part ranks, and what prediction sets hold."""
    found: dict[str, Any] = {}
    if 25 in losses:
        counts, q = setting.tests[25]
        fall = losses[25] - losses[0]
        part = hybrid.predict_uncertainty((counts, q))
        n_tokens = np.asarray(counts.sum(axis=1)).ravel()
        whole = np.asarray(setting.tests[0][0].sum(axis=1)).ravel()
        numbers = {
            "epistemic": part.epistemic,
            "entropy": part.entropy,
            "shortness": -n_tokens,
            "length of the whole": whole,
        }
        found["rank_correlation_with_fall"] = {
            k: float(spearmanr(v, fall).statistic) for k, v in numbers.items()
        }
    counts, q = setting.tests[0]
    proba = hybrid.predict_proba((counts, q))
    n_tokens = np.asarray(counts.sum(axis=1)).ravel()
    edges = length_bands(n_tokens, 3)
    band = np.searchsorted(edges, n_tokens, side="right")
    hits, by_band, random = [], [], np.random.default_rng(0)
    for _ in range(20):
        order = random.permutation(len(codes))
        first, second = np.array_split(order, 2)
        sets = PredictionSets.calibrate(
            proba[first], codes[first], n_tokens=n_tokens[first]
        )
        held = sets.contains(proba[second], 0.9)[np.arange(len(second)), codes[second]]
        hits.append(float(held.mean()))
        options = {"n_tokens": n_tokens[second], "edges": edges}
        chosen = sets.contains(proba[second], 0.9, **options)
        held = chosen[np.arange(len(second)), codes[second]]
        by_band.append(
            [float(held[band[second] == i].mean()) for i in range(len(edges) + 1)]
        )
    own = hybrid.calibration_.contains(proba, 0.9)
    found["coverage_at_90"] = {
        "20 splits of the test set": float(np.mean(hits)),
        "by thirds of length": np.mean(by_band, axis=0).tolist(),
        "calibrated on training documents": float(
            own[np.arange(len(codes)), codes].mean()
        ),
    }
    return found


def few_labels(
    setting: Setting, per_class: int, n_draws: int
) -> dict[str, dict[str, float]]:
    """Return mean scores of fits on a few labels, all other documents unlabelled."""
    found: dict[str, list[dict[str, float]]] = {}
    classes = np.unique(setting.labels)
    counts, q = setting.tests[0]
    for seed in range(n_draws):
        random = np.random.default_rng(seed)
        rows = np.concatenate(
            [
                random.choice(np.flatnonzero(setting.labels == c), per_class, False)
                for c in classes
            ]
        )
        some = np.full(len(setting.labels), None, dtype=object)
        some[rows] = setting.labels[rows]
        hybrid = fit_hybrid(setting, some)
        known = setting.labels[rows]
        baseline = TfidfRegression(setting.counts[rows], known)
        lr = CrossValidatedLogisticRegression(n_folds=3)
        lr.fit(setting.posterior.mean[rows], known)
        for name, log_proba in {
            "hybrid": hybrid.predict_log_proba((counts, q)),
            "score": hybrid.score_.predict_log_proba(q),
            "TF-IDF + LR": baseline.predict_log_proba(counts),
            "LR": lr.predict_log_proba(q.mean),
        }.items():
            scores = evaluate(log_proba, setting.test_labels, classes)
            found.setdefault(name, []).append(scores)
    return {
        name: {key: float(np.mean([s[key] for s in all_])) for key in all_[0]}
        for name, all_ in found.items()
    }


def unknown_topics(setting: Setting) -> dict[str, float]:
    """Return how well topics that training lacks are told apart, as areas."""
    hybrid = fit_hybrid(setting, setting.labels)
    baseline = TfidfRegression(setting.counts, setting.labels)
    lr = CrossValidatedLogisticRegression(n_folds=3)
    lr.fit(setting.posterior.mean, setting.labels)
    counts, q = setting.tests[0]
    unknown = ~np.isin(setting.test_labels, setting.labels)
    doubt = hybrid.predict_uncertainty((counts, q))
    numbers = {
        "hybrid, typicality": -doubt.typicality,
        "hybrid, entropy": doubt.entropy,
        "TF-IDF + LR, largest": -baseline.predict_log_proba(counts).max(axis=1),
        "LR, largest": -lr.predict_log_proba(q.mean).max(axis=1),
    }
    return {k: error_detection_area(v, unknown) for k, v in numbers.items()}


def show(report: dict[str, Any]) -> None:
    """Print accuracy / cross-entropy / ECE / error-detection area by length."""
    for n_words, cell in report.get("lengths", {}).items():
        shown = [
            f"{name} {s['accuracy']:.2f} / {s['cross_entropy']:.3f} / {s['ece']:.3f}"
            f" / {s['error_detection']:.3f}"
            for name, s in cell.items()
            if isinstance(s, dict)
        ]
        apart = cell["standard_errors_over_tfidf"]
        print(f"{n_words or 'whole':>6}  {'; '.join(shown)}; {apart:+.1f} se")
    for key in ("settings", "cpu_seconds", "doubt", "few_labels"):
        if key in report:
            print(key, json.dumps(report[key]))


def main(arguments: list[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--few", type=int, nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--only-few", action="store_true")
    parser.add_argument("--unknown", action="store_true")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    register()
    options = chosen.corpus, chosen.components, chosen.seed, chosen.cache
    if chosen.unknown:
        areas = unknown_topics(prepare(*options, leave_out=True))
        print(json.dumps(areas, indent=1))
        if chosen.json:
            chosen.json.write_text(json.dumps(areas, indent=1) + "\n")
        return
    setting = prepare(*options)
    report: dict[str, Any] = {
        "corpus": Path(chosen.corpus).name,
        "n_components": chosen.components,
        "seed": chosen.seed,
    }
    if not chosen.only_few:
        report |= lengths_and_doubt(setting)
        show(report)
    if chosen.few:
        few = {n: few_labels(setting, n, chosen.draws) for n in chosen.few}
        report["few_labels"] = few
        print(json.dumps(few))
    if chosen.json:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
