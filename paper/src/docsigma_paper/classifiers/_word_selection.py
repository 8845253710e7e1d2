"""Probabilities of words and topics, and the words that distinguish topics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import softmax

if TYPE_CHECKING:
    from numpy.typing import NDArray


def word_probabilities(
    class_counts: NDArray[np.float64], alpha: float
) -> NDArray[np.float64]:
    r"""Probabilities of the words in each topic, a MAP estimate.

    .. math::
        P(w \mid t) = \frac{N_{wt} + \alpha V P(w)}{N_t + \alpha V}, \qquad
        P(w) = \frac{N_w + 1}{N + V}

    :math:`N_{wt}` is how often the topic has the word, :math:`N_t`, :math:`N_w` and
    :math:`N` are its sums, :math:`V` is the number of words. Words that are equally
    frequent all in all make it additive smoothing, :math:`(N_{wt} + \alpha) / (N_t +
    \alpha V)`.

    Parameters
    ----------
    class_counts : ndarray of shape (n_classes, n_words)
        The counts :math:`N_{wt}`.
    alpha : float
        Weight of :math:`P(w)`, in tokens per word.

    Returns
    -------
    ndarray of shape (n_classes, n_words)
        Rows add up to 1.

    Examples
    --------
    >>> word_probabilities(np.array([[3.0, 1.0], [1.0, 3.0]]), alpha=1.0) * 6
    array([[4., 2.],
           [2., 4.]])
    """
    n_words = class_counts.shape[1]
    overall = class_counts.sum(axis=0)
    background = (overall + 1) / (overall.sum() + n_words)
    prior_tokens = alpha * n_words
    totals = class_counts.sum(axis=1, keepdims=True)
    smoothed = (class_counts + prior_tokens * background) / (totals + prior_tokens)
    return np.asarray(smoothed, dtype=np.float64)


def topic_probabilities(
    class_counts: NDArray[np.float64], prior: NDArray[np.float64], alpha: float
) -> NDArray[np.float64]:
    r"""Probabilities of the topics, given one word, a MAP estimate.

    .. math::
        P(t \mid w) = \frac{N_{wt} + \alpha T P(t)}{N_w + \alpha T}

    :math:`T` is the number of topics. A word seen once is weak evidence: its
    probabilities stay close to :math:`P(t)`.

    Parameters
    ----------
    class_counts : ndarray of shape (n_classes, n_words)
        The counts :math:`N_{wt}`.
    prior : ndarray of shape (n_classes,)
        The priors :math:`P(t)`.
    alpha : float
        Weight of the priors, in tokens a topic.

    Returns
    -------
    ndarray of shape (n_classes, n_words)
        Columns add up to 1.

    Examples
    --------
    >>> counts = np.array([[7.0, 1.0], [1.0, 0.0]])
    >>> topic_probabilities(counts, np.array([0.5, 0.5]), alpha=1.0).round(2)
    array([[0.8 , 0.67],
           [0.2 , 0.33]])
    """
    prior_tokens = alpha * len(prior)
    overall = class_counts.sum(axis=0)
    smoothed = (class_counts + prior_tokens * prior[:, None]) / (overall + prior_tokens)
    return np.asarray(smoothed, dtype=np.float64)


def select_words(
    class_counts: NDArray[np.float64],
    prior: NDArray[np.float64],
    alpha: float,
    words_per_class: int,
) -> NDArray[np.intp]:
    """Columns of the words that point to a topic: the union of the topics' best.

    Each topic gives, of the words its documents have, those with the highest
    `topic_probabilities`; of equal ones the first columns.

    Examples
    --------
    >>> counts = np.array([[9.0, 0.0, 5.0], [0.0, 9.0, 5.0]])
    >>> select_words(counts, np.array([0.5, 0.5]), alpha=1.0, words_per_class=1)
    array([0, 1])
    """
    probabilities = topic_probabilities(class_counts, prior, alpha)
    # Rounded, so that equal words stay equal whatever the order of the sums.
    ranked = np.where(class_counts > 0, np.round(probabilities, 12), -1.0)
    best = np.argsort(-ranked, axis=1, kind="stable")[:, :words_per_class]
    chosen = np.zeros(class_counts.shape[1], dtype=np.bool_)
    for row, columns in zip(ranked, best, strict=True):
        chosen[columns[row[columns] >= 0]] = True
    return np.flatnonzero(chosen)


def best_scale(
    log_likelihood: NDArray[np.float64],
    log_prior: NDArray[np.float64],
    codes: NDArray[np.intp],
    weights: NDArray[np.float64],
    bounds: tuple[float, float],
) -> float:
    r"""Scale of the log-likelihood with the least cross-entropy.

    The cross-entropy of :math:`\mathrm{softmax}(\log P(t) + s\,L_t)` is convex in
    :math:`s`, so its slope has one zero, or none between the bounds.

    Parameters
    ----------
    log_likelihood, log_prior : ndarray of shape (n_documents, n_classes)
        The scores :math:`L_t` and :math:`\log P(t)`; a prior of minus infinity, with
        a finite score, leaves a class out.
    codes : ndarray of shape (n_documents,)
        Columns of the true classes.
    weights : ndarray of shape (n_documents,)
        Weights of the documents.
    bounds : tuple of two float
        Least and greatest scale.

    Returns
    -------
    float
        The scale; a bound if the cross-entropy falls towards it.

    Examples
    --------
    >>> scores = np.array([[3.0, 0.0], [3.0, 0.0], [3.0, 0.0], [3.0, 0.0]])
    >>> codes, weights = np.array([0, 0, 0, 1]), np.ones(4)
    >>> scale = best_scale(scores, np.zeros((4, 2)), codes, weights, (0.01, 10.0))
    >>> float(np.exp(3 * scale).round(6))
    3.0
    """
    own = log_likelihood[np.arange(len(codes)), codes]

    def slope(log_scale: float) -> float:
        scores = log_prior + math.exp(log_scale) * log_likelihood
        expected = (softmax(scores, axis=1) * log_likelihood).sum(axis=1)
        return float(weights @ (expected - own))

    low, high = (math.log(bound) for bound in bounds)
    if slope(low) >= 0:
        return bounds[0]
    if slope(high) <= 0:
        return bounds[1]
    return math.exp(brentq(slope, low, high, xtol=1e-10))


def sum_classes(
    counts: sparse.csr_matrix,
    codes: NDArray[np.intp],
    weights: NDArray[np.float64],
    n_classes: int,
) -> NDArray[np.float64]:
    """Add up the counts of each class."""
    documents = np.arange(len(codes))
    membership = sparse.csr_matrix(
        (weights, (codes, documents)), shape=(n_classes, len(codes))
    )
    return np.asarray((membership @ counts).toarray(), dtype=np.float64)
