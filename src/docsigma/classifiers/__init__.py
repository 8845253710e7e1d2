"""Classifiers on documents that are Gaussians, or on their means."""

from __future__ import annotations

from docsigma.classifiers.counts_classifier import CountsClassifier
from docsigma.classifiers.evidence import EvidenceClassifier
from docsigma.classifiers.gaussian_linear import GaussianLinearClassifier
from docsigma.classifiers.hybrid import HybridClassifier
from docsigma.classifiers.logistic import CrossValidatedLogisticRegression
from docsigma.classifiers.uncertain_gaussian import UncertainGaussianClassifier

__all__ = [
    "CountsClassifier",
    "CrossValidatedLogisticRegression",
    "EvidenceClassifier",
    "GaussianLinearClassifier",
    "HybridClassifier",
    "UncertainGaussianClassifier",
]
