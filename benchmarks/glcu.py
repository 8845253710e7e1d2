"""Time and memory of GLCU, with the operations it cannot do without beside them."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from docsigma.classifiers import UncertainGaussianClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray


def simulate(
    n_documents: int, n_components: int, n_classes: int, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw documents from the model; variances lie between 0.01 and 0.1."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n_documents)
    directions = rng.normal(size=(n_components, n_components)) / n_components**0.5
    spectrum = np.geomspace(0.3, 0.003, n_components)
    root = directions * np.sqrt(spectrum)
    means = rng.normal(scale=0.15, size=(n_classes, n_components))
    # Short documents are uncertain in all their dimensions.
    length = rng.uniform(size=(n_documents, 1))
    noise = rng.uniform(size=(n_documents, n_components))
    variance = 0.01 * 10 ** (0.7 * length + 0.3 * noise)
    mean = means[labels] + rng.normal(size=noise.shape) @ root.T
    mean += np.sqrt(variance) * rng.normal(size=noise.shape)
    return np.hstack([mean, variance]), labels


def peak_gib() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def machine_gflops() -> float:
    """Rate of a large float64 product, the best this machine gives."""
    a = torch.randn(1500, 1500, dtype=torch.float64)
    best = float("inf")
    for _ in range(4):
        start = time.perf_counter()
        torch.mm(a, a)
        best = min(best, time.perf_counter() - start)
    return 2 * 1500**3 / best / 1e9


def measure(
    n_documents: int, n_components: int, max_iter: int, gflops: float
) -> dict[str, Any]:
    """Train and predict once."""
    X, y = simulate(n_documents, n_components, 20)
    glcu = UncertainGaussianClassifier(layout="mean_variance", max_iter=max_iter)
    before = peak_gib()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        glcu.fit(X, y)
    fit_seconds = time.perf_counter() - start
    start = time.perf_counter()
    glcu.predict_log_proba(X)
    predict_seconds = time.perf_counter() - start
    passes = glcu.n_iter_ + 1
    # Training: Cholesky factor and inverse. Prediction: factor and 21 solves.
    pass_floor = n_documents * n_components**3 / gflops / 1e9
    predict_flops = n_components**3 / 3 + 21 * n_components**2
    predict_floor = n_documents * predict_flops / gflops / 1e9
    return {
        "n_documents": n_documents,
        "n_components": n_components,
        "converged": glcu.converged_,
        "passes": passes,
        "fit_seconds": fit_seconds,
        "seconds_per_pass": fit_seconds / passes,
        "floor_seconds_per_pass": pass_floor,
        "ratio_pass": fit_seconds / passes / pass_floor,
        "predict_documents_per_second": n_documents / predict_seconds,
        "floor_predict_documents_per_second": n_documents / predict_floor,
        "ratio_predict": predict_seconds / predict_floor,
        "peak_gib_before_fit": before,
        "peak_gib": peak_gib(),
        "log_likelihood": glcu.log_likelihood_history_.tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--documents", type=int, default=11314)
    arguments = parser.parse_args()
    gflops = machine_gflops()
    result = {
        "threads": torch.get_num_threads(),
        "product_gflops": gflops,
        "runs": [
            measure(arguments.documents, 200, 200, gflops),
            measure(arguments.documents // 8, 400, 3, gflops),
        ],
    }
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    json.dump(result, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
