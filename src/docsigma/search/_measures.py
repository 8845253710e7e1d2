"""Measures of similarity: exact costs, and vectors to find candidates by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from docsigma import distances
from docsigma._array_checks import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.classifiers import EvidenceClassifier
    from docsigma.posterior import GaussianPosterior


class Wasserstein2:
    """Euclidean distance of means and standard deviations.

    As for all measures, the best document for a query has the least cost. `metric` is
    the one by which usearch finds candidates among `vectors`; None if it cannot.
    """

    name = "wasserstein2"
    metric: str | None = "l2sq"

    def costs(self, query: GaussianPosterior, documents: GaussianPosterior) -> Floats:
        """Return the distances."""
        return np.asarray(distances.wasserstein2(query, documents)[0])

    def vectors(self, documents: GaussianPosterior) -> NDArray[np.float32]:
        """Return means and standard deviations, whose distances are the costs."""
        both = np.hstack([documents.mean, np.sqrt(documents.variance)])
        return np.asarray(both, dtype=np.float32)


class KL:
    """Divergence KL(document || query), in nats.

    In the other direction, the wide Gaussian of a short query would be far from every
    document that is certain.
    """

    name = "kl"
    metric: str | None = None

    def costs(self, query: GaussianPosterior, documents: GaussianPosterior) -> Floats:
        """Return the divergences."""
        return np.asarray(distances.kl(documents, query)[:, 0])

    def vectors(self, documents: GaussianPosterior) -> NDArray[np.float32]:
        """Return empty vectors: there is no approximate search."""
        return np.empty((len(documents), 0), dtype=np.float32)


class SameTopic:
    """Log ratio of one class to two, according to a classifier."""

    name = "same_topic"
    metric: str | None = "cos"

    def __init__(self, classifier: EvidenceClassifier) -> None:
        self.classifier = classifier

    def costs(self, query: GaussianPosterior, documents: GaussianPosterior) -> Floats:
        """Return the log ratios, negative."""
        ratios = self.classifier.same_topic_log_ratio(query, documents)
        return np.asarray(-ratios[0])

    def vectors(self, documents: GaussianPosterior) -> NDArray[np.float32]:
        r"""Return estimates of each document's class mean, in standard deviations.

        They are :math:`B^{1/2} (I + \tilde P B)^{-1} \tilde h` with the covariance B
        between classes; their cosines rank nearly as the log ratios do.
        """
        linear, precision, between = self.classifier.marginals(documents)
        found = np.sqrt(between) * linear / (1 + between * precision)
        return np.asarray(found, dtype=np.float32)


Measure = Wasserstein2 | KL | SameTopic
