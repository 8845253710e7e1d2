"""Probabilities of one topic, where a classifier knows classes among the topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from docsigma._array_checks import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray


class KnownClasses:
    r"""Topics of an index: the classes of a classifier, and topics that it lacks.

    With :math:`P(\ell \mid d)` for the classes and :math:`P(0 \mid d)` for a new topic,
    a query x and a document d are of one topic with the probability

    .. math::

        \sum_\ell P(\ell \mid x) P(\ell \mid d)
        + P(0 \mid x) P(0 \mid d) \frac{s R}{s R + 1 - s},

    where R is their ratio of one topic to two, and s the share of pairs of one topic,
    which new topics have as the classes do.

    Parameters
    ----------
    classes : ndarray of shape (n_documents, n_classes)
        :math:`P(\ell \mid d)`; what a row lacks of 1 is :math:`P(0 \mid d)`.
    """

    def __init__(self, classes: NDArray[np.float32]) -> None:
        self._classes = classes
        self._new = np.maximum(1 - classes.sum(axis=1, dtype=np.float64), 0.0)
        # As if every class had one document more.
        sizes = classes.sum(axis=0, dtype=np.float64) + 1
        share = float(np.square(sizes / sizes.sum()).sum())
        self._prior = np.log(share) - np.log1p(-share)

    def alike(self, proba: Floats) -> Floats:
        """Return the probability of each document to be of a query's class."""
        return np.asarray(self._classes @ proba, dtype=np.float64)

    def same_topic(
        self,
        proba: Floats,
        familiarity: float,
        rows: NDArray[np.intp],
        ratios: Floats,
        chances: Floats | None = None,
    ) -> Floats:
        """Return the probabilities that a query and some documents are of one topic.

        Parameters
        ----------
        proba : ndarray of shape (n_classes,)
            Of the query, if it is of one of the classes.
        familiarity : float
            Its log ratio of the classes to a new topic, by the classifier.
        rows, ratios : ndarray of shape (n_rows,)
            Documents, and their log ratios of one topic to two: all, or at least those
            with the largest ones.
        chances : ndarray of shape (n_rows,), default=None
            Probabilities of one topic by the ratios alone, where they were learned.
        """
        if chances is None:
            chances = expit(self._prior + ratios)
        n, new, share = len(self._new), self._new[rows], float(self._new.mean())
        top = float(ratios.max(initial=0.0))
        scale = max(top, familiarity)
        # Two estimates for a known class, and for a new topic: by the neighbours of the
        # query, and by what is known of classes, or of topics in general.
        near = np.exp(ratios - scale) / n
        known = near @ (1 - new) + np.exp(familiarity - scale) * (1 - share)
        other = near @ new + np.exp(-scale) * share
        total = known + other
        is_new = float(other / total) if total else share
        alike = (1 - is_new) * self.alike(proba)[rows]
        return np.asarray(alike + is_new * new * chances)
