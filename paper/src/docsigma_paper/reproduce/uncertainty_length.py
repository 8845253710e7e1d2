"""The uncertainty of an embedding against the length of its document."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import spearmanr

from docsigma.metrics import plots
from docsigma.models import BayesianSMM
from docsigma_paper.reproduce._setting import Experiment
from docsigma_paper.reproduce._tables import markdown, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from docsigma_paper.reproduce._record import Plan, Record
    from docsigma_paper.reproduce._setting import Setting


EDGES = (1, 11, 31, 101, 301, 1001, 10**9)


def compute(setting: Setting, record: Record | Plan) -> None:
    """Fit once per seed; keep the trace and the length of each test document."""
    task = setting.task("20newsgroups")
    parameters: dict[str, Any] = {"n_components": setting.pick(100, 5)}
    for seed in setting.seeds:

        def train(seed: int = seed) -> dict[str, Any]:
            model = BayesianSMM(
                **parameters, device=setting.device, random_state=seed
            ).fit(task.train)
            lengths = np.asarray(task.test.sum(axis=1)).ravel()
            trace = model.posterior(task.test).total_variance
            order = spearmanr(lengths, trace).statistic
            return {
                "rank_correlation": float(order),
                "lengths": lengths.astype(int).tolist(),
                "trace": [round(float(value), 4) for value in trace],
                "prior_trace": model.n_components / model.prior_precision,
            }

        record.row({"seed": seed}, parameters, train)


def table(rows: list[dict[str, Any]]) -> str:
    """Return the mean trace by length."""
    lines = []
    for low, high in itertools.pairwise(EDGES):
        means, n = [], 0
        for row in rows:
            lengths, trace = np.array(row["lengths"]), np.array(row["trace"])
            inside = (lengths >= low) & (lengths < high)
            n = int(inside.sum())
            if n:
                means.append(float(trace[inside].mean()))
        name = f"{low} to {high - 1}" if high < EDGES[-1] else f"{low} or more"
        lines.append([name, str(n), spread(means, 2)])
    seen = spread([row["rank_correlation"] for row in rows], 3)
    return (
        f"Rank correlation (Spearman) of length and trace: {seen}. "
        f"The prior's trace is {rows[0]['prior_trace']:g}.\n\n"
        + markdown([">words", ">test documents", ">trace of the covariance"], lines)
    )


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Draw one point per test document."""
    row = rows[0]
    drawn, axes = plots.blank()
    axes.scatter(
        np.maximum(row["lengths"], 1),
        row["trace"],
        s=7,
        alpha=0.35,
        linewidths=0,
        color=plots.PALETTE[0],
    )
    axes.axhline(row["prior_trace"], color=plots.PALETTE[3], linestyle="--")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("words in the document")
    axes.set_ylabel("trace of the covariance")
    axes.set_title("Uncertainty against length (dashes: the prior)")
    return drawn


EXPERIMENT = Experiment(
    "uncertainty-length",
    "Trace of the covariance against document length",
    "Figure 7",
    compute,
    table,
    figure,
)
