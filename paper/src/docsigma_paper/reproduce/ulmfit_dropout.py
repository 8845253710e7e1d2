"""ULMFiT's drop-out rates and epochs, chosen on training documents as in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.model_selection import ParameterGrid

from docsigma.cli._tune import divide
from docsigma_paper.reproduce._dots import Dots, draw_dots
from docsigma_paper.reproduce._job import TaskName
from docsigma_paper.reproduce._setting import Experiment
from docsigma_paper.reproduce._tables import markdown
from docsigma_paper.reproduce._ulmfit import (
    LearnedLanguage,
    fit_and_evaluate,
    language_parameters,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from docsigma_paper.reproduce._record import Plan, Record
    from docsigma_paper.reproduce._setting import Setting


RATES = (0.2, 0.4, 0.6)
HELD_OUT = 0.2


@dataclass(frozen=True)
class Search:
    """Where rates are chosen.

    Attributes
    ----------
    name : TaskName
        The documents.
    epochs : tuple of int
        Of the classifier, to choose from.
    lm_dropout, classifier_dropout : tuple of float
        Rates to choose from.
    """

    name: TaskName
    epochs: tuple[int, ...]
    lm_dropout: tuple[float, ...] = RATES
    classifier_dropout: tuple[float, ...] = RATES


# Whole sides take several times as long as windows: only the language model that was
# best there, and one number of epochs.
SEARCHES = {
    "20newsgroups": Search(TaskName("20newsgroups"), (12,)),
    "switchboard": Search(TaskName("switchboard", (201, 400)), (6, 12, 30)),
    "switchboard-whole": Search(TaskName("switchboard"), (20,), (0.4,), (0.4, 0.6)),
}


def compute(setting: Setting, record: Record | Plan) -> None:
    """Train a language model per rate, and on top of each the classifiers."""
    for label, search in SEARCHES.items():
        for rate in _few(setting, search.lm_dropout):
            if not setting.wants(_system(label, rate)):
                continue

            def run(search: Search = search, rate: float = rate) -> dict[str, Any]:
                return {"tried": _try(setting, search, rate)}

            seed = setting.seeds[0]
            parameters = language_parameters(setting, search.name.corpus) | {
                "classifier_dropout": list(_few(setting, search.classifier_dropout)),
                "classifier_epochs": list(_epochs(setting, search)),
                "held_out": HELD_OUT,
            }
            record.row(
                {**search.name.key, "lm_dropout": rate, "seed": seed}, parameters, run
            )


def _few(setting: Setting, rates: tuple[float, ...]) -> tuple[float, ...]:
    return setting.pick(rates, rates[:2])


def _epochs(setting: Setting, search: Search) -> tuple[int, ...]:
    return setting.pick(search.epochs, (1, 2))


def _system(label: str, rate: float) -> str:
    return f"{label}-{rate:g}"


def _try(setting: Setting, search: Search, lm_dropout: float) -> list[dict[str, Any]]:
    """Evaluate every classifier of one language model on the latest fifth."""
    task = setting.task(search.name.corpus, **search.name.options)
    whole = setting.task(search.name.corpus)
    texts, labels = task.train_texts, task.train_labels
    assert texts is not None
    assert whole.train_texts is not None
    seen, unseen = divide(len(texts), labels, HELD_OUT, "latest", 0)
    learned = LearnedLanguage(
        [whole.train_texts[row] for row in seen],
        {
            **language_parameters(setting, search.name.corpus),
            "lm_dropout": lm_dropout,
            "device": setting.device,
            "random_state": setting.seeds[0],
        },
    )
    parts: list[list[str]] = []
    for part in (seen, unseen):
        parts += [texts[row] for row in part], [labels[row] for row in part]
    tried = []
    grid = {
        "classifier_epochs": _epochs(setting, search),
        "classifier_dropout": _few(setting, search.classifier_dropout),
    }
    for chosen in ParameterGrid(grid):
        scores = fit_and_evaluate(learned.classifier(**chosen), *parts)
        tried.append({**chosen, **scores})
    return tried


def table(rows: list[dict[str, Any]]) -> str:
    """Return accuracy and cross-entropy on the part held out, one table per task."""
    tables = []
    for title in dict.fromkeys(_title(row) for row in rows):
        mine = [row for row in rows if _title(row) == title]
        rates = list(dict.fromkeys(x["classifier_dropout"] for x in mine[0]["tried"]))
        heading = [">language model", ">epochs", *(f">classifier {r:g}" for r in rates)]
        lines = []
        for row in mine:
            by_epochs: dict[int, list[str]] = {}
            for one in row["tried"]:
                shown = f"{one['accuracy']:.1f} / {one['cross_entropy']:.3f}"
                by_epochs.setdefault(one["classifier_epochs"], []).append(shown)
            rate = f"{row['key']['lm_dropout']:g}"
            lines += [[rate, str(n), *cells] for n, cells in by_epochs.items()]
        tables.append(f"**{title}**\n\n" + markdown(heading, lines))
    explained = (
        "Accuracy, per cent, and cross-entropy on the latest fifth of the training "
        "documents, by the drop-out of language model and classifier and the "
        "classifier's epochs."
    )
    return "\n\n".join([explained, *tables])


def _title(row: dict[str, Any]) -> str:
    return TaskName.of(row["key"]).title


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Draw the cross-entropy held out, one dot per classifier's rate."""
    panels: dict[str, list[Dots]] = {}
    for row in rows:
        kinds = panels.setdefault(f"{_title(row)}: cross-entropy (nats)", [])
        for one in row["tried"]:
            label = f"classifier's drop-out {one['classifier_dropout']:g}"
            dots = next((kind for kind in kinds if kind.label == label), None)
            if dots is None:
                dots = Dots(label)
                kinds.append(dots)
            rate, epochs = row["key"]["lm_dropout"], one["classifier_epochs"]
            line = f"language model's {rate:g}, {epochs} epochs"
            dots.add(line, [one["cross_entropy"]])
    return draw_dots(panels)


EXPERIMENT = Experiment(
    "ulmfit-dropout",
    "ULMFiT's drop-out rates, chosen on training documents",
    "Section VI-D",
    compute,
    table,
    figure,
    systems=tuple(
        _system(label, rate)
        for label, search in SEARCHES.items()
        for rate in search.lm_dropout
    ),
)
