"""The paper's baselines among models."""

from __future__ import annotations

from docsigma_paper.models.nvdm import NVDM
from docsigma_paper.models.smm import SMM

__all__ = ["NVDM", "SMM"]
