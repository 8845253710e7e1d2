"""Posteriors of documents under a fixed model."""

from __future__ import annotations

from docsigma.estep.full import infer_full
from docsigma.estep.newton import Inferred, infer
from docsigma.estep.settings import FullSettings, NewtonSettings, RefineSettings

__all__ = [
    "FullSettings",
    "Inferred",
    "NewtonSettings",
    "RefineSettings",
    "infer",
    "infer_full",
]
