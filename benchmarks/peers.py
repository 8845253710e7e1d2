r"""docsigma and its peers on the same counts, in one go.

    python benchmarks/peers.py --corpus 20newsgroups --components 100 \
        --json benchmarks/results/peers.json

Each system runs in a process of its own, one after another, with the same number of
threads: seconds to fit, documents per second to embed, peak memory, and how well
logistic regression does on the embeddings. Both parts are embedded as new documents
are, except for `pv-dbow-own`, whose classifier learns from the vectors that training
left, as gensim's users do. The ratios are to docsigma's fast solver.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from peers_machine import OtherWork, describe_run, thread_environment
from peers_systems import SYSTEMS, Settings

REFERENCE = "fast"


def run_step(step: str, folder: Path, task: dict[str, Any], threads: int) -> Any:
    """Take a step in a new process and give its result."""
    (folder / "task.json").write_text(json.dumps(task), "utf-8")
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, __file__, "--worker", step, str(folder)],
        env=thread_environment(threads),
        check=False,
    )
    if not result.exists():
        reason = f"the process ended with status {done.returncode}"
        return {"status": "failed", "reason": reason}
    return json.loads(result.read_text("utf-8"))


def measure(name: str, folder: Path, settings: Settings) -> dict[str, Any]:
    """Measure one system and judge what it gave."""
    task = {"system": name, "settings": dataclasses.asdict(settings)}
    embeddings = folder / "embeddings.npz"
    embeddings.unlink(missing_ok=True)
    others = OtherWork()
    row: dict[str, Any] = {"system": name}
    row |= run_step("measure", folder, task, settings.threads)
    row["others_busy_cores"] = others.busy_cores()
    if embeddings.exists():
        judged = run_step("judge", folder, task, settings.threads)
        if judged.pop("status") == "failed":
            judged = {"not_judged": judged["reason"]}
        row |= judged
    return row


def add_ratios(rows: list[dict[str, Any]]) -> None:
    """Relate each measured row to docsigma's fast solver, if that was measured."""
    measured = {row["system"]: row for row in rows if row["status"] == "measured"}
    reference = measured.get(REFERENCE)
    if reference is None:
        return
    names = {
        "fit": "fit_seconds",
        "embed": "embed_documents_per_second",
        "memory": "peak_gib",
    }
    for row in measured.values():
        row["ratios"] = {
            short: row[name] / reference[name]
            for short, name in names.items()
            if name in row
        }


def paper_bound(path: Path, components: int) -> dict[str, Any]:
    """Read the paper solver's perplexity from what `perplexity.py` wrote."""
    report = json.loads(path.read_text("utf-8"))
    if report.get("n_components", components) != components:
        raise SystemExit(
            f"{path} is of {report['n_components']} components, not of {components}"
        )
    found = report.get("estimators", {}).get("monte_carlo", report)
    passes = report.get("n_iter")
    after = f" after {passes} iterations" if passes else ""
    return {
        "corpus": found["corpus"],
        "per_document": found["per_document"],
        "note": f"bound, from {path.name}{after}",
    }


COLUMNS = {
    "fit s": (("fit_seconds",), ".1f"),
    "x fast": (("ratios", "fit"), ".2f"),
    "docs/s": (("embed_documents_per_second",), ".1f"),
    "x  fast": (("ratios", "embed"), ".2f"),
    "peak GiB": (("peak_gib",), ".2f"),
    "x   fast": (("ratios", "memory"), ".2f"),
    "work GiB": (("work_gib",), ".2f"),
    "perplexity": (("perplexity", "corpus"), ".1f"),
    "per doc.": (("perplexity", "per_document"), ".1f"),
    "LR %": (("accuracy",), ".2f"),
    "LR nats": (("cross_entropy",), ".3f"),
    "others": (("others_busy_cores",), ".2f"),
}


def table(rows: list[dict[str, Any]]) -> str:
    """Lay the rows out for a terminal."""
    lines = [f"{'':13s}" + "".join(f"{name:>11s}" for name in COLUMNS)]
    for row in rows:
        if row["status"] != "measured":
            lines.append(f"{row['system']:13s} {row['status']}: {row['reason']}")
            continue
        cells = [_cell(row, path, form) for path, form in COLUMNS.values()]
        lines.append(f"{row['system']:13s}" + "".join(f"{cell:>11s}" for cell in cells))
    notes = [
        f"{row['system']}: {row[key]}"
        for row in rows
        for key in ("note", "not_judged")
        if key in row
    ]
    notes += [
        f"{row['system']}: perplexity is a {row['perplexity']['note']}"
        for row in rows
        if row.get("perplexity")
    ]
    notes.append("others: cores that other work kept busy; times mean nothing if high")
    return "\n".join(lines + notes)


def _cell(row: dict[str, Any], path: tuple[str, ...], form: str) -> str:
    value: Any = row
    for key in path:
        value = (value or {}).get(key)
    return "-" if value is None else format(value, form)


def write(path: Path | None, report: dict[str, Any]) -> None:
    """Write the report; done after each system, so that a stop loses only one."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    temporary.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--corpus", default="20newsgroups")
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument(
        "--limit", type=int, help="documents of each part, drawn with a fixed seed"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--paper-passes", type=int, default=3, help="passes of the paper to time"
    )
    parser.add_argument(
        "--paper-bound", type=Path, help="JSON of perplexity.py for the paper's row"
    )
    parser.add_argument("--ctm-iterations", type=int, default=300)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        from peers_worker import work

        work(chosen.worker[0], Path(chosen.worker[1]))
        return
    settings = Settings(
        chosen.components,
        chosen.threads,
        chosen.paper_passes,
        chosen.ctm_iterations,
    )
    bound = chosen.paper_bound and paper_bound(chosen.paper_bound, chosen.components)
    report = describe_run(chosen.threads) | {"n_components": chosen.components}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task = {"corpus": chosen.corpus, "limit": chosen.limit}
        report["corpus"] = run_step("prepare", folder, task, chosen.threads)
        if report["corpus"]["status"] != "measured":
            raise SystemExit(f"no counts: {report['corpus']['reason']}")
        for system in chosen.systems:
            print(f"{system} ...", file=sys.stderr, flush=True)
            row = measure(system, folder, settings)
            if system == "paper" and bound:
                row["perplexity"] = bound
            rows.append(row)
            add_ratios(rows)
            write(chosen.json, report | {"systems": rows})
    print(table(rows))
    if any(row["status"] == "failed" or "not_judged" in row for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
