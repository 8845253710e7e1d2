"""Seed words as a prior on the loadings of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from docsigma.exceptions import InputError
from docsigma.loadings import GaussianLoadings

if TYPE_CHECKING:
    from docsigma.counts import Vocabulary


def hold_seeds(
    model: Any,
    vocabulary: Vocabulary | None,
    seeds: Mapping[str, Sequence[str]],
    strength: float,
) -> None:
    """Set the loadings of an unfitted model to ones whose prior holds the seeds."""
    if vocabulary is None:
        raise InputError("`seeds` need the vocabulary of the counts")
    if not isinstance(seeds, Mapping):
        raise InputError(
            f"`seeds` must map a name to each list of words, got {type(seeds).__name__}"
        )
    usual = getattr(model, "loadings", None) in ("auto", "gaussian")
    if not usual or model.l1 is not None or model.l2 > 0:
        raise InputError(
            "`seeds` need a model with Gaussian loadings and without l1 and l2, "
            f"got {model!r}"
        )
    columns = {word: i for i, word in enumerate(vocabulary.words)}
    found = []
    for name, words in seeds.items():
        given = [words] if isinstance(words, str) else list(words)
        for word in given:
            if word not in columns:
                raise InputError(
                    f"the seed {word!r} of {name!r} is not among the {len(columns)} "
                    "words of the vocabulary"
                )
        found.append([columns[word] for word in given])
    model.set_params(
        loadings=GaussianLoadings(
            prior_precision=float(model.prior_precision),
            seeds=found,
            seed_strength=strength,
        )
    )
