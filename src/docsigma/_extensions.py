"""What other distributions add to docsigma's registries, by entry points.

There are three groups: ``docsigma.commands`` (a function or a typer app),
``docsigma.corpora`` (a :class:`~docsigma.corpora.registry.NamedCorpus`) and
``docsigma.models`` (a class).
"""

from __future__ import annotations

import importlib.metadata
from typing import TypeVar

Kind = TypeVar("Kind")

# Names in docsigma-paper, by group, for hints where it is not installed; "classes" are
# those that users may try to import from `docsigma`.
PAPER = {
    "classes": ("NVDM", "SMM", "SelectedNaiveBayes", "ULMFiTClassifier"),
    "commands": ("reproduce",),
    "corpora": ("switchboard", "switchboard-asr", "fisher", "fisher-asr"),
    "models": ("SMM", "NVDM"),
}


def install_hint(group: str, name: str) -> str:
    """Return what to install if the name is in docsigma-paper, else ""."""
    if name not in PAPER[group]:
        return ""
    return "in docsigma-paper: pip install docsigma-paper"


def registered_names(group: str, own: dict[str, Kind]) -> list[str]:
    """Return the names of docsigma's `own` registry, then those of entry points."""
    entries = importlib.metadata.entry_points(group=f"docsigma.{group}")
    return list(dict.fromkeys([*own, *(entry.name for entry in entries)]))


def find_registered(group: str, name: str, own: dict[str, Kind]) -> Kind | None:
    """Return the entry called `name`, or None if nothing that is installed has it."""
    if name in own:
        return own[name]
    for entry in importlib.metadata.entry_points(group=f"docsigma.{group}", name=name):
        found: Kind = entry.load()
        return found
    return None
