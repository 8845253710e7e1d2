"""Document embeddings with their uncertainties.

Word counts go in; each document comes out as a Gaussian: its mean is the embedding,
its covariance the uncertainty.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from docsigma._threads import wait_passively

if TYPE_CHECKING:
    from docsigma.classifiers import (
        CrossValidatedLogisticRegression as CrossValidatedLogisticRegression,
    )
    from docsigma.classifiers import EvidenceClassifier as EvidenceClassifier
    from docsigma.classifiers import (
        GaussianLinearClassifier as GaussianLinearClassifier,
    )
    from docsigma.classifiers import HybridClassifier as HybridClassifier
    from docsigma.classifiers import (
        UncertainGaussianClassifier as UncertainGaussianClassifier,
    )
    from docsigma.corpora import Corpus as Corpus
    from docsigma.corpora import Documents as Documents
    from docsigma.corpora import load_corpus as load_corpus
    from docsigma.corpora import read_documents as read_documents
    from docsigma.counts import Vocabulary as Vocabulary
    from docsigma.exceptions import InputError as InputError
    from docsigma.metrics import Perplexity as Perplexity
    from docsigma.models import BayesianSMM as BayesianSMM
    from docsigma.models import load_model as load_model
    from docsigma.posterior import GaussianPosterior as GaussianPosterior
    from docsigma.posterior import GaussianPrior as GaussianPrior
    from docsigma.search import DocumentIndex as DocumentIndex
    from docsigma.search import GaussianIndex as GaussianIndex
    from docsigma.text import DocumentEmbedder as DocumentEmbedder
    from docsigma.text import ParallelEmbedder as ParallelEmbedder
    from docsigma.text import TopicClassifier as TopicClassifier

__version__ = "0.2.0"

wait_passively()

# Names load when first used: torch and scikit-learn take seconds to import, and
# `docsigma --help` needs neither.
_HOME = {
    "BayesianSMM": "docsigma.models",
    "Corpus": "docsigma.corpora",
    "CrossValidatedLogisticRegression": "docsigma.classifiers",
    "DocumentEmbedder": "docsigma.text",
    "DocumentIndex": "docsigma.search",
    "Documents": "docsigma.corpora",
    "EvidenceClassifier": "docsigma.classifiers",
    "GaussianIndex": "docsigma.search",
    "GaussianLinearClassifier": "docsigma.classifiers",
    "GaussianPosterior": "docsigma.posterior",
    "GaussianPrior": "docsigma.posterior",
    "HybridClassifier": "docsigma.classifiers",
    "InputError": "docsigma.exceptions",
    "ParallelEmbedder": "docsigma.text",
    "Perplexity": "docsigma.metrics",
    "TopicClassifier": "docsigma.text",
    "UncertainGaussianClassifier": "docsigma.classifiers",
    "Vocabulary": "docsigma.counts",
    "load_corpus": "docsigma.corpora",
    "load_model": "docsigma.models",
    "read_documents": "docsigma.corpora",
}
__all__ = [*sorted(_HOME), "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    from docsigma._extensions import install_hint

    if where := install_hint("classes", name):
        # Not AttributeError: `from docsigma import ...` would drop its message.
        raise ImportError(
            f"{name} is {where}, then `from docsigma_paper import {name}`"
        )
    raise AttributeError(f"module 'docsigma' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
