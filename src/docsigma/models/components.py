"""The words that describe the components of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.counts import Vocabulary
    from docsigma.models._count_model import CountModel


def known_words(model: CountModel) -> Vocabulary:
    """Return the vocabulary of a model, or raise an InputError if it has none."""
    views = getattr(model, "views_", None)
    if views is not None:
        raise InputError(
            f"the model has the views {', '.join(views)}: choose one by `view`, or by "
            "`language`"
        )
    if model.vocabulary_ is None:
        raise InputError(
            "the model does not know its words, so it can embed counts but no texts: "
            "call `set_vocabulary` before saving"
        )
    return model.vocabulary_


def centred_loadings(model: CountModel) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the uni-gram, and the loadings (V, K) less their mean under it."""
    unigram = np.exp(model.training_log_unigram_)
    loadings = model.components_.T.astype(np.float64)
    return unigram, loadings - unigram @ loadings


def strongest_words(
    model: CountModel, unigram: NDArray[Any], logits: NDArray[Any], n_words: int
) -> list[str]:
    r"""Return the words whose probability grows most when logits change by `logits`.

    Words are ordered by :math:`\sqrt{p_i}\, t_i \delta`: without the root of the
    frequency, words seen two or three times would come first.
    """
    words = known_words(model).words
    order = np.argsort(-(np.sqrt(unigram) * logits), kind="stable")[:n_words]
    return [words[column] for column in order]


@dataclass(frozen=True)
class Dimension:
    """The words at the two ends of one component.

    Attributes
    ----------
    index : int
        Number of the component.
    top, bottom : list of str
        Words that become more likely for large and for small values, strongest first.
    weight : float
        Standard deviation of its loadings under the uni-gram: its importance.
    """

    index: int
    top: list[str]
    bottom: list[str]
    weight: float


def describe_dimensions(model: CountModel, n_words: int = 10) -> list[Dimension]:
    """Return the words at both ends of each component, largest weight first.

    Examples
    --------
    >>> from docsigma import BayesianSMM, load_corpus
    >>> train = load_corpus("synthetic").train
    >>> smm = BayesianSMM(3, max_iter=20, random_state=0).fit(train.counts)
    >>> len(describe_dimensions(smm.set_vocabulary(train.words))[0].top)
    10
    """
    unigram, centred = centred_loadings(model)
    weights = np.sqrt(unigram @ (centred * centred))
    result = []
    for index in np.argsort(-weights, kind="stable"):
        logits = centred[:, index]
        top, bottom = (
            strongest_words(model, unigram, ends, n_words) for ends in (logits, -logits)
        )
        result.append(Dimension(int(index), top, bottom, float(weights[index])))
    return result
