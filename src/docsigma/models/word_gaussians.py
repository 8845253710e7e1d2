"""Words as Gaussians, and their similarities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from docsigma.exceptions import InputError
from docsigma.loadings import GaussianLoadings
from docsigma.posterior import GaussianPosterior, GaussianPrior

if TYPE_CHECKING:
    from docsigma.models._subspace_model import SubspaceModel


def _gaussian_loadings(model: SubspaceModel) -> GaussianLoadings:
    check_is_fitted(model)
    loadings = model.parts_.loadings
    if not isinstance(loadings, GaussianLoadings):
        raise InputError(
            f"words have no variances under the loadings {loadings!r}: fit with "
            'loadings="gaussian"'
        )
    return loadings


def word_gaussians(model: SubspaceModel) -> GaussianPosterior:
    """Return the Gaussians of the words, with their prior."""
    variance = _gaussian_loadings(model).prior_variance_
    assert model.components_variance_ is not None
    return GaussianPosterior(
        model.components_.T,
        model.components_variance_.T,
        prior=GaussianPrior(np.zeros(len(variance)), 1 / variance),
    )


def similar_words(
    model: SubspaceModel, word: str | int, n: int
) -> list[tuple[Any, float]]:
    """Return the `n` words most similar to a word, with their similarities."""
    words, unit = word_gaussians(model), _gaussian_loadings(model).second_moment_
    if n < 1:
        raise InputError(f"`n` must be at least 1, got {n}")
    vocabulary = model.vocabulary_
    terms = None if vocabulary is None else list(vocabulary.words)
    row = _number(word, terms, len(words))
    mean = words.mean.astype(np.float64)
    length = np.sqrt((mean**2 + words.variance) @ unit)
    alike = (mean * unit) @ mean[row] / (length * length[row])
    alike[row] = -np.inf
    best = np.argsort(-alike, kind="stable")[: min(n, len(alike) - 1)]
    return [(int(i) if terms is None else terms[i], float(alike[i])) for i in best]


def _number(word: str | int, terms: list[str] | None, n_words: int) -> int:
    if not isinstance(word, str):
        if not 0 <= word < n_words:
            raise InputError(f"`word` must be from 0 to {n_words - 1}, got {word}")
        return int(word)
    if terms is None:
        raise InputError(
            f"the model has no vocabulary to look up {word!r} in: pass the word's "
            "number, or call `set_vocabulary`"
        )
    if word not in terms:
        raise InputError(f"{word!r} is not among the {n_words} words of the vocabulary")
    return terms.index(word)
