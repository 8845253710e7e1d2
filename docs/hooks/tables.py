"""Tables of the benchmarks, from the files their last runs wrote.

``{{ table perplexity }}`` in a page becomes a table of every file
``benchmarks/results/perplexity*.json``; so for each name in `TABLES`. A file that is
not there is told as not run. ``{{ figure speed-peers: words }}`` becomes the picture
``docs/images/speed-peers.png`` with `words` for those who do not see it, or nothing
while it is not drawn.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speed_tables import SPEED_TABLES
from table_parts import Reports, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
IMAGES = ROOT / "docs" / "images"
_MARK = re.compile(r"^\{\{ table (\w+) \}\}$", re.MULTILINE)
_FIGURE = re.compile(r"^\{\{ figure ([\w-]+): (.+) \}\}$", re.MULTILINE)

# The paper's table of perplexities, corpus and per document.
PRINTED = {
    ("20newsgroups-2k", 50): (629, 639),
    ("20newsgroups-2k", 200): (519, 515),
    ("20newsgroups", 50): (1043, 1064),
    ("20newsgroups", 200): (882, 851),
}
ESTIMATORS = {
    "monte_carlo": "`monte_carlo`, a bound",
    "jensen": "`jensen`, a bound",
    "importance": "`importance`, a bound in expectation",
    "authors": "`authors`, **no bound**",
}

REFERENCES = {
    "uni-gram of the training corpus": "unigram",
    "each document's own frequencies": "maximum_likelihood",
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of a page."""
    markdown = _FIGURE.sub(lambda match: _figure(match[1], match[2]), markdown)
    return _MARK.sub(lambda match: render(match[1]), markdown)


def _figure(name: str, words: str) -> str:
    drawn = (IMAGES / f"{name}.png").exists()
    return f"![{words}](images/{name}.png)" if drawn else ""


def render(name: str) -> str:
    """Give the table `name` as Markdown."""
    files = sorted(RESULTS.glob(f"{name}*.json"))
    if not files:
        return f"*Not run here yet: there is no `benchmarks/results/{name}*.json`.*"
    reports = [(file, json.loads(file.read_text("utf-8"))) for file in files]
    return TABLES[name](reports)


def _perplexity(reports: Reports) -> str:
    def size(item: tuple[Path, Any]) -> tuple[int, int]:
        return item[1]["n_features"], item[1]["n_components"]

    parts = []
    for file, report in sorted(reports, key=size):
        rows = []
        for name, label in ESTIMATORS.items():
            if name not in report["estimators"]:
                continue
            value = report["estimators"][name]
            draws = f"{value['n_draws']}" if value["n_draws"] else "none"
            error = value["standard_error"]
            rows.append(
                f"{label}|{draws}|{value['corpus']:.1f} ± {error:.1f}|"
                f"{value['per_document']:.1f}"
            )
        printed = PRINTED.get((report["corpus"], report["n_components"]))
        if printed is not None:
            rows.append(f"printed in the paper|32|{printed[0]}|{printed[1]}")
        unigram, own = report["unigram"], report["maximum_likelihood"]
        rows.append(
            f"uni-gram of the training corpus||{unigram[0]:.1f}|{unigram[1]:.1f}"
        )
        rows.append(f"each document's own frequencies||{own[0]:.1f}|{own[1]:.1f}")
        title = (
            f"**{report['corpus']}**, {report['n_features']} words, "
            f"K {report['n_components']}, `l1` {report['l1']:g}, "
            f"{report['n_iter']} passes; "
            f"{100 * report['sparsity']:.0f} % of the loadings are zero."
            f"{_times(report)}"
        )
        figures = table("evidence by|>draws|>corpus|>per document", rows)
        command = f"```bash\n{_perplexity_command(file, report)}\n```"
        parts += [title, figures, command]
    return "\n\n".join(parts)


def _times(report: dict[str, Any]) -> str:
    """Tell the times, if the report says on what they were taken."""
    if "device" not in report:
        return ""
    return (
        f" Training took {report['fit_seconds']:.0f} s and inference of the test "
        f"documents {report['posterior_seconds']:.1f} s on {report['device']}."
    )


