"""Inference of documents' posteriors under a fixed model."""

from __future__ import annotations

from docsigma.estep.full import infer_full
from docsigma.estep.newton import Inferred, infer
from docsigma.estep.settings import FullSettings, NewtonSettings

__all__ = [
    "FullSettings",
    "Inferred",
    "NewtonSettings",
    "infer",
    "infer_full",
]
