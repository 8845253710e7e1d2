r"""Everything at once, on corpora that nobody has looked at.

    make sealed FOLDER=path
    python benchmarks/sealed.py path --out results-of-path

Each folder NAME in `path` has `train.jsonl.xz` and `test.jsonl.xz`, with `text` and
`label` in every line; `out-of-scope-test.jsonl.xz`, if it is there, has unknown texts.
The benchmarks of the six corpora run on them as they are, with default settings: the
default classifier and the baselines with all and with few labels, sets, risk, unknown
texts and triage, search with and without labels, and the ratios of variances. A step
that is done is not run again, so that a run that was stopped goes on; each takes at
most an hour. The table is written to `table.md` beside the result files. Commit the
settings and the expected figures before the run: afterwards nobody can.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _versions import changed_commit

HERE = Path(__file__).parent
FILES = ("train.jsonl.xz", "test.jsonl.xz")


def corpora_in(folder: Path) -> list[str]:
    """Return the names of the corpora of a folder, in alphabetical order."""
    if not folder.is_dir():
        raise SystemExit(f"{folder} is no folder")
    names = sorted(p.name for p in folder.iterdir() if (p / FILES[0]).exists())
    for name in names:
        if not (folder / name / FILES[1]).exists():
            raise SystemExit(f"{folder / name} has {FILES[0]}, but no {FILES[1]}")
    if not names:
        raise SystemExit(f"{folder} has no folder with {FILES[0]} and {FILES[1]}")
    return names


def steps(names: list[str], out: Path, draws: int) -> Iterator[tuple[str, list[str]]]:
    """Return name and command of each step, the smallest part of what can be kept."""
    quality, kept = "quality.py", ["--embedders", str(out / "embedders")]
    losses = ["--out", str(out), "--losses", str(out / "losses")]
    losses += ["--cache", str(out / "ours")]
    for name in names:
        few = ["few", name, "--draws", str(draws)]
        yield f"{name}, all labels", [quality, "whole", name, *kept, *losses]
        yield f"{name}, few labels", [quality, *few, *kept, *losses]
        yield (
            f"{name}, baselines, all labels",
            [quality, "baselines", "whole", name, *losses],
        )
        yield f"{name}, baselines, few labels", [quality, "baselines", *few, *losses]
        to = ["--out", str(out / "promises.json")]
        yield f"{name}, promises", ["promises.py", name, *to, "--others", *names]
        for work in ("", "labels"):
            file = f"search-{work or 'words'}-{name}.json"
            options = [f"--{work}"] if work else []
            to = ["--out", str(out / file), *kept]
            yield f"{name}, search {work}".strip(), ["search.py", name, *options, *to]
        to = ["--json", str(out / f"martingale-{name}.json")]
        yield f"{name}, variances", ["martingale.py", name, "--only", "ratios", *to]
    yield "comparison", [quality, "compare", *losses]


def run(folder: Path, out: Path, draws: int) -> None:
    """Run the steps that are not done, one after the other."""
    names = corpora_in(folder)
    done = out / "done.json"
    found = json.loads(done.read_text()) if done.exists() else {}
    own = os.environ | {"DOCSIGMA_DATA": str(folder.resolve())}
    for step, command in steps(names, out, draws):
        if step in found:
            continue
        print(step, flush=True)
        arguments = [sys.executable, str(HERE / command[0]), *command[1:]]
        subprocess.run(arguments, env=own, check=True)
        found[step] = changed_commit(HERE.parent)
        temporary = done.with_suffix(".part")
        temporary.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        temporary.replace(done)
    table = "\n".join(rows(names, out)) + "\n"
    (out / "table.md").write_text(table, "utf-8")
    print(table)


def rows(names: list[str], out: Path) -> Iterator[str]:
    """Return the lines of the table: one per corpus and measure."""
    yield "| corpus | measure | docsigma | best other | other |"
    yield "| --- | --- | --- | --- | --- |"
    compared = _read(out / "quality-compare.json")["rows"]
    promises = _read(out / "promises.json")["rows"]
    seconds = _read(out / "quality-whole.json")["rows"]
    for name in names:
        for row in compared:
            if row["corpus"] != name:
                continue
            size = f"{row['words']} words" if row["words"] else "whole"
            labels = row["part"].replace("whole", "all").replace("few-", "")
            for measure in ("cross_entropy", "accuracy"):
                cell, digits = row[measure], 3 if measure == "cross_entropy" else 1
                what = f"{measure.replace('_', ' ')}, {labels} labels, {size}"
                yield _row(
                    *(name, what, cell["ours"], cell["theirs"]),
                    f"{cell['baseline']}, {cell['errors_worse']:+.1f} errors worse",
                    digits,
                )
        kept = promises[name]["calibrated on training texts"]
        for measure in ("coverage", "risk", "called_unknown"):
            yield _row(name, measure.replace("_", " "), kept[measure], None, "", 3)
        for part, what in (
            ("area", "area, unknown texts"),
            ("wrong_in_first_100", "wrong in first 100"),
        ):
            cells = promises[name][part]
            other = max((k for k in cells if "TF-IDF" in k), key=cells.__getitem__)
            ours = cells["p-value" if part == "area" else "triage"]
            yield _row(name, what, ours, cells[other], other, 3)
        for work in ("words", "labels"):
            file = _read(out / f"search-{work}-{name}.json")["corpora"][name]
            for part, cells in file.items():
                if isinstance(cells, dict) and "map" in cells:
                    yield from _search_rows(name, f"search, {part}", cells)
        variances = _read(out / f"martingale-{name}.json")["ratios"]["corpora"][name]
        for part in variances["parts"]:
            what = f"variances, {part['kind']}, {part['size']} words"
            yield _row(name, what, part["ratio"], 1.0, "exact posterior", 2)
        fit = [row["fit_seconds"] for key, row in seconds.items() if f"/{name}/" in key]
        yield _row(name, "CPU seconds of a fit", sum(fit) / len(fit), None, "", 1)


def _search_rows(name: str, part: str, found: dict[str, Any]) -> Iterator[str]:
    for measure, cell in found.items():
        others = {
            k: v
            for k, v in cell.items()
            if k != "docsigma" and not k.startswith("errors")
        }
        best = max(others, key=others.__getitem__)
        kind = "mean average precision" if measure == "map" else "first hit"
        what = f"{part.replace('_', ' ')}, {kind}"
        yield _row(name, what, cell["docsigma"], others[best], best, 3)


def _row(
    name: str, what: str, ours: float, best: float | None, other: str, digits: int
) -> str:
    theirs = "" if best is None else f"{best:.{digits}f}"
    return f"| {name} | {what} | {ours:.{digits}f} | {theirs} | {other} |"


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, help="by default FOLDER's name in sealed/")
    parser.add_argument("--draws", type=int, default=10, help="of few labels")
    options = parser.parse_args()
    out = options.out or Path("sealed") / options.folder.resolve().name
    out.mkdir(parents=True, exist_ok=True)
    run(options.folder, out, options.draws)


if __name__ == "__main__":
    main()
