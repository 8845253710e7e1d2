"""What other distributions add to docsigma, and which of them to install for a name.

A distribution joins by entry points of three groups: ``docsigma.commands`` (a function
or a typer app), ``docsigma.corpora`` (a
:class:`~docsigma.corpora.registry.NamedCorpus`) and ``docsigma.models`` (a class). A
registry of docsigma is one dict; the two functions below look into it, then beside it.
"""

from __future__ import annotations

import importlib.metadata
from typing import TypeVar

Kind = TypeVar("Kind")

# What docsigma-paper has, by group; "classes" are names that users may try to import
# from `docsigma`.
PAPER = {
    "classes": ("NVDM", "SMM", "SelectedNaiveBayes", "ULMFiTClassifier"),
    "commands": ("reproduce",),
    "corpora": ("switchboard", "switchboard-asr", "fisher", "fisher-asr"),
    "models": ("SMM", "NVDM"),
}


def install_hint(group: str, name: str) -> str:
    """Return what to install if docsigma-paper has the name, and "" if not."""
    if name not in PAPER[group]:
        return ""
    return "in docsigma-paper: pip install docsigma-paper"


def registered_names(group: str, own: dict[str, Kind]) -> list[str]:
    """Return the names of docsigma's `own` registry and of what joins it."""
    entries = importlib.metadata.entry_points(group=f"docsigma.{group}")
    return list(dict.fromkeys([*own, *(entry.name for entry in entries)]))


def find_registered(group: str, name: str, own: dict[str, Kind]) -> Kind | None:
    """Return what `name` stands for, or None if nothing that is installed has it."""
    if name in own:
        return own[name]
    entries = importlib.metadata.entry_points(group=f"docsigma.{group}", name=name)
    entry = next(iter(entries), None)
    found: Kind | None = None if entry is None else entry.load()
    return found
