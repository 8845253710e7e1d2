"""Telephone speech: Switchboard, and Fisher for those who have its licence."""

from __future__ import annotations

from docsigma.corpora.registry import CORPORA
from docsigma_paper.corpora.fisher import FISHER, FISHER_ASR
from docsigma_paper.corpora.switchboard import SWITCHBOARD, SWITCHBOARD_ASR

__all__ = ["register"]


def register() -> None:
    """Make the names known where this is on the path and not installed, as on a GPU.

    An installation needs no call: there `load_corpus` finds the entry points.
    """
    CORPORA["switchboard"] = SWITCHBOARD
    CORPORA["switchboard-asr"] = SWITCHBOARD_ASR
    CORPORA["fisher"] = FISHER
    CORPORA["fisher-asr"] = FISHER_ASR
