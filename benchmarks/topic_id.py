r"""Topic ID by documents of all lengths, with few labels, and what it does not know.

    python benchmarks/topic_id.py lengths 20newsgroups --components 400
    python benchmarks/topic_id.py few switchboard --per-class 1 5
    python benchmarks/topic_id.py unknown 20newsgroups

A model of weighted counts and the classifiers are trained on whole training documents,
and all that they choose is chosen on these; test documents are then cut to their first
words, and looked at once per length. Constants of the classifiers are chosen by
`benchmarks/choices.py`, on training documents as well. Corpora are names, or folders
with train.jsonl.xz and test.jsonl.xz. Each seed adds a report to a JSON file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from _topic_id import Setting, TfidfRegression, fit_hybrid, fit_one, load, prepare
from docsigma import CrossValidatedLogisticRegression
from docsigma.classifiers.conformal import PredictionSets, length_bands
from docsigma.classifiers.uncertainty import entropies
from docsigma.metrics import error_detection_area
from docsigma.metrics.evaluation import evaluate
from docsigma_paper.corpora import register

KINDS = ("hybrid", "evidence", "GLCU", "LR", "TF-IDF + LR", "priors")


def lengths(setting: Setting, _: argparse.Namespace) -> dict[str, Any]:
    """Evaluate all classifiers at all lengths; errors found, and prediction sets."""
    classes, truth = np.unique(setting.labels), setting.test_labels
    codes = np.searchsorted(classes, truth)
    rows = np.arange(len(codes))
    seconds: dict[str, float] = {}
    fitted: dict[str, Any] = {}
    found: dict[int, dict[str, Any]] = {n: {} for n in setting.tests}
    for kind in KINDS:
        fitted[kind], seconds[kind] = fit_one(setting, kind)
        for n_words, (counts, q) in setting.tests.items():
            log_proba = fitted[kind](counts, q)
            scores = evaluate(log_proba, truth, classes)
            wrong = log_proba.argmax(axis=1) != codes
            area = error_detection_area(entropies(log_proba), wrong)
            scores["error_detection"] = area
            scores["losses"] = -log_proba[rows, codes]
            scores["wrong"] = wrong
            found[n_words][kind] = scores
            shown = [f"{scores[k]:.4g}" for k in ("accuracy", "cross_entropy", "ece")]
            print(kind, n_words or "whole", *shown, seconds[kind], flush=True)
    total_variance = {
        n: error_detection_area(q.total_variance, found[n]["hybrid"]["wrong"])
        for n, (_, q) in setting.tests.items()
    }
    losses = {n: cell["hybrid"]["losses"] for n, cell in found.items()}
    for cell in found.values():
        ours = {kind: cell[kind]["losses"] for kind in ("hybrid", "evidence")}
        for scores in cell.values():
            own = scores.pop("losses")
            del scores["wrong"]
            # Paired: above 2 the hybrid, or the evidence, is the better one.
            for kind, other in ours.items():
                scores[f"behind_{kind}"] = _standard_errors(own - other)
    hybrid = fitted["hybrid"].args[0]
    return {
        "settings": {
            "C": hybrid.C_,
            "scale": hybrid.scale_,
            "mixture": hybrid.mixture_.weights.tolist(),
            "tempering": list(hybrid.score_.tempering_),
        },
        "fit_seconds": {"model": round(setting.seconds, 2), **seconds},
        "lengths": found,
        "total_variance_error_detection": total_variance,
        "doubt": doubt(setting, hybrid, losses, codes),
    }


def _standard_errors(apart: Any) -> float:
    error = float(apart.std()) / len(apart) ** 0.5
    return round(float(apart.mean()) / max(error, 1e-12), 2)


def doubt(
    setting: Setting, hybrid: Any, losses: dict[int, Any], codes: Any
) -> dict[str, Any]:
    """Return how well the epistemic part ranks, and what prediction sets hold."""
    found: dict[str, Any] = {}
    if 25 in losses:
        counts, q = setting.tests[25]
        fall = losses[25] - losses[0]
        part = hybrid.predict_uncertainty((counts, q))
        whole = np.asarray(setting.tests[0][0].sum(axis=1)).ravel()
        numbers = {
            "epistemic": part.epistemic,
            "entropy": part.entropy,
            "shortness": -np.asarray(counts.sum(axis=1)).ravel(),
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


def few(setting: Setting, options: argparse.Namespace) -> dict[str, Any]:
    """Hide the labels of all but a few documents of each class, in several draws."""
    report: dict[str, Any] = {}
    classes = np.unique(setting.labels)
    counts, q = setting.tests[0]
    for per_class in options.per_class:
        found: dict[str, list[Any]] = {}
        for draw in options.draws:
            some, rows = draw_labels(setting.labels, per_class, draw)
            known = setting.labels[rows]
            hybrid = fit_hybrid(setting, some)
            baseline = TfidfRegression(
                setting.counts[rows],
                known,
                None if setting.groups is None else setting.groups[rows],
            )
            lr = CrossValidatedLogisticRegression(n_folds=3)
            lr.fit(setting.posterior.mean[rows], known)
            log_prior = np.full((len(q), len(classes)), -np.log(len(classes)))
            for kind, log_proba in {
                "hybrid": hybrid.predict_log_proba((counts, q)),
                "evidence": hybrid.score_.predict_log_proba(q),
                "TF-IDF + LR": baseline.predict_log_proba(counts),
                "LR": lr.predict_log_proba(q.mean),
                "priors": log_prior,
            }.items():
                judged = evaluate(log_proba, setting.test_labels, classes)
                found.setdefault(kind, []).append(judged)
        report[str(per_class)] = found
        for kind, scores in found.items():
            mean = [np.mean([s[k] for s in scores]) for k in scores[0]]
            print(f"{per_class:4} {kind:12} {mean[0]:.1f} % {mean[1]:.3f}", flush=True)
    return {"few_labels": report}


def draw_labels(labels: Any, per_class: int, draw: int) -> tuple[Any, Any]:
    """Return labels with None for most, and the rows that keep theirs."""
    random = np.random.default_rng(draw)
    rows = np.concatenate(
        [
            random.permutation(np.flatnonzero(labels == c))[:per_class]
            for c in np.unique(labels)
        ]
    )
    some = np.full(len(labels), None, dtype=object)
    some[rows] = labels[rows]
    return some, rows


def unknown(setting: Setting, options: argparse.Namespace) -> dict[str, Any]:
    """Measure how well documents of unknown topics are told apart, as areas."""
    hybrid = fit_hybrid(setting, setting.labels)
    baseline = TfidfRegression(setting.counts, setting.labels, setting.groups)
    lr = CrossValidatedLogisticRegression(n_folds=3)
    lr.fit(setting.posterior.mean, setting.labels)
    counts, q = setting.tests[0]
    strange = ~np.isin(setting.test_labels, setting.labels)

    def numbers(counts: Any, q: Any) -> dict[str, Any]:
        doubt = hybrid.predict_uncertainty((counts, q))
        return {
            "typicality": -doubt.typicality,
            "entropy": doubt.entropy,
            "TF-IDF + LR, largest": -baseline.predict_log_proba(counts).max(axis=1),
            "LR, largest": -lr.predict_log_proba(q.mean).max(axis=1),
        }

    own = numbers(counts, q)
    found = {
        "classes left out": {
            k: error_detection_area(v, strange) for k, v in own.items()
        }
    }
    for name in options.others:
        other = prepare_texts(setting, name)
        theirs = numbers(*other)
        mixed = np.repeat([False, True], [int((~strange).sum()), len(other[1])])
        found[Path(name).name] = {
            k: error_detection_area(np.concatenate([v[~strange], theirs[k]]), mixed)
            for k, v in own.items()
        }
    for kind, areas in found.items():
        print(kind, {k: round(v, 4) for k, v in areas.items()}, flush=True)
    return {"unknown": found}


def prepare_texts(setting: Setting, name: str) -> tuple[Any, Any]:
    """Return counts and posteriors of another corpus's test documents."""
    counts = setting.words.count(load(name).test.texts).counts
    return counts, setting.embed(counts)


PARTS = {"lengths": lengths, "few": few, "unknown": unknown}


def main(arguments: list[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("corpus")
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--per-class", type=int, nargs="*", default=[1, 5])
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--others", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    chosen = parser.parse_args(arguments)
    register()
    name = Path(chosen.corpus).name
    path = chosen.out / f"topic-id-{chosen.part}-{name}-{chosen.components}.json"
    reports = json.loads(path.read_text()) if path.exists() else []
    for seed in chosen.seeds:
        if any(report["seed"] == seed for report in reports):
            continue
        setting = prepare(
            chosen.corpus,
            chosen.components,
            seed,
            leave_out=chosen.part == "unknown",
        )
        report = {"corpus": name, "n_components": chosen.components, "seed": seed}
        reports.append(report | PARTS[chosen.part](setting, chosen))
        temporary = path.with_suffix(".part")
        temporary.write_text(json.dumps(reports, indent=1) + "\n")
        temporary.replace(path)


if __name__ == "__main__":
    main()
