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
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


Reports = list[tuple[Path, Any]]


def _rows(head: str, rows: list[str]) -> str:
    columns = head.split("|")
    rule = "|".join("---:" if c.startswith(">") else "---" for c in columns)
    names = "|".join(column.lstrip(">") for column in columns)
    return "\n".join(f"|{line}|" for line in [names, rule, *rows])


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
        table = _rows("evidence by|>draws|>corpus|>per document", rows)
        command = f"```bash\n{_perplexity_command(file, report)}\n```"
        parts += [title, table, command]
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
    return _wrapped(" ".join(words))


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
    return _rows(head, rows)


def _primitive(reports: Reports) -> str:
    rows = [
        f"{row['pass']}|{row['n']}|{row['V']}|{row['K']}|"
        f"{row['gflops']:.0f}|{row['peak_gflops']:.0f}|{row['part_of_peak']:.2f}|"
        f"{row['bare_part_of_peak']:.2f}"
        for _, report in reports
        for row in report
    ]
    head = "pass|>n|>V|>K|>GFLOP/s|>peak, GFLOP/s|>part of the peak|>its products alone"
    return _rows(head, rows)


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
    return _rows(head, rows)


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
            f"{report['start'] + 1} on:\n\n{_rows(head, rows)}"
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
    return _rows(head, rows)


def _peers(reports: Reports) -> str:
    parts = []
    for _, report in reports:
        measured = [row for row in report["systems"] if row["status"] == "measured"]
        missing = [row for row in report["systems"] if row["status"] != "measured"]
        corpus = report["corpus"]
        parts.append(
            f"`{corpus['name']}`: {corpus['n_train']} documents to train on, "
            f"{corpus['n_test']} to embed, {corpus['n_features']} words, "
            f"K {report['n_components']}."
        )
        parts += [_cells(columns, measured) for columns in (PEER_SPEED, PEER_QUALITY)]
        notes = [(row, note) for row in measured for note in _peer_notes(row)]
        notes += [(row, f"{row['status']}, {row['reason']}") for row in missing]
        parts.append("\n".join(f"- {row['system']}: {note}." for row, note in notes))
        parts.append(_made_by(report))
    return "\n\n".join(part for part in parts if part)


# Heading, where a row has the number, and how it is written.
Columns = dict[str, tuple[str, str]]
PEER_SPEED: Columns = {
    "system": ("system", ""),
    ">fit, s": ("fit_seconds", ".1f"),
    ">x fast": ("ratios.fit", ".2f"),
    ">embed, documents/s": ("embed_documents_per_second", ".0f"),
    "> x fast": ("ratios.embed", ".2f"),
    ">peak, GiB": ("peak_gib", ".2f"),
    ">  x fast": ("ratios.memory", ".2f"),
    ">work, GiB": ("work_gib", ".2f"),
}
PEER_QUALITY: Columns = {
    "system": ("system", ""),
    "settings": ("settings", ""),
    ">perplexity": ("perplexity.corpus", ".0f"),
    ">per document": ("perplexity.per_document", ".0f"),
    ">LR, %": ("accuracy", ".1f"),
    ">LR, nats": ("cross_entropy", ".2f"),
}


def _cells(columns: Columns, rows: list[dict[str, Any]]) -> str:
    def cell(value: Any, where: str, form: str) -> str:
        for key in where.split("."):
            value = (value or {}).get(key)
        return "" if value is None else format(value, form)

    lines = ["|".join(cell(row, *how) for how in columns.values()) for row in rows]
    return _rows("|".join(columns), lines)


def _peer_notes(row: dict[str, Any]) -> list[str]:
    notes = [row["note"]] if "note" in row else []
    bound = row.get("perplexity")
    if bound:
        notes.append(f"perplexity: {bound['note']}")
    busy = row.get("others_busy_cores") or 0.0
    if busy > BUSY:
        notes.append(
            f"other work kept {busy:.1f} cores busy meanwhile: its times are too long"
        )
    return notes


# Cores; the kernel and the machine's own services take less.
BUSY = 0.3


def _made_by(report: dict[str, Any]) -> str:
    """Tell the machine, the versions and the command of a run."""
    machine = report["machine"]
    versions = ", ".join(
        f"{name} {version}" for name, version in report["versions"].items() if version
    )
    return (
        f"Run on {report['date'][:10]}: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gib']:.0f} GiB; {report['threads']} threads. {versions}.\n\n"
        f"```bash\n{_wrapped(report['command'])}\n```"
    )


def _wrapped(command: str) -> str:
    lines = textwrap.wrap(command, 72, break_on_hyphens=False, break_long_words=False)
    return " \\\n    ".join(lines)


SIZES = {
    "n_documents": "documents",
    "n_features": "words",
    "n_components": "components",
    "n_tokens": "tokens a document",
}


