"""The recipe of topic ID."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from docsigma import InputError
from docsigma.classifiers import UncertainGaussianClassifier
from docsigma.metrics.evaluation import evaluate
from docsigma.posterior import GaussianPosterior
from docsigma_paper import topic_id
from docsigma_paper.reproduce._setting import Setting
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


def test_the_recipe_chooses_by_cross_validation_and_goes_on(tmp_path, monkeypatch):
    small = Setting(quick=True).task("any")
    monkeypatch.setattr(topic_id, "load_task", lambda _: small)
    file = tmp_path / "found.json"
    quick = ("--max-iter", "5", "--folds", "2", "--kinds", "glc", "--json", str(file))
    topic_id.main(["--components", "2", "--l1", "0.1", *quick])
    (first,) = json.loads(file.read_text())["grid"]
    topic_id.main(["--components", "2", "3", "--l1", "0.1", "5.0", *quick])
    found = json.loads(file.read_text())
    assert found["grid"][0] == first
    assert {(row["n_components"], row["l1"]) for row in found["grid"]} == {
        *((2, 0.1), (3, 0.1), (2, 5.0), (3, 5.0))
    }
    least = min(row["cv_cross_entropy"] for row in found["grid"])
    assert found["chosen"]["cv_cross_entropy"] == least
    assert found["chosen"]["test"]["glc"]["accuracy"] > 30
    with pytest.raises(InputError, match="holds another run"):
        topic_id.main(["--components", "2", "--l1", "0.1", *quick, "--max-iter", "9"])
