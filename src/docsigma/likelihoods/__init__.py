"""Likelihoods of a document's counts given its embedding: :math:`p(x | w)`."""

from __future__ import annotations

from docsigma.likelihoods._base import DocumentLikelihood, Likelihood, LikelihoodTerms
from docsigma.likelihoods.multinomial import Multinomial
from docsigma.likelihoods.polya import Polya

__all__ = [
    "LIKELIHOODS",
    "DocumentLikelihood",
    "Likelihood",
    "LikelihoodTerms",
    "Multinomial",
    "Polya",
]

LIKELIHOODS: dict[str, type[Likelihood]] = {
    "multinomial": Multinomial,
    "polya": Polya,
}
