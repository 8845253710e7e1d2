"""Classifiers for document embeddings and their uncertainties."""

from __future__ import annotations

from docsigma.classifiers.gaussian_linear import GaussianLinearClassifier
from docsigma.classifiers.logistic import CrossValidatedLogisticRegression
from docsigma.classifiers.uncertain_gaussian import UncertainGaussianClassifier

__all__ = [
    "CrossValidatedLogisticRegression",
    "GaussianLinearClassifier",
    "UncertainGaussianClassifier",
]
