"""A corpus drawn from a known Bayesian subspace multinomial model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.special import log_softmax, softmax

from docsigma.corpora.documents import Corpus, Documents
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


DESCRIPTION = "Counts drawn from a known model, with the embeddings they came from"


@dataclass(frozen=True, eq=False)
class SyntheticTruth:
    """The parameters that a synthetic corpus was drawn from.

    Attributes
    ----------
    log_unigram : ndarray, shape (n_features,)
        The log uni-gram m; its exponentials sum to one.
    word_loadings : ndarray, shape (n_features, n_components)
        The total variability matrix T.
    train_embeddings, test_embeddings : ndarray, shape (n_documents, n_components)
        The embedding w of each document.
    prior_precision : float
        The precision lambda of the prior of w.
    """

    log_unigram: NDArray[np.float64]
    word_loadings: NDArray[np.float64]
    train_embeddings: NDArray[np.float64]
    test_embeddings: NDArray[np.float64]
    prior_precision: float


def load_synthetic(
    *,
    n_train: int = 400,
    n_test: int = 100,
    n_features: int = 200,
    n_components: int = 5,
    prior_precision: float = 1.0,
    loading_scale: float = 0.5,
    mean_tokens: float = 100,
    random_state: int = 0,
) -> Corpus:
    r"""Draw documents from the generative model.

    .. math::

        w &\sim \mathcal{N}(0, \lambda^{-1} I) \\
        \theta &= \mathrm{softmax}(m + T w) \\
        x &\sim \mathrm{Multinomial}(\theta, N), \quad N - 1 \sim \mathrm{Poisson}

    Parameters
    ----------
    n_train, n_test : int
        Documents to train on and to test on.
    n_features, n_components : int
        Words, and size of the embeddings.
    prior_precision : float
        :math:`\lambda`.
    loading_scale : float
        Standard deviation of the entries of :math:`T`; with 0 all documents have the
        same word probabilities.
    mean_tokens : float
        Mean of :math:`N`, at least 1: every document has a token.
    random_state : int
        Seed of the generator; the same seed gives the same corpus.

    Examples
    --------
    >>> corpus = load_synthetic(n_train=3, n_test=2, n_features=10)
    >>> corpus.train.counts.shape, corpus.test.words[:2]
    ((3, 10), ['word000', 'word001'])
    >>> corpus.truth.word_loadings.shape
    (10, 5)
    """
    whole = {
        "n_train": (n_train, 1),
        "n_test": (n_test, 1),
        "n_features": (n_features, 2),
        "n_components": (n_components, 1),
        "random_state": (random_state, 0),
    }
    for name, (value, least) in whole.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise InputError(f"`{name}` must be a whole number, got {value!r}")
        if value < least:
            raise InputError(f"`{name}` must be at least {least}, got {value}")
    if not 0 < prior_precision < np.inf:
        raise InputError(f"`prior_precision` must be positive, got {prior_precision}")
    if not 0 <= loading_scale < np.inf:
        raise InputError(f"`loading_scale` must not be negative, got {loading_scale}")
    if not 1 <= mean_tokens <= 1e9:
        raise InputError(f"`mean_tokens` must be at least 1, got {mean_tokens}")
    generator = np.random.default_rng(random_state)
    truth = SyntheticTruth(
        log_unigram=log_softmax(generator.standard_normal(n_features)),
        word_loadings=loading_scale
        * generator.standard_normal((n_features, n_components)),
        train_embeddings=generator.standard_normal((n_train, n_components))
        / np.sqrt(prior_precision),
        test_embeddings=generator.standard_normal((n_test, n_components))
        / np.sqrt(prior_precision),
        prior_precision=float(prior_precision),
    )
    width = max(3, len(str(n_features - 1)))
    words = [f"word{column:0{width}d}" for column in range(n_features)]
    return Corpus(
        "synthetic",
        _draw("train", truth, truth.train_embeddings, words, mean_tokens, generator),
        _draw("test", truth, truth.test_embeddings, words, mean_tokens, generator),
        description=DESCRIPTION,
        truth=truth,
    )


def _draw(
    part: str,
    truth: SyntheticTruth,
    embeddings: NDArray[np.float64],
    words: list[str],
    mean_tokens: float,
    generator: np.random.Generator,
) -> Documents:
    n_tokens = 1 + generator.poisson(mean_tokens - 1, size=len(embeddings))
    rows = []
    # In blocks, so that documents x words is never in memory.
    for start in range(0, len(embeddings), 256):
        block = slice(start, start + 256)
        logits = truth.log_unigram + embeddings[block] @ truth.word_loadings.T
        drawn = generator.multinomial(n_tokens[block], softmax(logits, axis=1))
        rows.append(sparse.csr_matrix(drawn.astype(np.float32)))
    counts = sparse.csr_matrix(sparse.vstack(rows, format="csr"))
    counts.sort_indices()
    return Documents(
        ids=[f"{part}-{number}" for number in range(1, len(embeddings) + 1)],
        counts=counts,
        words=words,
        source=f"synthetic, {part}",
    )
