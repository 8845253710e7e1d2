"""Documents drawn from the model of the Gaussian classifier with uncertainty."""

from __future__ import annotations

import numpy as np


def draw(rng, n, K, n_classes, low=0.01, high=1.0):
    """Documents from the model, with its parameters."""
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    means = rng.normal(size=(n_classes, K))
    root = rng.normal(size=(K, K)) / K**0.5 / 2
    variance = np.exp(rng.uniform(np.log(low), np.log(high), size=(n, K)))
    mean = means[y] + rng.normal(size=(n, K)) @ root.T
    mean += np.sqrt(variance) * rng.normal(size=(n, K))
    return np.hstack([mean, variance]), y, means, root @ root.T
