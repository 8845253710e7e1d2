"""What pages may call between double braces: the module of mkdocs-macros.

``table(name)`` fills the template ``docs/tables/name.jinja`` with the files
``benchmarks/results/name*.json``, ``result(name)`` shows an experiment of ``results/``,
``tuning()`` its searches, ``figure(name, words)`` a picture of ``docs/images`` that may
not be drawn yet, and ``command(name)`` the options of a command.
"""

from __future__ import annotations

import enum
import inspect
import json
import re
import textwrap
import types
import typing
from pathlib import Path
from typing import Any

import jinja2
from mkdocs.structure.files import File, Files

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
BENCHMARKS = ROOT / "benchmarks" / "results"
RESULTS = ROOT / "results"
# Cores that other work may take while a benchmark runs; system services take less.
BUSY = 0.3
# Which of the values of a column is best, by words in its name.
BETTER: dict[str, Any] = {
    "accuracy": max,
    "cross-entropy": min,
    "calibration error": min,
}
# What is written for a value of an option.
KINDS = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH", bool: ""}


def define_env(env: Any) -> None:
    """Register the macros: mkdocs-macros calls this."""
    for macro in (table, result, tuning, figure, command):
        env.macro(macro)


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pictures of the results to the site; MkDocs calls this hook."""
    for picture in sorted(RESULTS.glob("*.png")):
        uri = f"results/{picture.name}"
        files.append(File.generated(config, uri, abs_src_path=str(picture)))
    return files


def table(name: str) -> str:
    """Return the results of a benchmark, or that there are none."""
    files = sorted(BENCHMARKS.glob(f"{name}*.json"))
    if not files:
        missing = f"benchmarks/results/{name}*.json"
        return f"*Not run here yet: there is no `{missing}`.*"
    return _fill(name, reports=[_read(file) for file in files])


def result(name: str) -> str:
    """Return table, command and picture of an experiment."""
    if not (RESULTS / f"{name}.md").exists():
        return _fill("result", name=name)
    table = (RESULTS / f"{name}.md").read_text("utf-8").strip()
    return _fill(
        "result",
        name=name,
        report=_read(RESULTS / f"{name}.json"),
        table=_bold_best(table),
        rows=sum(line.startswith("|") for line in table.splitlines()),
        picture=(RESULTS / f"{name}.png").exists(),
    )


def tuning() -> str:
    """Return a table of the searches for hyper-parameters."""
    searches = [_read(file) for file in sorted(RESULTS.glob("tune-*.json"))]
    return _fill("tuning", searches=searches)


def figure(name: str, words: str) -> str:
    """Return a picture with a text for those who do not see it, if it is drawn."""
    drawn = (DOCS / "images" / f"{name}.png").exists()
    return f"![{words}](images/{name}.png)" if drawn else ""


def command(name: str) -> str:
    """Return what a command does, its usage and its options."""
    import typer

    from docsigma.cli.app import app

    found: Any = typer.main.get_command(app)
    for word in name.split():
        found = found.commands[word]
    # As far as the options are: beneath them the function may take them in groups.
    function = inspect.unwrap(
        found.callback, stop=lambda inner: hasattr(inner, "__signature__")
    )
    hints = typing.get_type_hints(function)
    described = [(p, _describe(p, _kind(hints[p.name]))) for p in found.params]
    return _fill(
        "command",
        name=name,
        about=found.help.split("\n\n")[0],
        arguments=[d for p, d in described if p.param_type_name == "argument"],
        options=[d for p, d in described if p.param_type_name == "option"],
    )


def _describe(parameter: Any, kind: str) -> dict[str, Any]:
    """Return name, help and default of an argument or option."""
    default = parameter.default
    # Some say in words what is used if they are not given.
    if isinstance(getattr(parameter, "show_default", None), str):
        default = parameter.show_default
    if parameter.param_type_name == "argument":
        shown = parameter.metavar or parameter.name.upper()
        if not (parameter.required or shown.startswith("[")):
            shown = f"[{shown}]"
        default = None
    elif parameter.is_flag:
        shown, default = ", ".join(parameter.opts), None
    else:
        shown = f"{', '.join(parameter.opts)} {kind}"
    return {
        "shown": shown,
        "short": f"{parameter.opts[0]} {kind}",
        "help": (parameter.help or "").replace("|", "&#124;"),
        "required": parameter.required,
        "default": getattr(default, "value", default),
    }


def _kind(hint: Any) -> str:
    """Return what is written for a value of this type."""
    if isinstance(hint, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    if typing.get_origin(hint) is list:
        hint = typing.get_args(hint)[0]
    if isinstance(hint, enum.EnumType):
        return "/".join(str(member.value) for member in hint)
    return KINDS[hint]


def _bold_best(text: str) -> str:
    """Make the best of each column of a score bold, in every table of a text."""
    lines = text.splitlines()
    start = 0
    while start < len(lines):
        stop = start
        while stop < len(lines) and lines[stop].startswith("|"):
            stop += 1
        if stop > start + 2:
            lines[start:stop] = _bold_rows(lines[start:stop])
        start = stop + 1
    return "\n".join(lines)


def _bold_rows(lines: list[str]) -> list[str]:
    rows = [line.strip("|").split("|") for line in lines]
    for column, name in enumerate(rows[0]):
        better = next((BETTER[key] for key in BETTER if key in name.lower()), None)
        if better is None:
            continue
        values = {}
        for at, row in enumerate(rows[2:], start=2):
            if found := re.match(r" *(-?\d+(?:\.\d+)?)", row[column]):
                values[at] = float(found[1])
        for at, value in values.items():
            if len(values) > 2 and value == better(values.values()):
                rows[at][column] = f" **{rows[at][column].strip()}** "
    return ["|" + "|".join(row) + "|" for row in rows]


def _read(file: Path) -> dict[str, Any]:
    """Return a report by name; `file`, and all of a report that is a list: `rows`."""
    report = json.loads(file.read_text("utf-8"))
    whole = {"rows": report} if isinstance(report, list) else report
    return {**whole, "file": file.name}


def _fill(template: str, **values: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(DOCS / "tables"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "wrapped": _wrapped}
    environment.globals["busy"] = BUSY
    return environment.get_template(f"{template}.jinja").render(values).strip("\n")


def _number(value: Any, form: str) -> str:
    """Write a number in a form of Python's; nothing for what is missing."""
    missing = value is None or isinstance(value, jinja2.Undefined)
    return "" if missing else format(value, form)


def _wrapped(text: str) -> str:
    """Write a long command on several lines."""
    text = " ".join(text.split())
    lines = textwrap.wrap(text, 72, break_on_hyphens=False, break_long_words=False)
    return " \\\n    ".join(lines)