def _perplexity_command(file: Path, report: dict[str, Any]) -> str:
    """Give the command that writes `file` again: what is not a default, named."""
    importance = report["estimators"].get("importance", {}).get("n_draws", 2000)
    settings = {
        "--corpus": (report["corpus"], "20newsgroups-2k"),
        "--components": (report["n_components"], 50),
        "--l1": (f"{report['l1']:g}", "1"),
        "--max-iter": (report["n_iter"], 1000),
        "--importance-draws": (importance, 2000),
    }
    words = ["python benchmarks/perplexity.py"]
    words += [
        f"{flag} {now}" for flag, (now, usual) in settings.items() if now != usual
    ]
    words.append(f"--json {file.relative_to(ROOT)}")
    return wrapped(" ".join(words))


def _memory(reports: Reports) -> str:
    rows = [
        f"{row['n_documents']}|{row['n_features']}|{row['n_components']}|"
        f"{row['peak_gib']:.2f}|{row['resident_before_gib']:.2f}|"
        f"{row['counted_floor_gib']:.2f}|{row['n_by_v_gib']:.2f}"
        for _, report in reports
        for row in report
    ]
    head = (
        ">documents|>words|>K|>peak, GiB|>before the fit, GiB|"
        ">counted floor of the fit, GiB|>n x V would be, GiB"
    )
    return table(head, rows)


def _primitive(reports: Reports) -> str:
    rows = [
        f"{row['pass']}|{row['n']}|{row['V']}|{row['K']}|"
        f"{row['gflops']:.0f}|{row['peak_gflops']:.0f}|{row['part_of_peak']:.2f}|"
        f"{row['bare_part_of_peak']:.2f}"
        for _, report in reports
        for row in report
    ]
    head = "pass|>n|>V|>K|>GFLOP/s|>peak, GFLOP/s|>part of the peak|>its products alone"
    return table(head, rows)


def _glcu(reports: Reports) -> str:
    rows = [
        f"{run['n_documents']}|{run['n_components']}|{run['passes']}|"
        f"{run['seconds_per_pass']:.2f}|{run['ratio_pass']:.1f}|"
        f"{run['predict_documents_per_second']:.0f}|{run['ratio_predict']:.1f}|"
        f"{run['peak_gib']:.2f}"
        for _, report in reports
        for run in report["runs"]
    ]
    head = (
        ">documents|>K|>passes|>seconds a pass|>times the floor|"
        ">predicted documents a second|>times the floor|>peak, GiB"
    )
    return table(head, rows)


def _cut(reports: Reports) -> str:
    parts = []
    for _, report in reports:
        lengths = sorted({row["n_words"] for row in report["cuts"]})
        at = {(row["n_words"], row["kind"]): row for row in report["cuts"]}
        rows = [
            "|".join(
                [str(n)]
                + [f"{at[n, k]['accuracy']:.1f}" for k in ("glc", "glcu", "lr")]
                + [f"{at[n, k]['cross_entropy']:.2f}" for k in ("glc", "glcu", "lr")]
            )
            for n in lengths
        ]
        head = ">words|>GLC, %|>GLCU, %|>LR, %|>GLC, nats|>GLCU, nats|>LR, nats"
        documents = report["cuts"][0]["n_documents"]
        parts.append(
            f"`{report['corpus']}`, {documents} test documents, K "
            f"{report['n_components']}, l1 {report['l1']:g}, words from "
            f"{report['start'] + 1} on:\n\n{table(head, rows)}"
        )
    return "\n\n".join(parts)


NAMES = {"glc": "GLC", "glcu": "GLCU", "lr": "LR"}


def _topic(reports: Reports) -> str:
    rows = []
    for _, report in reports:
        chosen = report["chosen"]
        where = f"`{report['corpus']}`"
        if report["words"]:
            where += f", words {report['words'][0]} to {report['words'][1]}"
        setting = f"K {chosen['n_components']}, l1 {chosen['l1']:g}"
        scores = {NAMES[kind]: row for kind, row in chosen["test"].items()}
        if "tfidf_lr" in report:
            scores["TF-IDF + LR"] = report["tfidf_lr"]
        rows += [
            f"{where}|{setting if name != 'TF-IDF + LR' else ''}|{name}|"
            f"{row['accuracy']:.2f}|{row['cross_entropy']:.3f}|{row['brier']:.3f}|"
            f"{row['ece']:.3f}"
            for name, row in scores.items()
        ]
    head = "corpus|model|classifier|>accuracy, %|>cross-entropy, nats|>Brier|>ECE"
    return table(head, rows)


TABLES: dict[str, Callable[[Reports], str]] = {
    **SPEED_TABLES,
    "perplexity": _perplexity,
    "memory": _memory,
    "primitive": _primitive,
    "glcu": _glcu,
    "cut": _cut,
    "topic": _topic,
}