def _growth(reports: Reports) -> str:
    parts = []
    for _, report in reports:
        rows = []
        for name, found in report["axes"].items():
            for row in found["rows"]:
                rows.append(
                    f"{SIZES[name]}|{row['size']}|{1000 * row['seconds_a_pass']:.1f}||"
                    f"{row['embed_documents_per_second']:.0f}|"
                )
            rows.append(
                f"**{SIZES[name]}**|**time ~ size^b**||**{found['pass_exponent']:.2f}**"
                f"||**{found['embed_exponent']:.2f}**"
            )
        base = ", ".join(f"{n} {SIZES[name]}" for name, n in report["base"].items())
        title = f'Solver `"{report["solver"]}"` about the base point {base}.'
        head = "size that varies|>size|>a pass, ms|>b|>embed, documents/s|>b"
        parts += [title, _rows(head, rows), _made_by(report)]
        busy = report.get("others_busy_cores") or 0.0
        if busy > BUSY:
            parts.append(f"Other work kept {busy:.1f} cores busy: run it again.")
    return "\n\n".join(parts)


GPU: Columns = {
    "variant": ("variant", ""),
    ">n": ("n", ""),
    ">V": ("V", ""),
    ">K": ("K", ""),
    ">training, ms": ("training.ms", ".2f"),
    ">x floor": ("training.ratio", ".2f"),
    ">inference, ms": ("inference.ms", ".2f"),
    "> x floor": ("inference.ratio", ".2f"),
    ">largest error": ("error", ".0e"),
}


def _gpu(reports: Reports) -> str:
    parts = []
    for _, report in reports:
        rows = [
            row | {"error": max(row["errors"].values())} if row.get("errors") else row
            for row in report["rows"]
        ]
        parts += [f"{report['device']}, torch {report['torch']}.", _cells(GPU, rows)]
    return "\n\n".join(parts)


def _big(reports: Reports) -> str:
    parts = []
    for _, report in reports:
        rows = []
        for step in ("make", "fit", "embed"):
            taken = [(row, row[step]) for row in report["rows"] if step in row]
            rows += [
                f"{step}|{row['n_documents']}|{row['bytes'] / 2**30:.2f}|"
                f"{found['seconds']:.1f}|{found['documents_per_second']:.0f}|"
                f"{found['peak_gib']:.2f}"
                for row, found in taken
            ]
            grown = report["growth"].get(step)
            if grown is not None:
                rows.append(
                    f"**{step}**|||**~ documents^{grown['exponent']:.2f}**||"
                    f"**{grown['peak_bytes_a_document']:+.0f} bytes a document**"
                )
        passes = f"{report['passes']} pass{'' if report['passes'] == 1 else 'es'}"
        parts.append(
            f"{report['n_features']} words, K {report['n_components']}, training of "
            f"{passes}."
        )
        head = "step|>documents|>on disk, GiB|>seconds|>documents/s|>peak, GiB"
        parts += [_rows(head, rows), _made_by(report)]
        steps = [row[step] for row in report["rows"] for step in ("fit", "embed")]
        busy = max((found["others_busy_cores"] or 0.0) for found in steps)
        if busy > BUSY:
            parts.append(f"Other work kept up to {busy:.1f} cores busy: run it again.")
    return "\n\n".join(parts)


def _fit(reports: Reports) -> str:
    parts = []
    for _, report in reports:
        rows = [
            f"{row['n_components']}|{row.get('solver', 'fast')}|"
            f"{row.get('precision', 'tf32')}|{row['n_iter']}|{row['fit_seconds']:.2f}|"
            f"{row['embed_documents_per_second']:.0f}|"
            f"{row['embed_many_documents_per_second']:.0f}|"
            f"{row['perplexity']:.1f} / {row['perplexity_per_document']:.1f}"
            for row in report["rows"]
        ]
        head = (
            ">K|solver|precision|>passes|>fit, s|>embedded, documents/s|"
            ">the same, 16 times as many|>perplexity"
        )
        parts += [f"{report['device']}, torch {report['torch']}.", _rows(head, rows)]
    return "\n\n".join(parts)


def _estep(reports: Reports) -> str:
    rows = [
        f"{row['corpus']}|{row['n_documents']}|{row['K']}|"
        f"{row['lower_at_most_percent']:.2f}|{row['mean_lower_percent']:.3f}|"
        f"{row['sweeps']:.1f}|{row['times_faster']:.0f}"
        for _, report in reports
        for row in report
    ]
    head = (
        "corpus|>documents|>K|>lower at most, %|>lower on average, %|"
        ">sweeps a document|>times as fast"
    )
    return _rows(head, rows)


TABLES: dict[str, Callable[[Reports], str]] = {
    "fit": _fit,
    "estep": _estep,
    "perplexity": _perplexity,
    "memory": _memory,
    "primitive": _primitive,
    "glcu": _glcu,
    "cut": _cut,
    "topic": _topic,
    "peers": _peers,
    "growth": _growth,
    "gpu": _gpu,
    "big": _big,
}
