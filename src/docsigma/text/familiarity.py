"""How likely the words of texts are under a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from docsigma._array_checks import Floats
from docsigma.counts import as_counts
from docsigma.exceptions import InputError
from docsigma.models.components import known_words


def familiarity_of(model: Any, texts: Sequence[str]) -> tuple[Floats, Floats]:
    """Return the log evidence per word of each text, and its number of words.

    A word that the model does not know is as unlikely as its rarest one.
    """
    if model.gives_points:
        raise InputError("p-values need Gaussians, and the model gives points")
    counted = known_words(model).count(texts, verbose=model.verbose)
    return familiarity_of_counts(model, counted.counts, counted.n_unknown)


def familiarity_of_counts(
    model: Any, counts: Any, n_unknown: Any
) -> tuple[Floats, Floats]:
    """Return what :func:`familiarity_of` does, of texts that are already counted."""
    known = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    lengths = known + n_unknown
    if not len(lengths):
        return lengths, lengths
    # A bound without draws: it depends on nothing but the text.
    evidence = model._evidence(as_counts(counts), "jensen", 1, None)
    evidence += n_unknown * model.training_log_unigram_.min()
    return evidence / np.maximum(lengths, 1.0), lengths
