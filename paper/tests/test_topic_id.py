"""The recipe of topic ID."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from docsigma.classifiers import UncertainGaussianClassifier
from docsigma.experiments.evaluation import evaluate
from docsigma.posterior import GaussianPosterior
from docsigma_paper.topic_id import classify


def test_glcu_stopped_takes_the_authors_steps():
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], 40)
    mean = rng.normal(size=(120, 3)) + 2 * np.eye(3)[np.repeat(range(3), 40)]
    q = GaussianPosterior(mean, rng.uniform(0.1, 2, (120, 3)))
    found = classify(q, list(labels), q, list(labels), ("glcu", "glcu-stopped"))
    glcu = UncertainGaussianClassifier(accelerate=False, max_iter=10, tol=0)
    with pytest.warns(ConvergenceWarning, match="`max_iter` = 10"):
        glcu.fit(q, labels)
    assert glcu.n_iter_ == 10
    nats = evaluate(glcu.predict_log_proba(q), list(labels), glcu.classes_)
    assert found["glcu-stopped"]["cross_entropy"] == nats["cross_entropy"]
    assert found["glcu"]["cross_entropy"] != pytest.approx(nats["cross_entropy"])
