"""The paper's tables and figures, each by one command: ``docsigma reproduce NAME``."""

from __future__ import annotations

from docsigma_paper.reproduce._registry import EXPERIMENTS, reproduce

__all__ = ["EXPERIMENTS", "reproduce"]
