"""Speed of the likelihood score: fitted from posteriors, and documents per second.

    python benchmarks/scoring.py --json benchmarks/results/scoring.json

Posteriors are drawn, as many and as large as those of 20 Newsgroups at K 400: 11 314
documents of 20 classes. GLCU with its ten steps is fitted to the same ones. Per
document and class, the score takes some 6 K operations and reads 8 K bytes twice.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from docsigma import (
    EvidenceClassifier,
    GaussianPosterior,
    GaussianPrior,
    UncertainGaussianClassifier,
)
from docsigma.metrics.environment import environment

N_CLASSES = 20
PRECISION = 10.0


def draw(n: int, k: int, seed: int) -> tuple[GaussianPosterior, Any]:
    """Draw documents around class means, and what 290 tokens would tell of them."""
    random = np.random.default_rng(seed)
    means = np.random.default_rng(0).normal(size=(N_CLASSES, k)) * 0.2
    labels = random.integers(N_CLASSES, size=n)
    embeddings = means[labels] + 0.2 * random.normal(size=(n, k))
    n_tokens = random.geometric(1 / 290, size=n).astype(float)
    told = 0.2 * n_tokens[:, None] * random.uniform(0.5, 1.5, size=(n, k))
    variance = 1 / (PRECISION + told)
    noise = np.sqrt(told) * random.normal(size=(n, k))
    mean = variance * (told * embeddings + noise)
    prior = GaussianPrior.isotropic(PRECISION, k)
    return GaussianPosterior(mean, variance, prior=prior, n_tokens=n_tokens), labels


def seconds(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=11314)
    parser.add_argument("--components", type=int, default=400)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    train, labels = draw(given.documents, given.components, 1)
    test, truth = draw(given.documents, given.components, 2)
    score = EvidenceClassifier()
    glcu = UncertainGaussianClassifier(max_iter=10)
    report: dict[str, Any] = {
        "n_documents": given.documents,
        "n_components": given.components,
        "evidence_fit_seconds": seconds(lambda: score.fit(train, labels)),
        "glcu_fit_seconds": seconds(lambda: glcu.fit(train, labels)),
    }
    score.predict_log_proba(test[:100])
    spent = min(seconds(lambda: score.predict_log_proba(test)) for _ in range(3))
    report["evidence_documents_per_second"] = given.documents / spent
    report["evidence_accuracy"] = float((score.predict(test) == truth).mean())
    report["environment"] = environment(on_gpu=False)
    text = json.dumps(report, indent=1)
    print(text)
    if given.json is not None:
        given.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
