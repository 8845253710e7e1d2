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
    values: sp.csr_matrix,
    coefficients: Floats,
    embedding: Floats,
    intercepts: Floats,
    silent: bool,
    pair: tuple[int, int],
    words: Sequence[str] | None = None,
) -> Explanation:
    """Split the hybrid's scores for one document into what makes them up.

    `values` are the document's TF-IDF and `coefficients` what they count, words x
    classes; `embedding` and `intercepts` have one number per class, and `pair` the two
    classes' columns; a `silent` document has no known word.
    """
    first, second = pair
    names = classifier.classes_[first], classifier.classes_[second]
    if silent:
        prior = np.log(classifier.class_prior_)
        odds = float(prior[first] - prior[second])
        return Explanation(*names, odds, [], 0.0, odds)
    columns = values.indices
    amounts = values.data * (
        coefficients[columns, first] - coefficients[columns, second]
    )
    order = np.argsort(-np.abs(amounts), kind="stable")
    chosen = [
        (int(columns[at]) if words is None else words[columns[at]], float(amounts[at]))
        for at in order
    ]
    away = float(embedding[first] - embedding[second])
    intercept = float(intercepts[first] - intercepts[second])
    total = float(amounts.sum()) + away + intercept
    return Explanation(*names, total, chosen, away, intercept)
