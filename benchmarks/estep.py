"""Whether a document is worse off under the fast E-step than under 1000 Adam steps.

    python benchmarks/estep.py --json benchmarks/results/estep.json

One model per corpus, of the fast solver. Unseen documents are embedded twice: by
`infer`, and by Adam on the paper's bound with fresh draws at each step and a
rate that falls to nothing. Both posteriors are judged by the paper's bound on the same
other draws. The result is how far, in per cent of Adam's bound, ours is lower.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from docsigma import BayesianSMM
from docsigma.covariances import Diagonal, DiagonalGaussians
from docsigma.estep import infer
from docsigma.kernels import CountTensor, softmax_moments
from docsigma.marginal_likelihood import estimate_marginal_likelihood
from docsigma.optimizers import Adam
from docsigma.random import Stream, generator, standard_normals
from docsigma_paper.topic_id import load_task

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.objective import Model

CORPORA = ("20newsgroups-2k", "switchboard", "20newsgroups")


class Judge:
    """Documents under one model: Adam's posteriors, and the bound of any."""

    def __init__(self, counts: CountTensor, model: BayesianSMM) -> None:
        self.counts = counts
        self.model = model._model()
        words = (self.model.loadings, self.model.bias)
        self.likelihood = self.model.likelihood.bind(counts, *words)

    def adam(self, n_steps: int, rate: float) -> DiagonalGaussians:
        """Maximise the paper's bound, from the prior."""
        n, k = len(self.counts), self.model.n_components
        prior, like = self.model.prior, self.model.bias
        q = Diagonal().constant(n, k, prior.scale**2, like)
        optimizers = [Adam(x, learning_rate=rate) for x in (q.mean, q.log_std)]
        for step in range(n_steps):
            source = generator(1, Stream.NOISE, step)
            noise = standard_normals((n, 1, k), source, like)
            noise = torch.cat([noise, -noise], dim=1)
            gradients = q.gradients(
                prior,
                self.likelihood.projected,
                self.counts.n_tokens,
                _slopes(self.model, q, noise),
                noise,
            )
            for optimizer, x, gradient in zip(
                optimizers, (q.mean, q.log_std), gradients, strict=True
            ):
                optimizer.learning_rate = rate * min(1.0, 2 * (1 - step / n_steps))
                optimizer.ascend(x, gradient)
        return q

    def bound(self, q: DiagonalGaussians, n_draws: int = 64) -> Tensor:
        """Return the paper's bound of each document, on draws of its own."""
        found = estimate_marginal_likelihood(
            self.counts, q, self.model, n_draws=n_draws, seed=2
        )
        return found.log_evidence


def _slopes(model: Model, q: DiagonalGaussians, noise: Tensor) -> Tensor:
    points = q.points(noise)
    flat = points.flatten(0, 1)
    moments = softmax_moments(flat, model.loadings, model.bias, first=True)
    return moments.first.view_as(points)


def measure(name: str, chosen: argparse.Namespace) -> dict[str, Any]:
    task = load_task(name)
    model = BayesianSMM(chosen.components, random_state=0).fit(task.train)
    rows = np.flatnonzero(np.asarray(task.test.sum(axis=1)).ravel() > 0)
    rows = rows[: chosen.documents]
    counts = CountTensor(
        task.test[rows].astype(np.float32), torch.empty(0, dtype=torch.float32)
    )
    judge = Judge(counts, model)
    started = time.perf_counter()
    ours = infer(counts, judge.model, Diagonal())
    fast_seconds = time.perf_counter() - started
    theirs = judge.adam(chosen.steps, chosen.rate)
    adam_seconds = time.perf_counter() - started - fast_seconds
    a, b = judge.bound(ours.posterior), judge.bound(theirs)
    lower = (100 * (b - a) / b.abs()).numpy()
    worst = np.argsort(-lower)[:5]
    return {
        "corpus": name,
        "n_documents": len(rows),
        "n_features": task.test.shape[1],
        "K": chosen.components,
        "steps": chosen.steps,
        "rate": chosen.rate,
        "lower_at_most_percent": float(lower.max()),
        "n_lower_by_half_a_percent": int((lower > 0.5).sum()),
        "mean_lower_percent": float(lower.mean()),
        "worst": [
            {"tokens": float(counts.n_tokens[d]), "percent": float(lower[d])}
            for d in worst
        ],
        "sweeps": float(ours.n_iter.double().mean()),
        "times_faster": adam_seconds / fast_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    rows = []
    for name in chosen.corpora:
        rows.append(measure(name, chosen))
        print(json.dumps(rows[-1]), flush=True)
        if chosen.json is not None:
            chosen.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
