"""Classifiers on documents that are Gaussians, or on their means."""

from __future__ import annotations

from docsigma.classifiers.gaussian_linear import GaussianLinearClassifier
from docsigma.classifiers.logistic import CrossValidatedLogisticRegression
from docsigma.classifiers.naive_bayes import SelectedNaiveBayes
from docsigma.classifiers.topic_classifier import TopicClassifier
from docsigma.classifiers.ulmfit import ULMFiTClassifier
from docsigma.classifiers.uncertain_gaussian import UncertainGaussianClassifier

__all__ = [
    "CrossValidatedLogisticRegression",
    "GaussianLinearClassifier",
    "SelectedNaiveBayes",
    "TopicClassifier",
    "ULMFiTClassifier",
    "UncertainGaussianClassifier",
]
