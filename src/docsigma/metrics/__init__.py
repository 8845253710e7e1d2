"""Measures of how good a model is."""

from __future__ import annotations

from docsigma.metrics.calibration import (
    ReliabilityCurve,
    expected_calibration_error,
    reliability_curve,
)
from docsigma.metrics.classification import (
    accuracy,
    brier_score,
    confused_pairs,
    cross_entropy,
    scores_by_class,
)
from docsigma.metrics.perplexity import Perplexity, perplexity
from docsigma.metrics.selective import (
    RiskCoverageCurve,
    accuracy_at_coverage,
    entropies,
    error_detection_area,
    risk_coverage_curve,
)
from docsigma.metrics.variances import (
    PartRatio,
    VarianceCalibration,
    calibrate_variances,
)

__all__ = [
    "PartRatio",
    "Perplexity",
    "ReliabilityCurve",
    "RiskCoverageCurve",
    "VarianceCalibration",
    "accuracy",
    "accuracy_at_coverage",
    "brier_score",
    "calibrate_variances",
    "confused_pairs",
    "cross_entropy",
    "entropies",
    "error_detection_area",
    "expected_calibration_error",
    "perplexity",
    "reliability_curve",
    "risk_coverage_curve",
    "scores_by_class",
]
