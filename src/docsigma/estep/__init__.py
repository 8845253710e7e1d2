"""Posteriors of documents under a fixed model."""

from __future__ import annotations

from docsigma.estep.newton import Inferred, NewtonSettings, infer

__all__ = ["Inferred", "NewtonSettings", "infer"]
