"""Accuracy, cross-entropy and Brier score of predicted probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import precision_recall_fscore_support

from docsigma.metrics._probabilities import check_probabilities


def accuracy(probabilities: Any, labels: Any, *, classes: Any = None) -> float:
    """Return the share of documents whose most probable class is the right one.

    If several classes are equally probable, the first counts.

    Parameters
    ----------
    probabilities : array-like of shape (n_documents, n_classes)
        Predicted probabilities.
    labels : array-like of shape (n_documents,)
        True classes: column numbers, or names from `classes`.
    classes : array-like of shape (n_classes,), optional
        Names of the columns, such as a classifier's ``classes_``.

    Examples
    --------
    >>> accuracy([[0.9, 0.1], [0.8, 0.2]], ["a", "b"], classes=["a", "b"])
    0.5
    """
    values, codes = check_probabilities(probabilities, labels, classes)
    return float(np.mean(values.argmax(axis=1) == codes))


def cross_entropy(
    probabilities: Any, labels: Any, *, classes: Any = None, log: bool = False
) -> float:
    r"""Return the mean :math:`-\log p(\text{true class})`, in nats.

    A probability of zero is replaced by the smallest normal float64 (708 nats), so that
    one underflow does not make the mean infinite. Finite logarithms are not changed.

    Parameters
    ----------
    probabilities, labels, classes
        As for :func:`~docsigma.metrics.classification.accuracy`.
    log : bool
        Whether `probabilities` are logarithms, which cannot underflow.

    Examples
    --------
    >>> round(cross_entropy([[0.5, 0.5], [0.25, 0.75]], [0, 1]), 4)
    0.4904
    >>> cross_entropy([[-1000.0, 0.0]], [0], log=True)
    1000.0
    """
    values, codes = check_probabilities(probabilities, labels, classes, log=log)
    chosen = values[np.arange(len(codes)), codes]
    lowest = np.log(np.finfo(np.float64).tiny)
    if log:
        nats = -np.where(np.isneginf(chosen), lowest, chosen)
    else:
        with np.errstate(divide="ignore"):
            nats = -np.maximum(np.log(chosen), lowest)
    # Turns -0.0 into 0.0 if every document is certain and right.
    return float(nats.mean()) + 0.0


def brier_score(probabilities: Any, labels: Any, *, classes: Any = None) -> float:
    r"""Return the mean squared distance to the truth, summed over classes.

    .. math::
        \frac1n \sum_d \sum_\ell (p_{d\ell} - [\ell = y_d])^2,

    between 0 and 2. With two classes it is twice the binary Brier score. Lower is
    better.

    Parameters
    ----------
    probabilities, labels, classes
        As for :func:`~docsigma.metrics.classification.accuracy`.
    """
    values, codes = check_probabilities(probabilities, labels, classes)
    errors = values.copy()
    errors[np.arange(len(codes)), codes] -= 1
    return float(np.mean((errors**2).sum(axis=1)))


def confused_pairs(
    probabilities: Any, labels: Any, n: int = 10, *, classes: Any = None
) -> list[dict[str, Any]]:
    """Return the `n` pairs of classes that are confused most, most documents first.

    Parameters
    ----------
    probabilities, labels, classes
        As for :func:`accuracy`.
    n : int
        Number of pairs.

    Returns
    -------
    list of dict
        With ``label``, ``predicted``, ``n_documents``, and ``per_cent`` of the label's
        documents.

    Examples
    --------
    >>> confused_pairs([[0.9, 0.1], [0.8, 0.2]], [1, 0])
    [{'label': '1', 'predicted': '0', 'n_documents': 1, 'per_cent': 100.0}]
    """
    values, codes = check_probabilities(probabilities, labels, classes)
    names = range(values.shape[1]) if classes is None else classes
    guesses = values.argmax(axis=1)
    wrong = np.column_stack([codes, guesses])[codes != guesses]
    pairs, counts = np.unique(wrong, axis=0, return_counts=True)
    sizes = np.bincount(codes, minlength=values.shape[1])
    order = np.argsort(-counts, kind="stable")[:n]
    return [
        {
            "label": str(names[pairs[i, 0]]),
            "predicted": str(names[pairs[i, 1]]),
            "n_documents": int(counts[i]),
            "per_cent": float(100 * counts[i] / sizes[pairs[i, 0]]),
        }
        for i in order
    ]


def scores_by_class(
    probabilities: Any, labels: Any, *, classes: Any = None
) -> dict[str, Any]:
    """Return F1 averaged over classes, and precision, recall and F1 of each class.

    In per cent. The average is over the classes in `labels`; a class that is never
    predicted has precision 0.

    Parameters
    ----------
    probabilities, labels, classes
        As for :func:`~docsigma.metrics.classification.accuracy`.

    Returns
    -------
    dict
        ``macro_f1``, and ``per_class``: by name ``precision``, ``recall``, ``f1`` and
        ``n_documents``.
    """
    values, codes = check_probabilities(probabilities, labels, classes)
    n_classes = values.shape[1]
    *scores, there = precision_recall_fscore_support(
        codes, values.argmax(axis=1), labels=range(n_classes), zero_division=0
    )
    precision, recall, f1 = 100 * np.stack(scores)
    names = range(n_classes) if classes is None else np.asarray(classes).tolist()
    return {
        "macro_f1": float(f1[there > 0].mean()),
        "per_class": {
            str(name): {
                "precision": float(precision[i]),
                "recall": float(recall[i]),
                "f1": float(f1[i]),
                "n_documents": int(there[i]),
            }
            for i, name in enumerate(names)
        },
    }
