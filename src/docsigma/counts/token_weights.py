"""Word weights for topic identification: bursts damped, common words discounted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils.validation import check_is_fitted

from docsigma.counts.memory import estimator_counts

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import ArrayLike, NDArray

    from docsigma.counts._base import Counts


class TokenWeights(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Weight word counts before a subspace model sees them.

    .. math::
        \tilde x_{dj} = g(x_{dj})\, c\,\log\frac{1 + D}{1 + D_j}, \qquad
        g(x) = \log(1 + x) \text{ or } x,

    where :math:`D_j` of the :math:`D` training documents have the word j, and the
    constant c makes the weights of all training tokens 1 on average. A word that has
    occurred once is likely to occur again, which a multinomial ignores: the logarithm
    damps this. Words that occur in most documents tell classes apart the least.

    It is meant for topic identification. The likelihood of weighted counts is a
    pseudo-likelihood: a model's perplexity is not that of the documents.

    Parameters
    ----------
    damp : bool, default=True
        Whether g is the logarithm.
    idf : bool, default=True
        Whether words are weighted by their document frequencies.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features,)
        Factor of each word.
    n_features_in_ : int
        Size of the vocabulary.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from docsigma import BayesianSMM, load_corpus
    >>> corpus = load_corpus("synthetic")
    >>> model = make_pipeline(TokenWeights(), BayesianSMM(5, random_state=0))
    >>> model.fit_transform(corpus.train.counts).shape
    (400, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "damp": ["boolean"],
        "idf": ["boolean"],
    }

    weights_: NDArray[Any]
    n_features_in_: int

    def __init__(self, *, damp: bool = True, idf: bool = True) -> None:
        self.damp = damp
        self.idf = idf

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike | sp.csr_matrix | Counts,
        y: object = None,  # noqa: ARG002
    ) -> Self:
        """Learn the weights of the words.

        Parameters
        ----------
        X : array, sparse matrix or Counts of shape (n_documents, n_features)
            Word counts of the training documents.
        y : ignored
            For scikit-learn.

        Returns
        -------
        self
        """
        counts = estimator_counts(self, X, reset=True)
        n_documents, n_features = counts.shape
        weights = np.ones(n_features)
        if self.idf:
            having = np.zeros(n_features)
            for block in counts.iter_blocks():
                present = block.indices[block.data != 0]
                having += np.bincount(present, minlength=n_features)
            weights = np.log((1 + n_documents) / (1 + having))
        totals = counts.word_totals
        mean = float(totals @ weights) / max(float(totals.sum()), 1e-300)
        # The mean is 0 if every word is in every document.
        self.weights_ = weights / mean if mean > 0 else np.ones_like(weights)
        return self

    def transform(self, X: ArrayLike | sp.csr_matrix | Counts) -> sp.csr_matrix:
        """Weight counts.

        Parameters
        ----------
        X : array, sparse matrix or Counts of shape (n_documents, n_features)
            Word counts.

        Returns
        -------
        csr_matrix of shape (n_documents, n_features)
            In memory; float32, or float64 where X is.
        """
        check_is_fitted(self)
        # A copy: X may be the caller's matrix itself.
        counts = estimator_counts(self, X, reset=False)[:].copy()
        if self.damp:
            counts.data = np.log1p(counts.data)
        counts.data *= self.weights_[counts.indices].astype(counts.dtype)
        counts.eliminate_zeros()
        return counts
