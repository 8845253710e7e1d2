"""Evaluation of a classifier's probabilities, and of a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression

from docsigma.metrics.calibration import expected_calibration_error
from docsigma.metrics.classification import accuracy, brier_score, cross_entropy

if TYPE_CHECKING:
    import scipy.sparse as sp


def evaluate(log_proba: Any, labels: Any, classes: Any) -> dict[str, float]:
    """Return accuracy (per cent), cross-entropy (nats), Brier score and ECE."""
    proba = np.exp(log_proba)
    return {
        "accuracy": 100 * accuracy(proba, labels, classes=classes),
        "cross_entropy": cross_entropy(log_proba, labels, classes=classes, log=True),
        "brier": brier_score(proba, labels, classes=classes),
        "ece": expected_calibration_error(proba, labels, classes=classes),
    }


def tfidf_baseline(
    train: sp.csr_matrix,
    train_labels: list[str],
    test: sp.csr_matrix,
    test_labels: list[str],
) -> dict[str, float]:
    """Evaluate TF-IDF (sublinear) with logistic regression (C = 10) on counts."""
    weights = TfidfTransformer(sublinear_tf=True).fit(train)
    model = LogisticRegression(C=10, max_iter=1000)
    model.fit(weights.transform(train), train_labels)
    log_proba = model.predict_log_proba(weights.transform(test))
    return evaluate(log_proba, test_labels, model.classes_)
