"""Posteriors of documents under a fixed model."""

from __future__ import annotations

from docsigma.estep.newton import Inferred, infer
from docsigma.estep.settings import NewtonSettings, RefineSettings

__all__ = ["Inferred", "NewtonSettings", "RefineSettings", "infer"]
