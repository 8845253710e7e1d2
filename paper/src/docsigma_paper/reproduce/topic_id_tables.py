"""Topic ID with every system of the paper, on 20 Newsgroups and on speech."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docsigma.corpora import available_corpora
from docsigma_paper.reproduce import baselines
from docsigma_paper.reproduce._dots import Dots, draw_dots
from docsigma_paper.reproduce._job import Job, TaskName
from docsigma_paper.reproduce._setting import Experiment
from docsigma_paper.reproduce._systems import SYSTEMS, System
from docsigma_paper.reproduce._tables import markdown, over_seeds, spread
from docsigma_paper.reproduce.paper_values import CITED, FISHER, NEWSGROUPS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from docsigma_paper.reproduce._record import Plan, Record
    from docsigma_paper.reproduce._setting import Setting

__all__ = ["NEWSGROUPS_EXPERIMENT", "SPEECH_EXPERIMENT"]

WINDOWS: tuple[tuple[int, int] | None, ...] = (None, (201, 300), (201, 400))
# Fisher is licensed: its rows are made where it is at hand.
TRANSCRIPTS = {
    "switchboard": "manual",
    "switchboard-asr": "automatic",
    "fisher": "manual",
    "fisher-asr": "automatic",
}


def _fill(setting: Setting, record: Record | Plan, name: TaskName) -> None:
    task = setting.task(name.corpus, **name.options)
    for called, system in SYSTEMS.items():
        corpora = system.corpora or (name.corpus,)
        if not setting.wants(called) or name.corpus not in corpora:
            continue
        if setting.quick and system.needs and not baselines.installed(system.needs):
            continue
        for seed in setting.seeds if system.seeded else setting.seeds[:1]:
            parameters = system.parameters(setting, name)
            job = Job(setting, task, name, seed, parameters)

            def run(system: System = system, job: Job = job) -> dict[str, Any]:
                return {"scores": system.run(job)}

            key = {**name.key, "system": called, "seed": seed}
            record.row(key, parameters, run, system.needs)


def compute_newsgroups(setting: Setting, record: Record | Plan) -> None:
    """Run every system."""
    _fill(setting, record, TaskName("20newsgroups"))


def compute_speech(setting: Setting, record: Record | Plan) -> None:
    """Run every system on whole sides and on windows of 100 and 200 words."""
    at_hand = {info.name for info in available_corpora() if info.available}
    for corpus in TRANSCRIPTS:
        licensed = corpus.startswith("fisher")
        if licensed and (setting.quick or corpus not in at_hand):
            continue
        for window in setting.pick(WINDOWS, WINDOWS[:1]):
            _fill(setting, record, TaskName(corpus, window))


def _scores(rows: list[dict[str, Any]], printed: Any) -> list[list[str]]:
    lines = []
    for name, kind, seen, size in _runs(rows):
        system = SYSTEMS[name]
        theirs = printed(system.model, _printed_name(kind))
        note = seen[0].get("note", "ours" if system.extension else "")
        lines.append(
            [
                system.model,
                size,
                kind,
                "-" if theirs is None else f"{theirs[0]:.2f} / {theirs[1]:.2f}",
                spread([score["accuracy"] for score in seen], 2),
                spread([score["cross_entropy"] for score in seen], 3),
                spread([score["ece"] for score in seen], 3),
                note,
            ]
        )
    return lines


def _printed_name(kind: str) -> str:
    """Return the paper's classifier, of which ours may be a variant."""
    return kind.split(",")[0]


HEADING = [
    "model",
    ">K",
    "classifier",
    ">printed",
    ">accuracy, %",
    ">cross-entropy",
    ">calibration error",
    "",
]


def _cited(corpus: str) -> list[list[str]]:
    return [
        [model, "-", kind, f"{accuracy:.2f} / -", "-", "-", "-", "cited by the paper"]
        for where, model, kind, accuracy in CITED
        if where == corpus
    ]


