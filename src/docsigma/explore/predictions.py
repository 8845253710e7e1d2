"""Predictions of a classifier for every document of a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from docsigma._array_checks import Floats
from docsigma.classifiers import EvidenceClassifier
from docsigma.classifiers.uncertainty import Uncertainty, embedding_uncertainty
from docsigma.counts._base import BLOCK
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docsigma.classifiers.counts_classifier import CountsClassifier
    from docsigma.posterior import GaussianPosterior


@dataclass(frozen=True)
class Predictions:
    """Probabilities of classes per document, and their uncertainty in nats."""

    classes: list[str]
    proba: Floats
    entropy: Floats
    epistemic: Floats

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

        def predict(rows: slice) -> tuple[Floats, Uncertainty]:
            q = posterior[rows]
            return classifier.predict_proba(q), embedding_uncertainty(classifier, q)

        return cls._in_blocks(classifier.classes_, len(posterior), predict)

    @classmethod
    def of_texts(
        cls, classifier: CountsClassifier, texts: Sequence[str]
    ) -> Predictions:
        """Predict texts by a classifier of words."""

        def predict(rows: slice) -> tuple[Floats, Uncertainty]:
            documents = classifier.embed(classifier.count(texts[rows]).counts)
            proba = classifier.predict_proba(documents)
            return proba, classifier.predict_uncertainty(documents)

        return cls._in_blocks(classifier.classes_, len(texts), predict)

    @classmethod
    def _in_blocks(cls, classes: Any, n_documents: int, predict: Any) -> Predictions:
        blocks = range(0, n_documents, BLOCK)
        found = [predict(slice(start, start + BLOCK)) for start in blocks]
        proba: Any = np.concatenate([part for part, _ in found]).astype(np.float32)
        entropy = np.concatenate([each.entropy for _, each in found])
        epistemic = np.concatenate([each.epistemic for _, each in found])
        # It is a part of the entropy, but estimated separately.
        epistemic = np.minimum(epistemic, entropy)
        return cls([str(name) for name in classes], proba, entropy, epistemic)


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
    classifier = EvidenceClassifier(random_state=random_state)
    classifier.fit(posterior[np.concatenate([known, rest])], y)
    return classifier
