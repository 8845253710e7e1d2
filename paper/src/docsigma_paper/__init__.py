"""Baselines, speech corpora and experiments of the paper.

docsigma finds these by entry points: the command ``reproduce``, the corpora
``switchboard`` and ``fisher`` with their automatic transcripts, and saved models of the
kinds SMM and NVDM.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docsigma_paper.classifiers import SelectedNaiveBayes as SelectedNaiveBayes
    from docsigma_paper.classifiers import ULMFiTClassifier as ULMFiTClassifier
    from docsigma_paper.models import NVDM as NVDM
    from docsigma_paper.models import SMM as SMM

__version__ = "0.2.0"

# Names load when first used, as those of docsigma: `docsigma --help` needs no torch.
_HOME = {
    "NVDM": "docsigma_paper.models",
    "SMM": "docsigma_paper.models",
    "SelectedNaiveBayes": "docsigma_paper.classifiers",
    "ULMFiTClassifier": "docsigma_paper.classifiers",
}
__all__ = [*sorted(_HOME), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'docsigma_paper' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
