"""The paper's related models as estimators: LDA and CTM of tomotopy, gensim's PV-DBOW.

They embed counts as points; the order of words plays no part in any of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray


def installed(library: str) -> bool:
    """Return whether a library is there."""
    return importlib.util.find_spec(library) is not None


def _need(library: str) -> Any:
    try:
        with warnings.catch_warnings():
            # tomotopy mistakes a warning in its own set-up for a missing library.
            warnings.simplefilter("ignore")
            return importlib.import_module(library)
    except ImportError as error:
        raise InputError(
            f"this row needs {library.split('.')[0]}: "
            "pip install docsigma-paper[baselines]"
        ) from error


def _tokens(counts: sp.csr_matrix) -> list[list[str]]:
    """Return counts as words, one list per document."""
    words = np.array([f"w{column}" for column in range(counts.shape[1])], object)
    tokens = np.repeat(words[counts.indices], counts.data.astype(int))
    lengths = np.asarray(counts.sum(axis=1)).ravel().astype(int)
    return [part.tolist() for part in np.split(tokens, np.cumsum(lengths)[:-1])]


class GibbsTopics(TransformerMixin, BaseEstimator):
    """Topic proportions by Gibbs sampling in tomotopy.

    Parameters
    ----------
    n_components : int, default=100
        Topics.
    kind : {"lda", "ctm"}, default="lda"
        Latent Dirichlet allocation, or the correlated topic model.
    n_iter, inference_n_iter : int, default=300 and 100
        Sweeps in training, and for new documents.
    random_state : int, default=0
        The library's seed.
    """

    KINDS = {"lda": "LDAModel", "ctm": "CTModel"}  # noqa: RUF012

    def __init__(
        self,
        n_components: int = 100,
        *,
        kind: str = "lda",
        n_iter: int = 300,
        inference_n_iter: int = 100,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kind = kind
        self.n_iter = n_iter
        self.inference_n_iter = inference_n_iter
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: object = None) -> Self:  # noqa: ARG002
        """Learn topics; documents of no words are left out."""
        make = getattr(_need("tomotopy"), self.KINDS[self.kind])
        # One worker: with more, results vary from run to run.
        self.model_ = make(k=self.n_components, seed=self.random_state + 1)
        for tokens in _tokens(X):
            if tokens:
                self.model_.add_doc(tokens)
        self.model_.train(self.n_iter, workers=1)
        return self

    def transform(self, X: sp.csr_matrix) -> NDArray[Any]:
        """Return proportions, uniform for a document without words."""
        documents = _tokens(X)
        proportions = np.full((len(documents), self.n_components), 1.0)
        proportions /= self.n_components
        filled = [row for row, tokens in enumerate(documents) if tokens]
        made = [self.model_.make_doc(documents[row]) for row in filled]
        if made:
            proportions[filled], _ = self.model_.infer(
                made, iterations=self.inference_n_iter, workers=1
            )
        return proportions


class ParagraphVectors(TransformerMixin, BaseEstimator):
    """Paragraph vectors (PV-DBOW) of gensim.

    Parameters
    ----------
    n_components : int, default=100
        Size of a vector.
    n_epochs : int, default=20
        Epochs of training, and for new documents.
    random_state : int, default=0
        The library's seed.
    """

    def __init__(
        self, n_components: int = 100, *, n_epochs: int = 20, random_state: int = 0
    ) -> None:
        self.n_components = n_components
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, X: sp.csr_matrix, y: object = None) -> Self:  # noqa: ARG002
        """Learn words and vectors."""
        library = _need("gensim.models.doc2vec")
        documents = [
            library.TaggedDocument(words, [row]) for row, words in enumerate(_tokens(X))
        ]
        self.model_ = library.Doc2Vec(
            documents,
            dm=0,
            vector_size=self.n_components,
            epochs=self.n_epochs,
            min_count=1,
            workers=1,
            seed=self.random_state + 1,
        )
        return self

    def transform(self, X: sp.csr_matrix) -> NDArray[Any]:
        """Infer a vector for each document, whatever other documents there are."""
        return np.stack([self._infer(words) for words in _tokens(X)])

    def _infer(self, words: list[str]) -> NDArray[np.float32]:
        """Do as gensim's ``infer_vector``, from a start that does not change.

        Gensim's is seeded by Python's hash of the words, another one in every
        process, and its noise by all documents before.
        """
        model = self.model_
        model.random = np.random.RandomState(self.random_state + 1)
        size = model.vector_size
        vector = (model.random.random_sample((1, size)) - 0.5) / size
        vectors: NDArray[np.float32] = vector.astype(np.float32)
        work, unlocked = np.zeros(size, np.float32), np.ones(1, np.float32)
        # Gensim's own rates: from alpha down to min_alpha, an epoch each.
        for alpha in np.linspace(model.alpha, model.min_alpha, self.n_epochs):
            _need("gensim.models.doc2vec").train_document_dbow(
                model,
                words,
                [0],
                alpha,
                work,
                learn_words=False,
                learn_hidden=False,
                doctag_vectors=vectors,
                doctags_lockf=unlocked,
            )
        first: NDArray[np.float32] = vectors[0]
        return first
