"""Whether a document is worse off under the fast E-step than under 1000 Adam steps.

    python benchmarks/estep.py --json benchmarks/results/estep.json

One model a corpus, of the fast solver. Unseen documents are embedded twice: by
`infer_posterior`, and by Adam on the paper's bound with fresh draws at each step and a
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
from docsigma.experiments.topic_id import load_task
from docsigma.inference.adam import Adam
from docsigma.inference.centred_jensen import infer_posterior
from docsigma.inference.diagonal import DiagonalGaussian
from docsigma.inference.draws import antithetic_normals, generator, standard_normals
from docsigma.inference.multinomial import MultinomialCounts
from docsigma.inference.prior import IsotropicPrior
from docsigma.kernels import SoftmaxWords, Workspace, softmax_moments

if TYPE_CHECKING:
    from torch import Tensor

CORPORA = ("20newsgroups-2k", "switchboard", "20newsgroups")


class Judge:
    """Documents under one model: Adam's posteriors, and the bound of any."""

    def __init__(self, counts: MultinomialCounts, model: BayesianSMM) -> None:
        self.counts = counts
        self.loadings = torch.from_numpy(np.ascontiguousarray(model.components_.T))
        self.bias = torch.from_numpy(model.log_unigram_)
        self.prior = IsotropicPrior(float(model.prior_precision))
        self.words = SoftmaxWords(self.loadings, self.bias)
        self.linear = counts.project(self.loadings)
        self.workspace = Workspace()

    def adam(self, n_steps: int, rate: float) -> DiagonalGaussian:
        """Maximise the paper's bound, from the prior."""
        n, k = self.linear.shape
        q = DiagonalGaussian.constant(n, k, 1 / self.prior.precision, self.bias)
        optimizers = [Adam(x, learning_rate=rate) for x in (q.mean, q.log_std)]
        for step in range(n_steps):
            noise = standard_normals((n, 1, k), generator(1, step), self.bias)
            noise = torch.cat([noise, -noise], dim=1)
            first = self._moments(q, noise, first=True).first
            gradients = q.gradients(
                self.prior,
                self.linear,
                self.counts.n_tokens,
                first.reshape(n, 2, k),
                noise,
            )
            for optimizer, x, gradient in zip(
                optimizers, (q.mean, q.log_std), gradients, strict=True
            ):
                optimizer.learning_rate = rate * min(1.0, 2 * (1 - step / n_steps))
                optimizer.ascend(x, gradient)
        return q

    def bound(self, q: DiagonalGaussian, n_draws: int = 64) -> Tensor:
        """Give the paper's bound of each document, on draws of its own."""
        noise = antithetic_normals(n_draws, q.mean.shape[1], generator(2), self.bias)
        lse = self._moments(q, noise[None]).lse.double().reshape(-1, n_draws).mean(1)
        value = (self.linear.double() * q.mean.double()).sum(dim=1)
        value += self.counts.score(self.bias).double()
        return value - self.counts.n_tokens.double() * lse - q.kl(self.prior)

    def _moments(self, q: DiagonalGaussian, noise: Tensor, **wanted: bool) -> Any:
        points = q.points(noise).reshape(-1, q.mean.shape[1])
        return softmax_moments(points, self.words, workspace=self.workspace, **wanted)


def measure(name: str, chosen: argparse.Namespace) -> dict[str, Any]:
    task = load_task(name)
    model = BayesianSMM(chosen.components, random_state=0).fit(task.train)
    rows = np.flatnonzero(np.asarray(task.test.sum(axis=1)).ravel() > 0)
    rows = rows[: chosen.documents]
    counts = MultinomialCounts(
        task.test[rows].astype(np.float32), torch.empty(0, dtype=torch.float32)
    )
    judge = Judge(counts, model)
    started = time.perf_counter()
    ours = infer_posterior(counts, judge.loadings, judge.bias, judge.prior)
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
