"""What spoke for a predicted class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp

    from docsigma._array_checks import Floats
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
    wide: sp.csr_matrix,
    weight: float,
    added: Floats,
    silent: bool,
    pair: tuple[int, int],
    words: Sequence[str] | None = None,
) -> Explanation:
    """Split the hybrid's scores for one document into what makes them up.

    `wide` is what the support vector machine sees, `weight` what it counts, `added`
    what the embedding gives the classes, and `pair` the two classes' columns; a
    `silent` document has no known word.
    """
    first, second = pair
    names = classifier.classes_[first], classifier.classes_[second]
    if silent:
        prior = np.log(classifier.class_prior_)
        odds = float(prior[first] - prior[second])
        return Explanation(*names, odds, [], 0.0, odds)
    linear, columns = classifier.words_, wide.indices
    apart = linear.coefficients[columns, first] - linear.coefficients[columns, second]
    amounts = weight * wide.data * apart
    order = np.argsort(-np.abs(amounts), kind="stable")
    chosen = [
        (int(columns[at]) if words is None else words[columns[at]], float(amounts[at]))
        for at in order
    ]
    embedding = float(added[first] - added[second])
    intercept = weight * float(linear.intercept[first] - linear.intercept[second])
    total = float(amounts.sum()) + embedding + intercept
    return Explanation(*names, total, chosen, embedding, intercept)
