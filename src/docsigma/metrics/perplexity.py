"""Perplexity, with the reference values to compare it with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from docsigma._array_checks import Floats
from docsigma.counts import Counts, as_counts
from docsigma.exceptions import InputError


@dataclass(frozen=True)
class Perplexity:
    """Perplexity of some documents.

    Attributes
    ----------
    corpus : float
        exp(- sum of log evidence / number of tokens).
    per_document : float
        exp(- mean over documents of log evidence / tokens).
    standard_error : float
        Of `corpus` over samples of documents (delta method), including the noise of the
        draws.
    estimator : str
        How the evidence was estimated.
    n_draws : int
        Draws per document.
    n_documents, n_tokens : int
        Documents with at least one known word, and their tokens.
    n_empty : int
        Documents left out because they have no known word.
    unigram_corpus, unigram_per_document : float
        The same for the training corpus's uni-gram, which a model must beat.
    maximum_likelihood_corpus, maximum_likelihood_per_document : float
        The same for each document's word frequencies, which no model can beat.
    log_evidence : array of shape (all documents,)
        In nats.
    """

    corpus: float
    per_document: float
    standard_error: float
    estimator: str
    n_draws: int
    n_documents: int
    n_tokens: int
    n_empty: int
    unigram_corpus: float
    unigram_per_document: float
    maximum_likelihood_corpus: float
    maximum_likelihood_per_document: float
    log_evidence: Floats = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as a JSON-safe dictionary, without `log_evidence`."""
        return {k: v for k, v in self.__dict__.items() if k != "log_evidence"}


def unigram_likelihood(
    counts: csr_matrix, log_unigram: NDArray[np.floating[Any]]
) -> Floats:
    """Return the log likelihood of each document under one common distribution."""
    return np.asarray(counts.astype(np.float64) @ log_unigram, dtype=np.float64)


def maximum_likelihood(counts: csr_matrix) -> Floats:
    """Return the log likelihood of each document under its own word frequencies."""
    counts = counts.astype(np.float64)
    tokens = np.asarray(counts.sum(axis=1)).ravel()
    terms = counts.copy()
    terms.data = counts.data * np.log(np.where(counts.data > 0, counts.data, 1.0))
    logs = np.log(np.maximum(tokens, 1e-300))
    result = np.asarray(terms.sum(axis=1)).ravel() - tokens * logs
    return np.where(tokens > 0, result, 0.0)


def _pair(values: Floats, tokens: Floats) -> tuple[float, float]:
    corpus = np.exp(-values.sum() / tokens.sum())
    return float(corpus), float(np.exp(-(values / tokens).mean()))


def perplexity(
    counts: csr_matrix | Counts,
    log_evidence: Floats,
    log_unigram: NDArray[np.floating[Any]],
    *,
    estimator: str,
    n_draws: int,
) -> Perplexity:
    """Return the perplexity of documents from their log evidence, or a bound on it.

    Parameters
    ----------
    counts : csr_matrix or Counts of shape (n, V)
    log_evidence : array of shape (n,)
    log_unigram : array of shape (V,)
        Log uni-gram of the training corpus.
    estimator, n_draws
        How `log_evidence` was estimated, for the result.
    """
    found = [
        (
            np.asarray(block.sum(axis=1), dtype=np.float64).ravel(),
            unigram_likelihood(block, log_unigram),
            maximum_likelihood(block),
        )
        for block in as_counts(counts).iter_blocks()
    ]
    tokens, unigrams, best_fits = (
        np.concatenate(part) for part in zip(*found, strict=True)
    )
    known = tokens > 0
    if not known.any():
        raise InputError(
            f"perplexity needs a known word, and none of the {len(tokens)} documents "
            "has one"
        )
    n = tokens[known]
    log_evidence = np.asarray(log_evidence, dtype=np.float64)
    evidence = log_evidence[known]
    corpus, per_document = _pair(evidence, n)
    residual = evidence - n * (evidence.sum() / n.sum())
    # Standard error of a ratio estimator; that of a single document is 0.
    spread = len(n) / max(len(n) - 1, 1) * np.square(residual).sum()
    unigram = _pair(unigrams[known], n)
    best = _pair(best_fits[known], n)
    return Perplexity(
        corpus=corpus,
        per_document=per_document,
        standard_error=float(corpus * np.sqrt(spread) / n.sum()),
        estimator=estimator,
        n_draws=n_draws,
        n_documents=int(known.sum()),
        n_tokens=int(n.sum()),
        n_empty=int((~known).sum()),
        unigram_corpus=unigram[0],
        unigram_per_document=unigram[1],
        maximum_likelihood_corpus=best[0],
        maximum_likelihood_per_document=best[1],
        log_evidence=log_evidence,
    )
