"""Measures of similarity: exact costs, and vectors to find candidates by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.special import logsumexp
from sklearn.preprocessing import normalize

from docsigma import distances
from docsigma._array_checks import Floats
from docsigma.classifiers._factors import mean_evidence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.classifiers import EvidenceClassifier
    from docsigma.posterior import GaussianPosterior

METRICS = (
    *("joint", "words", "same_topic", "same_text"),
    *("cosine", "wasserstein2", "kl"),
)
# Share of the prior's variance that lies within topics, where no label says it. On
# training texts of 20 Newsgroups and of docstrings, shares from 0.05 to 0.2 differ by
# 0.01 in mean average precision.
WITHIN_TOPICS = 0.1


class Wasserstein2:
    """Euclidean distance of means and standard deviations.

    As for all measures, the best document for a query has the least cost, and `sign`
    times the cost is what is shown. `metric` is the one by which usearch finds
    candidates among `vectors`; None if it cannot. Costs are between a query and
    documents that `prepare` has seen.
    """

    metric: str | None = "l2sq"
    sign = 1

    def prepare(self, documents: GaussianPosterior) -> Any:
        """Return what costs are computed from, one row per document."""
        return documents

    def costs(self, query: GaussianPosterior, documents: Any) -> Floats:
        """Return the distances."""
        return np.asarray(distances.wasserstein2(query, documents)[0])

    def vectors(self, documents: GaussianPosterior) -> NDArray[np.float32]:
        """Return means and standard deviations, whose distances are the costs."""
        both = np.hstack([documents.mean, np.sqrt(documents.variance)])
        return np.asarray(both, dtype=np.float32)


class KL(Wasserstein2):
    """Divergence KL(document || query), in nats.

    In the other direction, the wide Gaussian of a short query would be far from every
    document that is certain.
    """

    metric: str | None = None

    def costs(self, query: GaussianPosterior, documents: Any) -> Floats:
        """Return the divergences."""
        return np.asarray(distances.kl(documents, query)[:, 0])


class Cosine:
    """Cosine of the means, less the prior's mean if there is one."""

    metric: str | None = "cos"
    sign = -1

    def prepare(self, documents: GaussianPosterior) -> Any:
        """Return the means, scaled to length 1."""
        return self.vectors(documents)

    def costs(self, query: GaussianPosterior, documents: Any) -> Floats:
        """Return the cosines, negative."""
        return np.asarray(-documents @ self.vectors(query)[0], dtype=np.float64)

    def vectors(self, documents: GaussianPosterior) -> NDArray[np.float32]:
        """Return the means, scaled to length 1."""
        prior = documents.prior
        means = documents.mean - (0.0 if prior is None else prior.mean)
        return np.asarray(normalize(means), dtype=np.float32)


@dataclass(frozen=True)
class _AboutTopics:
    """What documents say of the means of their topics."""

    linear: NDArray[Any]
    precision: NDArray[Any]
    evidence: NDArray[Any]

    def __len__(self) -> int:
        return len(self.linear)

    def __getitem__(self, rows: Any) -> _AboutTopics:
        return _AboutTopics(
            self.linear[rows], self.precision[rows], self.evidence[rows]
        )


class SameTopic:
    r"""Log ratio of one topic to two.

    How far documents of one topic lie apart is what a classifier has learned from
    labels. Without one, topics have nine tenths of the prior's variance and documents
    around their topic's mean the rest, dimension by dimension.
    """

    metric: str | None = "cos"
    sign = -1
    # Share of the prior's variance within topics, if no classifier has learned it.
    within = WITHIN_TOPICS

    def __init__(self, classifier: EvidenceClassifier | None = None) -> None:
        self.classifier = classifier

    def prepare(self, documents: GaussianPosterior) -> _AboutTopics:
        """Return what documents say of the means of their topics."""
        linear, precision, between = self._marginals(documents)
        self._between = between.astype(np.float32)
        evidence = mean_evidence(linear, precision, between)
        parts = (part.astype(np.float32) for part in (linear, precision, evidence))
        return _AboutTopics(*parts)

    def costs(self, query: GaussianPosterior, documents: Any) -> Floats:
        """Return the log ratios, negative."""
        own = self.prepare(query)
        linear, precision = (
            documents.linear + own.linear,
            documents.precision + own.precision,
        )
        between: Any = self._between
        joint = mean_evidence(linear, precision, between)
        return np.asarray(documents.evidence + own.evidence - joint, dtype=np.float64)

    def vectors(self, documents: GaussianPosterior) -> NDArray[np.float32]:
        r"""Return estimates of each document's topic mean, in standard deviations.

        They are :math:`B^{1/2} (I + \tilde P B)^{-1} \tilde h` with the covariance B
        between topics; their cosines rank nearly as the log ratios do.
        """
        linear, precision, between = self._marginals(documents)
        found = np.sqrt(between) * linear / (1 + between * precision)
        return np.asarray(found, dtype=np.float32)

    def familiarity(self, q: GaussianPosterior) -> Floats:
        """Return log ratios of the classifier's classes to a topic that it lacks."""
        known = self.classifier
        assert known is not None
        linear, precision, between = known.marginals(q)
        covariance = torch.from_numpy(known.covariance_).to(known._information.matrix)
        axes = known._information.axes(covariance)[0].cpu().numpy()
        means = np.linalg.solve(axes, (known.means_ - known.centre_).T)
        scores = linear @ means - precision @ np.square(means) / 2 + known.log_prior_
        of_classes = logsumexp(scores, axis=1)
        return np.asarray(of_classes - mean_evidence(linear, precision, between))

    def _marginals(self, q: GaussianPosterior) -> tuple[Floats, Floats, Floats]:
        if self.classifier is not None:
            return self.classifier.marginals(q)
        prior = q.require_prior()
        total = 1 / prior.precision_diagonal()
        variance = q.variance.astype(np.float64)
        precision = np.maximum(1 / variance - 1 / total, 0.0)
        gain = 1 / (1 + self.within * total * precision)
        away = (q.mean - prior.mean) / variance
        return gain * away, gain * precision, (1 - self.within) * total


class SameText(SameTopic):
    r"""Log ratio of one document to two: nothing of the variance is within it.

    For texts that share no words: translations, or other views of a document. It is
    :func:`~docsigma.distances.same_document`.
    """

    within = 0.0

    def __init__(self) -> None:
        super().__init__()

    @staticmethod
    def probabilities(ratios: Floats, n_documents: int) -> Floats:
        """Return the probability of each document being the query's.

        Before anything is read, the query's document is in the index with a probability
        of one half, and any of its documents is as likely as any other.
        """
        total = np.logaddexp(np.log(max(n_documents, 1)), logsumexp(ratios))
        return np.asarray(np.exp(ratios - total))


Measure = Wasserstein2 | Cosine | SameTopic


def measure_of(metric: str, classifier: EvidenceClassifier | None) -> Measure:
    """Return the measure of Gaussians that a metric uses."""
    others: dict[str, type[Measure]]
    others = {"cosine": Cosine, "wasserstein2": Wasserstein2, "kl": KL}
    others["same_text"] = SameText
    return others[metric]() if metric in others else SameTopic(classifier)
