"""Results of the experiments, as their last full runs wrote them.

``{{ result NAME }}`` in a page becomes the table ``results/NAME.md``, the command that
made it, and the picture ``results/NAME.png`` if there is one. What was not run is told.
``{{ tuning }}`` becomes a table of the searches ``results/tune-*.json``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from table_parts import table as lay_out

from docsigma_paper.reproduce._job import TaskName

RESULTS = Path(__file__).parents[2] / "results"
_TUNING = "{{ tuning }}"
_MARK = re.compile(r"^\{\{ result ([\w-]+) \}\}$", re.MULTILINE)


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pictures to the site."""
    for picture in sorted(RESULTS.glob("*.png")):
        files.append(
            File.generated(config, f"results/{picture.name}", abs_src_path=str(picture))
        )
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of a page."""
    if _TUNING in markdown:
        markdown = markdown.replace(_TUNING, tuning())
    return _MARK.sub(lambda match: render(match[1]), markdown)


def tuning() -> str:
    """Give what each kept search found as a Markdown table."""
    rows = []
    for path in sorted(RESULTS.glob("tune-*.json")):
        found = json.loads(path.read_text("utf-8"))
        chosen, space = found["parameters"], found["space"]
        counts = {"none": "plain", "log-idf": "weighted"}[chosen["weights"]]
        sizes = ", ".join(map(str, space["n_components"]))
        cells = [
            TaskName.of(found).title,
            counts,
            found["objective"],
            str(len(found["trials"])),
            f"{found['value']:.3f}",
        ]
        cells.append(f"{chosen['n_components']} of {sizes}")
        for name in ("l1", "prior_precision"):
            low, high = space[name]
            cells.append(f"{chosen[name]:.3g} of {low:g} to {high:g}")
        rows.append("|".join(cells))
    head = "corpus|counts|objective|>trials|>held out|>K|>l1|>precision"
    return lay_out(head, rows)


def render(name: str) -> str:
    """Give one experiment's table and picture as Markdown."""
    command = f"docsigma reproduce {name}"
    table = RESULTS / f"{name}.md"
    if not table.exists():
        return f"```bash\n{command}\n```\n\nNot run at full size yet.\n"
    report = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    rows = report["rows"]
    machines = ", ".join(sorted({row["machine"] for row in rows}))
    minutes = sum(row["seconds"] for row in rows) / 60
    took = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
    seeds = len(report["seeds"])
    made = f"Machine: {machines}; {took} for {len(rows)} rows."
    spread = "Means over seeds ± half their range; a figure without ± is of one run."
    parts = [
        f"```bash\n{command} --seeds {seeds}\n```",
        table.read_text("utf-8").strip(),
        f"{made} {spread}",
    ]
    if (RESULTS / f"{name}.png").exists():
        parts.insert(2, f"![{name}](results/{name}.png)")
    return "\n\n".join(parts) + "\n"
