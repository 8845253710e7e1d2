"""Probabilities of several classifiers pooled, with weights from held-out documents."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from tqdm import tqdm

from docsigma._array_checks import Floats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from docsigma.classifiers._folds import Split


def pooled(weights: Floats, parts: Sequence[Floats]) -> Floats:
    """Return weighted sums of the parts' log probabilities, as log probabilities."""
    scores = sum(w * np.asarray(part) for w, part in zip(weights, parts, strict=True))
    return np.asarray(log_softmax(np.asarray(scores), axis=1))


def fit_pool(
    parts: Sequence[Floats], codes: NDArray[np.intp], document_weights: Floats
) -> Floats:
    """Return the weights of the parts with the least cross-entropy, which is convex.

    No weight is negative, and any may be zero. With one part the weight is the inverse
    of a temperature.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n_documents, n_classes)
        Log probabilities by each part, which has not seen these documents' labels.
    codes, document_weights : ndarray of shape (n_documents,)
        The documents' classes and weights.
    """
    stacked = np.stack(parts, axis=2)
    rows, total = np.arange(len(codes)), float(document_weights.sum())
    truth, start = stacked[rows, codes], np.full(len(parts), 1 / len(parts))

    def objective(weights: Floats) -> tuple[float, Floats]:
        log_proba = log_softmax(stacked @ weights, axis=1)
        expected = (np.exp(log_proba)[:, None, :] @ stacked)[:, 0, :]
        # As if one more document held the weights where they start.
        away = weights - start
        loss = (away**2).sum() / 2 - document_weights @ log_proba[rows, codes]
        gradient = document_weights @ (expected - truth) + away
        return float(loss) / total, gradient / total

    bounds = [(0.0, None)] * len(start)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(found.x)


class HeldOut(NamedTuple):
    """What held-out documents chose: the weight of those without label, and a pool.

    `pool` has the weights of the parts.
    """

    loss: float
    weight: float
    pool: Floats


def choose_held_out(
    weights: Sequence[float],
    splits: Sequence[Split],
    known: Floats,
    hold_out: Callable[[float, Split], list[Floats]],
    verbose: bool = False,
) -> HeldOut | None:
    """Return the choice with the least cross-entropy; None where nothing is held out.

    Parameters
    ----------
    weights : sequence of float
        Weights of documents without label to choose from.
    splits : sequence of Split
        Documents to train on, and to hold out.
    known : ndarray of shape (n_documents, n_classes)
        Weights of labelled documents in their classes.
    hold_out : callable
        Trains on a split with a weight; returns the log probabilities, by each part of
        the pool, of the documents that the split holds out.
    verbose : bool
        Whether to show a progress bar after two seconds.
    """
    if not splits:
        return None
    rows = np.concatenate([split.held_out for split in splits])
    codes, own = known[rows].argmax(axis=1), known[rows].sum(axis=1)
    pairs = list(product(weights, splits))
    bar = tqdm(pairs, "choosing", delay=2, disable=not verbose)
    held = [hold_out(*pair) for pair in bar]
    found = []
    for number, weight in enumerate(weights):
        one = held[number * len(splits) : (number + 1) * len(splits)]
        parts = [np.concatenate(part) for part in zip(*one, strict=True)]
        pool = fit_pool(parts, codes, own)
        truth = pooled(pool, parts)[np.arange(len(codes)), codes]
        found.append(HeldOut(float(-(own @ truth) / own.sum()), weight, pool))
    return min(found, key=lambda each: each.loss)
