"""What a prediction does not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma._array_checks import Floats
from docsigma.posterior import GaussianPosterior

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Uncertainty:
    r"""Numbers on the doubt about each document, of shape (n_documents,).

    Attributes
    ----------
    entropy : ndarray
        Of the predicted classes, in nats: the number that finds wrong predictions.
    epistemic : ndarray
        The part of it that more words would remove, in nats: the entropy of the mean
        prediction over draws of the embedding less the mean of their entropies, from 0
        to the entropy.
    typicality : ndarray
        How like the training documents it is; low for topics that training has not
        seen. It has no unit: compare it among documents.
    """

    entropy: Floats
    epistemic: Floats
    typicality: Floats

    @classmethod
    def of_draws(
        cls, log_proba: Floats, draws: Iterable[Floats], typicality: Floats
    ) -> Uncertainty:
        """Return the uncertainty of predictions, and of those for drawn embeddings."""
        mean, inner, n_draws = np.zeros_like(log_proba), np.zeros(len(log_proba)), 0
        for drawn in draws:
            mean += np.exp(drawn)
            inner += entropies(drawn)
            n_draws += 1
        with np.errstate(divide="ignore"):
            outer = entropies(np.log(mean / n_draws))
        entropy = entropies(log_proba)
        epistemic = np.clip(outer - inner / n_draws, 0.0, entropy)
        return cls(entropy, epistemic, typicality)


def entropies(log_proba: Floats) -> Floats:
    """Return the entropy of each row of log probabilities, in nats."""
    proba = np.exp(log_proba)
    surprise = np.where(proba > 0, log_proba, 0.0)
    return np.asarray(-(proba * surprise).sum(axis=1)) + 0.0


def embedding_uncertainty(
    classifier: Any,
    features: Any,
    posterior: GaussianPosterior | None = None,
    n_draws: int = 32,
    random_state: int = 0,
) -> Uncertainty:
    """Return the uncertainty of a classifier that sees nothing but embeddings.

    `features` are what it takes, `posterior` the Gaussians if those are only their
    means; of points nothing is drawn, and the epistemic part is 0. Typicality is the
    likelihood of the best class relative to none, for classifiers that have it, else
    the density under all classes or the largest score.
    """
    gaussians = features if posterior is None else posterior
    if isinstance(gaussians, GaussianPosterior):
        draws = gaussians.draws(n_draws, random_state, same_noise=True)
    else:
        draws = np.asarray(features)[None]
    log_proba = classifier.predict_log_proba(features)
    if hasattr(classifier, "log_likelihoods"):
        typicality = classifier.log_likelihoods(features).max(axis=1)
    elif hasattr(classifier, "score_samples"):
        typicality = classifier.score_samples(features)
    else:
        typicality = classifier._class_scores(features).max(axis=1)
    predict = getattr(classifier, "log_proba_at", classifier.predict_log_proba)
    return Uncertainty.of_draws(log_proba, map(predict, draws), typicality)
