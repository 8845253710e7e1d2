"""Describe the options of a command from the command itself.

``{{ command fit }}`` in a page becomes its usage and a table of its options; so does
``{{ command classifier fit }}``, a command of a group.
"""

from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from functools import cache
from pathlib import Path
from typing import Any

_MARK = re.compile(r"^\{\{ command ([\w ]+) \}\}$", re.MULTILINE)
_KINDS = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH"}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of a page."""
    return _MARK.sub(lambda match: describe(match[1]), markdown)


def describe(name: str) -> str:
    """Give what a command does, its usage and its options as Markdown."""
    import typer

    from docsigma.cli.app import app

    command, group = typer.main.get_command(app), app
    for word in name.split():
        command = command.commands[word]
        inside = [
            g for g in group.registered_groups if g.typer_instance.info.name == word
        ]
        group = inside[0].typer_instance if inside else group
    function = next(
        registered.callback
        for registered in group.registered_commands
        if registered.callback.__name__ == name.split()[-1]
    )
    hints = typing.get_type_hints(function)
    options = [p for p in command.params if p.param_type_name == "option"]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = ["docsigma", name, *map(_argument, arguments)]
    usage += [f"{p.opts[0]} {_kind(hints[p.name])}" for p in options if p.required]
    lines = [command.help.split("\n\n")[0].strip(), ""]
    lines += ["```text", " ".join([*usage, "[OPTIONS]"]), "```", ""]
    lines += ["| argument or option | what | default |", "| --- | --- | --- |"]
    for parameter in arguments:
        need = "required" if parameter.required else ""
        lines.append(f"| `{_argument(parameter)}` | {_help(parameter)} | {need} |")
    for parameter in options:
        shown = ", ".join(parameter.opts)
        if not parameter.is_flag:
            shown += f" {_kind(hints[parameter.name])}"
        row = f"| `{shown}` | {_help(parameter)} | {_default(parameter)} |"
        lines.append(row)
    return "\n".join(lines)


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return name if parameter.required or name.startswith("[") else f"[{name}]"


def _kind(hint: Any) -> str:
    if isinstance(hint, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    if typing.get_origin(hint) is list:
        hint = typing.get_args(hint)[0]
    if isinstance(hint, enum.EnumType):
        return "/".join(str(member.value) for member in hint)
    return _KINDS[hint]


def _help(parameter: Any) -> str:
    return str(parameter.help or "").replace("|", "&#124;")


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if parameter.is_flag:
        return ""
    value = parameter.default
    if value is None:
        value = _fit_defaults().get(parameter.name)
    return "" if value is None else f"`{getattr(value, 'value', value)}`"


@cache
def _fit_defaults() -> dict[str, Any]:
    """Give what `fit` takes where neither flag nor file says: the estimator's."""
    from docsigma import BayesianSMM, Vocabulary
    from docsigma.cli._settings import ALIASES

    flags = {parameter: flag for flag, parameter in ALIASES.items()}
    return {
        flags.get(name, name): parameter.default
        for function in (Vocabulary.fit_count, BayesianSMM)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
