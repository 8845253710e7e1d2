from __future__ import annotations

import pytest

pytest.importorskip("fastapi")

from docsigma import DocumentEmbedder, DocumentIndex
from docsigma.classifiers import CountsClassifier
from docsigma.service.engine import Engine

WEATHER = ["sun rain wind cloud", "storm rain wind snow", "cloud snow sun storm"]
FOOD = ["bread salt butter milk", "cheese milk salt soup", "soup bread butter cheese"]
TEXTS = (WEATHER + FOOD) * 8
LABELS = (["weather"] * 3 + ["food"] * 3) * 8


@pytest.fixture(scope="session")
def parts():
    model = DocumentEmbedder(2, random_state=0).fit(TEXTS).model_
    counts = model.vocabulary_.count(TEXTS).counts
    classifier = CountsClassifier(model, "evidence").fit(counts, LABELS)
    index = DocumentIndex(classifier)
    index.add(TEXTS, labels=LABELS)
    index.index.calibrate()
    return model, classifier, index


@pytest.fixture(scope="session")
def calibrated(parts):
    """A classifier that promises prediction sets and p-values."""
    model = parts[0]
    counts = model.vocabulary_.count(TEXTS).counts
    found = CountsClassifier(model, "evidence").fit(counts, LABELS)
    return found.calibrate_on_texts(TEXTS, LABELS)


@pytest.fixture
def engine(parts):
    return Engine(*parts)
