"""What spoke for a predicted class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp

    from docsigma._array_checks import Floats
    from docsigma.classifiers._softmax_regression import Features
    from docsigma.classifiers.hybrid import HybridClassifier


@dataclass(frozen=True)
class Explanation:
    """Why a document got its class rather than the second best.

    All amounts are in nats; `words`, `embedding` and `intercept` add up to `log_odds`.

    Attributes
    ----------
    label, against : object
        The predicted class, and the second best.
    log_odds : float
        Log probability of the one less that of the other.
    words : list of (word, amount)
        What each word of the document spoke for the class, the strongest first.
    embedding : float
        What the embedding did: where its mean lies, and its likelihood.
    intercept : float
        What holds for all documents.
    """

    label: Any
    against: Any
    log_odds: float
    words: list[tuple[Any, float]]
    embedding: float
    intercept: float


def explain_document(
    classifier: HybridClassifier,
    features: Features,
    wide: sp.csr_matrix,
    weights: Floats,
    added: Floats,
    silent: bool,
    pair: tuple[int, int],
    words: Sequence[str] | None = None,
) -> Explanation:
    """Split the hybrid's scores for one document into what makes them up.

    `features` are what the regression sees, `wide` what the support vector machine
    does, `weights` those of both, `added` what the score gives the classes, and `pair`
    the two classes' columns; a `silent` document has no known word.
    """
    first, second = pair
    names = classifier.classes_[first], classifier.classes_[second]
    if silent:
        prior = np.log(classifier.class_prior_)
        odds = float(prior[first] - prior[second])
        return Explanation(*names, odds, [], 0.0, odds)
    found, margins = classifier.coefficients_, classifier.margins_
    amounts = np.zeros(wide.shape[1])
    for row, coefficients, weight in (
        (features.words, found.words, weights[0]),
        (wide, margins.coefficients, weights[1]),
    ):
        columns = row.indices
        apart = coefficients[columns, first] - coefficients[columns, second]
        amounts[columns] += weight * row.data * apart
    columns = wide.indices
    order = columns[np.argsort(-np.abs(amounts[columns]), kind="stable")]
    chosen = [
        (int(column) if words is None else words[column], float(amounts[column]))
        for column in order
    ]
    means = weights[0] * found.scale * (features.embedding[0] @ found.embedding)
    embedding = float(means[first] - means[second] + added[first] - added[second])
    both = weights[0] * found.intercept + weights[1] * margins.intercept
    intercept = float(both[first] - both[second])
    total = float(amounts.sum()) + embedding + intercept
    return Explanation(*names, total, chosen, embedding, intercept)
