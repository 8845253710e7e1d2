"""Classifiers of counts and of texts, which the paper compares with."""

from __future__ import annotations

from docsigma_paper.classifiers.naive_bayes import SelectedNaiveBayes
from docsigma_paper.classifiers.ulmfit import ULMFiTClassifier

__all__ = ["SelectedNaiveBayes", "ULMFiTClassifier"]
