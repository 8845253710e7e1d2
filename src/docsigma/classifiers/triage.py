"""Which documents a person should look at, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import false_discovery_control

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.classifiers.counts_classifier import CountsClassifier


@dataclass(frozen=True)
class TriageRow:
    """A document to look at.

    Attributes
    ----------
    row : int
        Its place among the documents, from 0.
    text : str
    n_equal : int
        Documents with this text, itself included.
    predicted, second : object
        The two most probable labels.
    probability : float
        Of the first.
    p_value : float
        Of belonging to a known class.
    reason : str
        "unknown", "says too little", or "torn between" the two labels.
    """

    row: int
    text: str
    n_equal: int
    predicted: Any
    probability: float
    second: Any
    p_value: float
    reason: str


@dataclass(frozen=True)
class Triage:
    """Documents to look at, the most doubtful first, and what is left.

    Attributes
    ----------
    rows : list of TriageRow
    n_rest : int
        Documents that nobody looks at, and that equal none of those.
    expected_wrong : float
        How many of those are labelled wrongly, by their probabilities.
    """

    rows: list[TriageRow]
    n_rest: int
    expected_wrong: float


def triage(
    classifier: CountsClassifier,
    texts: Sequence[str],
    *,
    top: int | None = None,
    risk: float | None = None,
    level: float = 0.05,
) -> Triage:
    """Return the texts to look at: `top` of them, or as many as `risk` takes.

    The order is that of the probability that the label is right: that of a known class,
    times that of the label if it is one. Of equal texts one stands for all: whoever
    looks at it has decided them.
    """
    if (top is None) == (risk is None):
        raise InputError("give one of `top` and `risk`, not both")
    if top is not None and not (isinstance(top, Integral) and top >= 1):
        raise InputError(f"`top` must be a whole number, at least 1, got {top!r}")
    if not texts:
        return Triage([], 0, 0.0)
    documents = classifier.embed_texts(texts)
    proba = classifier.predict_proba(documents)
    p_values = classifier.unknown_p_value(documents)
    best = proba.max(axis=1)
    # At all lengths together: among short documents few can be told to be unknown.
    every = classifier.guarantees.p_values(classifier._familiarity(documents))
    order = np.argsort(best * known_share(every), kind="stable")
    if top is None:
        assert risk is not None
        least = classifier.reject(risk)
        order = order[(best < least)[order] | (p_values <= level)[order]]
    first = {texts[row]: row for row in order[::-1].tolist()}
    chosen = np.array([row for row in order if first[texts[row]] == row][:top], int)
    names = classifier.classes_.tolist()
    ranked = np.argsort(-proba[chosen], axis=1, kind="stable")
    second = ranked[:, min(1, proba.shape[1] - 1)]
    equal = Counter(texts)
    rows = [
        TriageRow(
            row=int(row),
            text=texts[row],
            n_equal=equal[texts[row]],
            predicted=names[ranked[place, 0]],
            probability=float(best[row]),
            second=names[second[place]],
            p_value=float(p_values[row]),
            reason=_reason(proba[row], p_values[row], documents.n_tokens[row], level),
        )
        for place, row in enumerate(chosen)
    ]
    looked_at = {texts[row] for row in chosen}
    rest = np.array([r for r, text in enumerate(texts) if text not in looked_at], int)
    return Triage(rows, len(rest), float((1 - best[rest]).sum()))


def known_share(p_values: Any) -> Any:
    """Return the share of known documents among those with p-values so small.

    Of n known documents n p would have p-values up to p. So many are expected among
    those that have them; the rest is unknown (Benjamini and Hochberg's false discovery
    rate). In a batch without unknown documents it is close to 1.
    """
    return false_discovery_control(p_values)


def _reason(proba: Any, p_value: float, n_tokens: float, level: float) -> str:
    """Return why a document is doubtful."""
    if p_value <= level:
        return "unknown"
    if n_tokens == 0:
        return "says too little"
    # The two best labels have most of it, or the probability is spread over many.
    first, second = np.sort(proba)[::-1][:2]
    return "torn between" if first + second > 0.5 else "says too little"
