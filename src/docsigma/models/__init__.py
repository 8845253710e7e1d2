"""Models that turn counts into embeddings: thin scikit-learn estimators."""

from __future__ import annotations

from docsigma.models.bayesian_smm import BayesianSMM

__all__ = ["BayesianSMM"]