def table_newsgroups(rows: list[dict[str, Any]]) -> str:
    """Return the paper's Table 4 with ours beside it."""
    lines = _scores(rows, lambda model, kind: NEWSGROUPS.get((model, kind)))
    return markdown(HEADING, [*_cited("20newsgroups"), *lines])


def table_speech(rows: list[dict[str, Any]]) -> str:
    """Return one table per corpus and window; the printed figures are Fisher's."""
    parts = []
    groups: dict[TaskName, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(TaskName.of(row["key"]), []).append(row)
    for task, some in groups.items():
        transcripts = TRANSCRIPTS[task.corpus]

        def printed(model: str, kind: str, transcripts: str = transcripts) -> Any:
            return FISHER.get((transcripts, model, kind))

        whole = task.words is None
        lines = _scores(some, printed if whole else lambda *_: None)
        cited = _cited("fisher") if whole and transcripts == "manual" else []
        found = markdown(HEADING, [*cited, *lines])
        parts.append(f"**{task.title}**\n\n{found}")
    return (
        "The printed figures are of Fisher, which is licensed; Switchboard stands in "
        "for it.\n\n" + "\n\n".join(parts)
    )


def _line(system: str, kind: str) -> str:
    return f"{SYSTEMS[system].model}, {kind}"


def _runs(
    rows: list[dict[str, Any]],
) -> list[tuple[str, str, list[dict[str, Any]], str]]:
    """Return system, classifier, scores over seeds and K, in the order of the table."""
    order = list(SYSTEMS)
    rows = sorted(rows, key=lambda row: order.index(row["key"]["system"]))
    found = []
    for key, runs in over_seeds(rows).items():
        name = dict(key)["system"]
        for kind in runs[0]["scores"]:
            scores = [run["scores"][kind] for run in runs]
            found.append((name, kind, scores, _size(runs[0]["parameters"], kind)))
    return found


def _size(parameters: dict[str, Any], kind: str) -> str:
    """Return K; where models were chosen for classifiers, GLC has that of GLCU."""
    chosen = parameters.get("lr" if kind == "LR" else "glcu", parameters)
    return str(chosen.get("n_components", "-"))


def figure_newsgroups(rows: list[dict[str, Any]]) -> Figure:
    """Draw accuracies and cross-entropies, ours and the printed ones."""
    panels = {}
    names = {"accuracy": "accuracy (%)", "cross_entropy": "cross-entropy (nats)"}
    for number, (score, named) in enumerate(names.items()):
        ours, printed = Dots("ours"), Dots("printed", hollow=True)
        for system, kind, seen, _ in _runs(rows):
            ours.add(_line(system, kind), [run[score] for run in seen])
            theirs = NEWSGROUPS.get((SYSTEMS[system].model, _printed_name(kind)))
            if theirs is not None:
                printed.add(_line(system, kind), [theirs[number]])
        panels[named] = [ours, printed]
    return draw_dots(panels)


def figure_speech(rows: list[dict[str, Any]]) -> Figure:
    """Draw accuracies on whole sides and windows, one panel per corpus."""
    panels: dict[str, list[Dots]] = {}
    for row in rows:
        panels.setdefault(f"{row['key']['corpus']}: accuracy (%)", [])
    for named, kinds in panels.items():
        corpus = named.split(":")[0]
        for window in WINDOWS:
            task = TaskName(corpus, window)
            some = [row for row in rows if TaskName.of(row["key"]) == task]
            dots = Dots(task.part)
            for system, kind, seen, _ in _runs(some):
                dots.add(_line(system, kind), [run["accuracy"] for run in seen])
            kinds.append(dots)
    return draw_dots(panels)


NEWSGROUPS_EXPERIMENT = Experiment(
    "topic-id-20newsgroups",
    "Topic ID on 20 Newsgroups, every system",
    "Table 4",
    compute_newsgroups,
    table_newsgroups,
    figure_newsgroups,
    systems=tuple(SYSTEMS),
)
SPEECH_EXPERIMENT = Experiment(
    "topic-id-speech",
    "Topic ID on telephone speech, every system",
    "Table 3",
    compute_speech,
    table_speech,
    figure_speech,
    systems=tuple(SYSTEMS),
)
