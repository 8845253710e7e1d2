"""Perplexities of training and test documents at checkpoints: who over-fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docsigma.metrics import plots
from docsigma.models import BayesianSMM
from docsigma_paper.reproduce._models import (
    algorithm1_parameters,
    make_nvdm,
    nvdm_parameters,
)
from docsigma_paper.reproduce._setting import Experiment
from docsigma_paper.reproduce._tables import markdown, unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from docsigma.models import TrainingPass
    from docsigma_paper.reproduce._record import Plan, Record
    from docsigma_paper.reproduce._setting import Setting


CORPORA = ("20newsgroups", "switchboard")
MODELS = {"bayesian-smm": "Bayesian SMM", "nvdm": "NVDM"}
CHECKPOINTS = 20


def compute(setting: Setting, record: Record | Plan) -> None:
    """Train both models and look at both parts at regular checkpoints."""
    for corpus in CORPORA:
        task = setting.task(corpus)
        for seed in setting.seeds:
            for system, name in MODELS.items():
                if not setting.wants(system):
                    continue

                parameters = _parameters(setting, corpus, name)

                def curve(
                    name: str = name,
                    seed: int = seed,
                    task: Any = task,
                    parameters: dict[str, Any] = parameters,
                ) -> dict[str, Any]:
                    return _curve(setting, name, seed, task, parameters)

                key = {"corpus": corpus, "model": name, "seed": seed}
                record.row(key, parameters, curve)


def _parameters(setting: Setting, corpus: str, name: str) -> dict[str, Any]:
    k = setting.pick(200, 4)
    if name == "NVDM":
        return nvdm_parameters(setting, k, corpus)
    return algorithm1_parameters(k, 1.0, setting.pick(1000, 20))


def _curve(
    setting: Setting, name: str, seed: int, task: Any, parameters: dict[str, Any]
) -> dict[str, Any]:
    model: Any
    if name == "NVDM":
        model = make_nvdm(setting, parameters, seed)
    else:
        model = BayesianSMM(**parameters, device=setting.device, random_state=seed)
    n_passes = model.max_iter
    every = max(1, n_passes // setting.pick(CHECKPOINTS, 2))
    points: list[dict[str, float]] = []

    def look(now: TrainingPass) -> None:
        if now.epoch % every == 0:
            frozen = now.snapshot()
            train, test = (frozen.perplexity(x) for x in (task.train, task.test))
            points.append(
                {
                    "pass": now.epoch,
                    "train": train.per_document,
                    "test": test.per_document,
                    "ml": test.maximum_likelihood_per_document,
                }
            )

    model.fit(task.train, callback=look)
    return {"points": points}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the least test perplexity, and that at the end."""
    lines = []
    for row in rows:
        key, points = row["key"], row["points"]
        best = min(points, key=lambda point: point["test"])
        last = points[-1]
        lines.append(
            [
                key["corpus"],
                key["model"],
                str(key["seed"]),
                f"{last['train']:.0f}",
                f"{best['test']:.0f} ({unit(row)} {best['pass']})",
                f"{last['test']:.0f}",
                f"{100 * (last['test'] / best['test'] - 1):.1f} %",
            ]
        )
    heading = [
        "corpus",
        "model",
        ">seed",
        ">training, at the end",
        ">test, least",
        ">test, at the end",
        ">risen by",
    ]
    return "Perplexity per document (bound):\n\n" + markdown(heading, lines)


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Draw test perplexities (lines) and training perplexities (dashes)."""
    corpora = list(dict.fromkeys(row["key"]["corpus"] for row in rows))
    drawn, panels = plots.blank(5.4 * len(corpora), 4.2, len(corpora))
    for axes, corpus in zip(panels, corpora, strict=True):
        shown: set[str] = set()
        floor = 0.0
        for row in rows:
            key, points = row["key"], row["points"]
            if key["corpus"] != corpus:
                continue
            colour = plots.PALETTE[0 if key["model"] == "Bayesian SMM" else 3]
            part = [point["pass"] / points[-1]["pass"] for point in points]
            for name, style in (("test", "-"), ("train", "--")):
                label = f"{key['model']}, {name}"
                axes.plot(
                    part,
                    [point[name] for point in points],
                    style,
                    color=colour,
                    linewidth=1.3,
                    label=None if label in shown else label,
                )
                shown.add(label)
            floor = points[-1]["ml"]
        axes.axhline(
            floor,
            color=plots.PALETTE[2],
            linewidth=1.0,
            label="maximum likelihood on the test documents",
        )
        axes.set_yscale("log")
        axes.set_title(corpus)
        axes.set_xlabel("part of the training")
        axes.set_ylabel("perplexity per document (bound)")
        for formatter in (
            axes.yaxis.set_major_formatter,
            axes.yaxis.set_minor_formatter,
        ):
            formatter("{x:.0f}")
        axes.tick_params(axis="y", which="minor", labelsize=7)
        axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 0.07))
    return drawn


EXPERIMENT = Experiment(
    "perplexity-curves",
    "Training and test perplexity at checkpoints, Bayesian SMM against NVDM",
    "Figure 5",
    compute,
    table,
    figure,
    systems=tuple(MODELS),
)
