"""Models that turn word counts into embeddings: thin scikit-learn estimators."""

from __future__ import annotations

from docsigma.models.bayesian_smm import BayesianSMM
from docsigma.models.registry import load_model
from docsigma.models.training_pass import TrainingPass

__all__ = ["BayesianSMM", "TrainingPass", "load_model"]
