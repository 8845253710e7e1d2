"""Numbers that say how good a model is."""

from __future__ import annotations

from docsigma.metrics.calibration import (
    ReliabilityCurve,
    expected_calibration_error,
    reliability_curve,
)
from docsigma.metrics.classification import accuracy, brier_score, cross_entropy
from docsigma.metrics.perplexity import Perplexity, perplexity
from docsigma.metrics.selective import (
    RiskCoverageCurve,
    accuracy_at_coverage,
    risk_coverage_curve,
)

__all__ = [
    "Perplexity",
    "ReliabilityCurve",
    "RiskCoverageCurve",
    "accuracy",
    "accuracy_at_coverage",
    "brier_score",
    "cross_entropy",
    "expected_calibration_error",
    "perplexity",
    "reliability_curve",
    "risk_coverage_curve",
]
