"""ULMFiT: a language model of words, fine-tuned and then made a classifier."""

from __future__ import annotations

from docsigma_paper.classifiers.ulmfit.classifier import ULMFiTClassifier

__all__ = ["ULMFiTClassifier"]
