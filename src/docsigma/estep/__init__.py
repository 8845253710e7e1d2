"""Posteriors of documents under a fixed model."""

from __future__ import annotations

from docsigma.estep.covariances import infer_covariances
from docsigma.estep.newton import Inferred, infer
from docsigma.estep.settings import CovarianceSettings, NewtonSettings, RefineSettings

__all__ = [
    "CovarianceSettings",
    "Inferred",
    "NewtonSettings",
    "RefineSettings",
    "infer",
    "infer_covariances",
]
