"""Posteriors of documents drawn from Gaussian classes with a shared covariance."""

from __future__ import annotations

import numpy as np

from docsigma import GaussianPosterior, GaussianPrior


def draw_classes(rng, K, n_classes, spread=1.0):
    """Class means, and a root of the covariance within classes."""
    return spread * rng.normal(size=(n_classes, K)), rng.normal(size=(K, K)) / K**0.5


def draw_documents(rng, n, means, root, *, tokens=(1.0, 100.0), dtype=np.float64):
    """Posteriors of n documents under the prior N(0, I), and their classes.

    A document of N tokens sees its embedding through noise of precision about N / 10.
    """
    n_classes, K = means.shape
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    w = means[y] + rng.normal(size=(n, K)) @ root.T
    n_tokens = np.exp(rng.uniform(*np.log(tokens), size=n))
    P = n_tokens[:, None] / 10 * rng.uniform(0.5, 1.5, size=(n, K))
    h = P * w + np.sqrt(P) * rng.normal(size=(n, K))
    prior = GaussianPrior.isotropic(1.0, K)
    mean, variance = h / (P + 1), 1 / (P + 1)
    q = GaussianPosterior(
        mean.astype(dtype), variance.astype(dtype), prior=prior, n_tokens=n_tokens
    )
    return q, y
