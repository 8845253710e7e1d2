"""The drop-out rates of ULMFiT, chosen on training documents as the paper does."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

from docsigma.classifiers.ulmfit import ULMFiTClassifier
from docsigma.experiments.reproduce._setting import Experiment
from docsigma.experiments.reproduce._tables import markdown
from docsigma.experiments.reproduce._ulmfit import fit_and_judge, trained_from_scratch
from docsigma.experiments.tune import divide

if TYPE_CHECKING:
    from docsigma.experiments.reproduce._record import Plan, Record
    from docsigma.experiments.reproduce._setting import Setting
    from docsigma.experiments.topic_id import Task

__all__ = ["EXPERIMENT"]

RATES = (0.2, 0.4, 0.6)
# Speech is searched where the task is neither easy nor hopeless.
TASKS: dict[str, dict[str, Any]] = {
    "20newsgroups": {},
    "switchboard": {"words": (201, 400)},
}
HELD_OUT = 0.2


def compute(setting: Setting, record: Record | Plan) -> None:
    """Train a language model a rate, and on top of each a classifier a rate."""
    for corpus, options in TASKS.items():
        task = setting.task(corpus, **options)
        for rate in setting.pick(RATES, RATES[:2]):
            if not setting.wants(_system(corpus, rate)):
                continue

            def run(
                task: Task = task, corpus: str = corpus, rate: float = rate
            ) -> dict[str, Any]:
                return {"scores": _try(setting, task, corpus, rate)}

            named: dict[str, Any] = {"corpus": corpus}
            named |= {name: list(value) for name, value in options.items()}
            seed = setting.seeds[0]
            record.row({**named, "lm_dropout": rate, "seed": seed}, run)


def _system(corpus: str, rate: float) -> str:
    return f"{corpus}-{rate:g}"


def _try(
    setting: Setting, task: Task, corpus: str, lm_dropout: float
) -> dict[str, dict[str, Any]]:
    """Judge every classifier of one language model on the latest fifth."""
    texts, labels = task.train_texts, task.train_labels
    assert texts is not None
    rows = divide(len(texts), labels, HELD_OUT, "latest", 0)
    parts: list[list[str]] = []
    for part in rows:
        parts += [texts[row] for row in part], [labels[row] for row in part]
    shared = trained_from_scratch(setting, corpus)
    scores = {}
    with tempfile.TemporaryDirectory() as folder:
        learned: dict[str, Any] = {"lm_dropout": lm_dropout}
        for rate in setting.pick(RATES, RATES[:2]):
            model = ULMFiTClassifier(
                **shared | learned,
                classifier_dropout=rate,
                random_state=setting.seeds[0],
            )
            scores[f"{rate:g}"] = fit_and_judge(model, *parts)
            if "weights" not in learned:
                model.save_language_model(folder)
                learned = {"weights": folder, "lm_epochs": 0}
    return scores


def table(rows: list[dict[str, Any]]) -> str:
    """Give accuracy and cross-entropy on the part held out, a table a corpus."""
    tables = []
    for corpus in dict.fromkeys(row["key"]["corpus"] for row in rows):
        mine = [row for row in rows if row["key"]["corpus"] == corpus]
        window = mine[0]["key"].get("words")
        where = "" if window is None else f", words {window[0]} to {window[1]}"
        rates = list(mine[0]["scores"])
        heading = [">language model", *(f">classifier {rate}" for rate in rates)]
        lines = [
            [f"{row['key']['lm_dropout']:g}", *map(_show, row["scores"].values())]
            for row in mine
        ]
        tables.append(f"**{corpus}{where}**\n\n" + markdown(heading, lines))
    explained = (
        "Accuracy, per cent, and cross-entropy on the latest fifth of the training "
        "documents, by the drop-out of language model and classifier."
    )
    return "\n\n".join([explained, *tables])


def _show(score: dict[str, Any]) -> str:
    return f"{score['accuracy']:.1f} / {score['cross_entropy']:.3f}"


EXPERIMENT = Experiment(
    "ulmfit-dropout",
    "ULMFiT's drop-out rates, chosen on training documents",
    "Section VI-D",
    compute,
    table,
    systems=tuple(_system(corpus, rate) for corpus in TASKS for rate in RATES),
)
