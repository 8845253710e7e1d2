"""Predictions of a classifier for every document of a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from docsigma._array_checks import Floats
from docsigma.classifiers import EvidenceClassifier
from docsigma.counts._base import BLOCK
from docsigma.exceptions import InputError
from docsigma.metrics import entropies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docsigma.classifiers.counts_classifier import CountsClassifier
    from docsigma.posterior import GaussianPosterior


@dataclass(frozen=True)
class Predictions:
    """Probabilities of classes per document, and their entropy in nats."""

    classes: list[str]
    proba: NDArray[Any]
    entropy: Floats

    @property
    def best(self) -> NDArray[np.intp]:
        """The most probable class of each document."""
        return np.asarray(self.proba.argmax(axis=1), dtype=np.intp)

    @property
    def doubt(self) -> Floats:
        """Entropy as a share of its maximum, from 0 to 1."""
        return np.asarray(self.entropy / np.log(max(2, len(self.classes))))

    @classmethod
    def by(
        cls, classifier: EvidenceClassifier, posterior: GaussianPosterior
    ) -> Predictions:
        """Predict documents by a classifier of Gaussians."""
        return cls._of(classifier, classifier.predict_log_proba(posterior))

    @classmethod
    def of_texts(
        cls, classifier: CountsClassifier, texts: Sequence[str]
    ) -> Predictions:
        """Predict texts by a classifier of words."""
        blocks = [
            classifier.count(texts[start : start + BLOCK]).counts
            for start in range(0, len(texts), BLOCK)
        ]
        found = [classifier.predict_log_proba(counts) for counts in blocks]
        return cls._of(classifier, np.concatenate(found))

    @classmethod
    def _of(cls, classifier: Any, log_proba: Floats) -> Predictions:
        proba = np.exp(log_proba).astype(np.float32)
        names = [str(name) for name in classifier.classes_]
        return cls(names, proba, entropies(log_proba))


def fit_few_labels(
    posterior: GaussianPosterior, labels: dict[int, str], random_state: int = 0
) -> EvidenceClassifier:
    """Return an evidence classifier, trained on few labels and unlabelled documents."""
    n_classes = len(set(labels.values()))
    if n_classes < 2:
        raise InputError(
            f"a classifier needs documents of 2 labels or more, there are {n_classes}"
        )
    known = np.array(sorted(labels), dtype=np.intp)
    rest = np.setdiff1d(np.arange(len(posterior)), known)
    if len(rest) > 2000:
        # A sample shows the spread of classes as well.
        random = np.random.default_rng(random_state)
        rest = np.sort(random.choice(rest, 2000, replace=False))
    y = np.array([labels[int(row)] for row in known] + [None] * len(rest), dtype=object)
    classifier = EvidenceClassifier()
    classifier.fit(posterior[np.concatenate([known, rest])], y)
    return classifier
