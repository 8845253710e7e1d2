"""The bound over the passes of Algorithm 1, for two starts of the posteriors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docsigma.metrics import plots
from docsigma.models import BayesianSMM
from docsigma_paper.reproduce._setting import Experiment
from docsigma_paper.reproduce._tables import markdown, over_seeds, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from docsigma_paper.reproduce._record import Plan, Record
    from docsigma_paper.reproduce._setting import Setting


VARIANCES = (1.0, 0.1)
PARTS = (0.05, 0.1, 0.25, 0.5, 1.0)


def compute(setting: Setting, record: Record | Plan) -> None:
    """Train twice per seed, the prior being standard normal as in the paper."""
    task = setting.task("20newsgroups")
    for seed in setting.seeds:
        for variance in VARIANCES:
            parameters = {
                "n_components": setting.pick(100, 5),
                "prior_precision": 1.0,
                "l1": 1.0,
                "solver": "paper",
                "init_variance": variance,
                "max_iter": setting.pick(1000, 40),
                "tol": 0.0,
            }

            def train(
                seed: int = seed, parameters: dict[str, Any] = parameters
            ) -> dict[str, Any]:
                model = BayesianSMM(
                    **parameters, device=setting.device, random_state=seed
                ).fit(task.train)
                tokens = float(task.train.sum())
                bounds = [row["bound"] / tokens for row in model.history_]
                return {"bound_per_token": bounds}

            key = {"variance": variance, "seed": seed}
            record.row(key, parameters, train)


def table(rows: list[dict[str, Any]]) -> str:
    """Return the bound per token at some passes."""
    n_passes = len(rows[0]["bound_per_token"])
    passes = [max(1, round(part * n_passes)) for part in PARTS]
    lines = []
    for key, runs in over_seeds(rows).items():
        cells = [
            spread([run["bound_per_token"][at - 1] for run in runs], 3) for at in passes
        ]
        lines.append([f"{dict(key)['variance']:g}", *cells])
    heading = ["posteriors start at variance", *(f">pass {at}" for at in passes)]
    return "Bound a token, in nats:\n\n" + markdown(heading, lines)


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Draw the bound over the passes."""
    drawn, axes = plots.blank()
    for number, (key, runs) in enumerate(over_seeds(rows).items()):
        for run in runs:
            bounds = run["bound_per_token"]
            axes.plot(
                range(1, len(bounds) + 1),
                bounds,
                color=plots.PALETTE[number],
                linewidth=1.2,
                label=f"variance {dict(key)['variance']:g}" if run is runs[0] else None,
            )
    last = [run["bound_per_token"] for run in rows]
    low = min(bounds[len(bounds) // 40] for bounds in last)
    axes.set_ylim(bottom=low)
    axes.set_xlabel("passes over the corpus")
    axes.set_ylabel("bound per token (nats)")
    axes.set_title("Convergence of Algorithm 1 for two starts of the posteriors")
    axes.legend()
    return drawn


EXPERIMENT = Experiment(
    "convergence",
    "Bound against passes, posteriors starting at variance 1 and 0.1",
    "Figure 4",
    compute,
    table,
    figure,
)
