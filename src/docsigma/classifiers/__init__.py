"""Classifiers on documents that are Gaussians, or on their means."""

from __future__ import annotations

from docsigma.classifiers.gaussian_linear import GaussianLinearClassifier
from docsigma.classifiers.logistic import CrossValidatedLogisticRegression
from docsigma.classifiers.topic_classifier import TopicClassifier
from docsigma.classifiers.topic_classifier import TopicClassifier as CountsClassifier
from docsigma.classifiers.uncertain_gaussian import UncertainGaussianClassifier

__all__ = [
    "CountsClassifier",
    "CrossValidatedLogisticRegression",
    "GaussianLinearClassifier",
    "TopicClassifier",
    "UncertainGaussianClassifier",
]
