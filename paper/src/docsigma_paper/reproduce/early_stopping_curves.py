"""Topic ID at checkpoints: which model needs to be stopped in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docsigma.classifiers import (
    GaussianLinearClassifier,
    UncertainGaussianClassifier,
)
from docsigma.metrics import plots
from docsigma.metrics.evaluation import evaluate
from docsigma.models import BayesianSMM
from docsigma_paper.early_stopping import cross_validate
from docsigma_paper.models import SMM
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
    from docsigma_paper.topic_id import Task


MODELS = {"smm": "l1 SMM", "nvdm": "NVDM", "bayesian-smm": "Bayesian SMM"}
CORPUS = "switchboard"
CHECKPOINTS = 20


def compute(setting: Setting, record: Record | Plan) -> None:
    """Train three models on speech, and evaluate each at regular checkpoints."""
    task = setting.task(CORPUS)
    for seed in setting.seeds:
        for system, name in MODELS.items():
            if not setting.wants(system):
                continue

            parameters = _parameters(setting, name)

            def curve(
                name: str = name,
                seed: int = seed,
                parameters: dict[str, Any] = parameters,
            ) -> dict[str, Any]:
                return {"points": _curve(setting, name, seed, task, parameters)}

            record.row({"model": name, "seed": seed}, parameters, curve)


def _parameters(setting: Setting, name: str) -> dict[str, Any]:
    k = setting.pick(100, 5)
    if name == "NVDM":
        return nvdm_parameters(setting, k, CORPUS)
    return algorithm1_parameters(k, 0.1, setting.pick(1000, 20))


def _model(setting: Setting, name: str, seed: int, parameters: dict[str, Any]) -> Any:
    if name == "NVDM":
        return make_nvdm(setting, parameters, seed)
    make = SMM if name == "l1 SMM" else BayesianSMM
    return make(**parameters, device=setting.device, random_state=seed)


def _curve(
    setting: Setting, name: str, seed: int, task: Task, parameters: dict[str, Any]
) -> list[dict[str, float]]:
    model = _model(setting, name, seed, parameters)
    n_passes = model.max_iter
    every = max(1, n_passes // setting.pick(CHECKPOINTS, 2))
    certain = name == "l1 SMM"
    make = GaussianLinearClassifier if certain else UncertainGaussianClassifier
    points: list[dict[str, float]] = []

    def features(frozen: Any, counts: Any) -> Any:
        return frozen.transform(counts) if certain else frozen.posterior(counts)

    def look(now: TrainingPass) -> None:
        if now.epoch % every:
            return
        frozen = now.snapshot()
        train, test = (features(frozen, x) for x in (task.train, task.test))
        classifier = make()
        seen = cross_validate(
            train, task.train_labels, classifier, n_folds=setting.pick(5, 2)
        )
        classifier.fit(train, task.train_labels)
        log_proba = classifier.predict_log_proba(test)
        score = evaluate(log_proba, task.test_labels, classifier.classes_)
        points.append(
            {
                "pass": now.epoch,
                "cv_accuracy": seen.accuracy,
                "test_accuracy": score["accuracy"],
                "test_cross_entropy": score["cross_entropy"],
            }
        )

    model.fit(task.train, callback=look)
    return points


def table(rows: list[dict[str, Any]]) -> str:
    """Return test accuracy where cross-validation stops, at best, and at the end."""
    lines = []
    for row in rows:
        points = row["points"]
        best = max(points, key=lambda point: point["cv_accuracy"])
        top = max(point["test_accuracy"] for point in points)
        last = points[-1]
        lines.append(
            [
                row["key"]["model"],
                str(row["key"]["seed"]),
                f"{best['test_accuracy']:.2f} ({unit(row)} {best['pass']})",
                f"{top:.2f}",
                f"{last['test_accuracy']:.2f}",
                f"{top - last['test_accuracy']:.2f}",
                f"{last['cv_accuracy']:.2f}",
            ]
        )
    heading = [
        "model",
        ">seed",
        ">test, stopped by cross-validation",
        ">test, highest",
        ">test, at the end",
        ">fallen by",
        ">cross-validation, at the end",
    ]
    return "Accuracy in per cent:\n\n" + markdown(heading, lines)


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Draw accuracies over the passes, one panel per model."""
    named: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        named.setdefault(row["key"]["model"], []).append(row)
    drawn, panels = plots.blank(4.2 * len(named), 3.8, len(named))
    for axes, (name, runs) in zip(panels, named.items(), strict=True):
        for row in runs:
            points = row["points"]
            passes = [point["pass"] for point in points]
            best = max(points, key=lambda point: point["cv_accuracy"])
            first = row is runs[0]
            for column, colour, label in (
                ("cv_accuracy", plots.PALETTE[1], "cross-validation"),
                ("test_accuracy", plots.PALETTE[0], "test"),
            ):
                axes.plot(
                    passes,
                    [point[column] for point in points],
                    color=colour,
                    linewidth=1.2,
                    label=label if first else None,
                )
                axes.plot(best["pass"], best[column], "o", color=colour, markersize=4)
        axes.set_title(name)
        axes.set_xlabel("rounds" if name == "NVDM" else "passes")
        axes.set_ylabel("accuracy (%)")
        axes.legend(fontsize=8)
    # One scale for all, so that the curves can be compared.
    low, high = zip(*(axes.get_ylim() for axes in panels), strict=True)
    for axes in panels:
        axes.set_ylim(min(low), max(high))
    return drawn


EXPERIMENT = Experiment(
    "early-stopping",
    "5-fold and test accuracy at checkpoints: SMM, NVDM, Bayesian SMM",
    "Figure 6",
    compute,
    table,
    figure,
    systems=tuple(MODELS),
)
