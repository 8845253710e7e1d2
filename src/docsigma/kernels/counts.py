"""Word counts as sparse tensors, and every product that costs O(nnz K)."""

from __future__ import annotations

import copy
import functools
import warnings
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from docsigma.kernels.views import Views


@functools.cache
def _hear_warnings() -> None:
    """Make the first CSR tensor of the process, and hide what torch says of it.

    It warns once that its CSR support is in beta, and that it does not check the
    indices, which scipy has already checked. Filters around every product would take a
    tenth of the time of a short document, and threads share them.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        warnings.filterwarnings("ignore", message="Sparse invariant checks")
        starts, words = torch.tensor([0, 1]), torch.tensor([0])
        torch.sparse_csr_tensor(starts, words, torch.ones(1), check_invariants=False)


def _csr(starts: Tensor, words: Tensor, values: Tensor, shape: Sequence[int]) -> Tensor:
    _hear_warnings()
    return torch.sparse_csr_tensor(
        starts, words, values, size=tuple(shape), check_invariants=False
    )


def _sparse_tensor(counts: csr_matrix, like: Tensor) -> Tensor:
    return _csr(
        torch.from_numpy(counts.indptr.astype(np.int64)).to(like.device),
        torch.from_numpy(counts.indices.astype(np.int64)).to(like.device),
        torch.from_numpy(counts.data).to(like),
        counts.shape,
    )


class CountTensor:
    r"""Word counts of some documents, on the device of a model.

    Two of its products are the linear half of a likelihood,
    :math:`x\cdot m + (xT)\cdot w`; :func:`~docsigma.kernels.softmax_moments` has the
    other half, a log-sum-exp over all words.

    Parameters
    ----------
    counts : csr_matrix of shape (n, V)
    like : Tensor
        Sets dtype and device.
    n_tokens : array of shape (n,), default=None
        Tokens of each document, if `counts` lacks some.
    views : Views, default=None
        The views, if there are several; `counts` then has all tokens.

    Attributes
    ----------
    view_tokens : Tensor of shape (n, L)
        Tokens of each document in each view.
    """

    def __init__(
        self,
        counts: csr_matrix,
        like: Tensor,
        n_tokens: NDArray[np.float64] | None = None,
        views: Views | None = None,
    ) -> None:
        self._source: Callable[[], csr_matrix] = lambda: counts
        self._like = like
        self._matrix = _sparse_tensor(counts, like)
        # Cached results that depend on the positions of the counts, not on the values.
        self._places: dict[str, tuple[Tensor, ...]] = {}
        self._occurring: tuple[Tensor, Tensor] | None = None
        tokens = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        self.known_tokens = torch.from_numpy(tokens).to(like)
        self.n_tokens = self.known_tokens
        if n_tokens is not None:
            self.n_tokens = torch.from_numpy(n_tokens).to(like)
        self.views = views
        self.view_tokens = self.n_tokens[:, None]
        if views is not None:
            self.view_tokens = torch.from_numpy(views.tokens(counts)).to(like)

    def __len__(self) -> int:
        return int(self._matrix.shape[0])

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> CountTensor:
        """Return some of the documents."""
        n_tokens = self.n_tokens.double().cpu().numpy()[rows]
        return CountTensor(self._source()[rows], self._like, n_tokens, self.views)

    def select(self, rows: Tensor) -> CountTensor:
        """Return some of the documents, gathered on their device."""
        return self[rows.numpy()] if rows.is_cpu else self._gather(rows)

    def _gather(self, rows: Tensor) -> CountTensor:
        first, lengths = self._matrix.crow_indices()[rows], self._lengths[rows]
        begin = torch.zeros(len(rows) + 1, dtype=first.dtype, device=rows.device)
        torch.cumsum(lengths, 0, out=begin[1:])
        shift = torch.repeat_interleave(first - begin[:-1], lengths)
        entries = torch.arange(len(shift), device=rows.device) + shift
        words, shape = self._matrix.col_indices(), (len(rows), self._matrix.shape[1])
        picked = copy.copy(self)
        picked._matrix = _csr(begin, words[entries], self.values[entries], shape)
        source = self._source
        picked._source = lambda: source()[rows.cpu().numpy()]
        picked._places, picked._occurring = {}, None
        picked.known_tokens = self.known_tokens[rows]
        picked.n_tokens = self.n_tokens[rows]
        picked.view_tokens = self.view_tokens[rows]
        return picked

    @property
    def shares(self) -> Tensor | None:
        """Fractions of the tokens in each view, if there are several."""
        if self.views is None:
            return None
        tokens = torch.where(self.n_tokens > 0, self.n_tokens, 1.0)
        return self.view_tokens / tokens[:, None]

    @property
    def _lengths(self) -> Tensor:
        """Number of different words of each document."""
        return self._matrix.crow_indices().diff()

    def _with(self, values: Tensor) -> Tensor:
        """Return the matrix of these words and documents with other values."""
        starts, words = self._matrix.crow_indices(), self._matrix.col_indices()
        return _csr(starts, words, values, self._matrix.shape)

    def second_moment_product(self, loadings: Tensor, vectors: Tensor) -> Tensor:
        r"""Return :math:`\sum_j x_j\, t_j\,(t_j \cdot v)`, of shape (n, K)."""
        matrix = self._matrix
        dots = torch.sparse.sampled_addmm(matrix, vectors, loadings.t(), beta=0.0)
        return self._with(dots.values() * matrix.values()) @ loadings

    def logits(self, points: Tensor, loadings: Tensor, bias: Tensor) -> Tensor:
        """Return ``bias + loadings . w`` of the words that occur, as :attr:`values`."""
        ones = self._with(torch.ones_like(self.values))
        dots = torch.sparse.sampled_addmm(ones, points, loadings.t(), beta=0.0)
        logits: Tensor = dots.values() + bias[self._matrix.col_indices()]
        return logits

    @property
    def values(self) -> Tensor:
        """The counts of the words that occur, document by document, of shape (nnz,)."""
        return self._matrix.values()

    def rows_of_values(self) -> Tensor:
        """Return the document of each of :attr:`values`."""
        if "rows" not in self._places:
            rows = torch.arange(len(self), device=self._matrix.device)
            self._places["rows"] = (torch.repeat_interleave(rows, self._lengths),)
        return self._places["rows"][0]

    def with_values(self, values: Tensor) -> CountTensor:
        """Return other counts of the same words in the same documents."""
        other = copy.copy(self)
        other._matrix = self._with(values)
        source = self._source

        def counts() -> csr_matrix:
            old = source()
            data = values.double().cpu().numpy()
            return sp.csr_matrix((data, old.indices, old.indptr), shape=old.shape)

        other._source = counts
        other._occurring = None
        sums = torch.zeros_like(self.known_tokens)
        sums.index_add_(0, self.rows_of_values(), values)
        other.known_tokens = other.n_tokens = sums
        return other

    def project(self, loadings: Tensor) -> Tensor:
        """Return ``x @ loadings`` for every document, of shape (n, columns)."""
        return self._matrix @ loadings

    def weighted_norms(self, weights: Tensor) -> Tensor:
        """Return the Euclidean norm of each document's ``x * weights``, (n,)."""
        squares = self._with(self.values.square())
        return (squares @ weights.square()[:, None])[:, 0].sqrt()

    def score(self, bias: Tensor) -> Tensor:
        """Return ``x . bias`` for every document, of shape (n,)."""
        return (self._matrix @ bias[:, None])[:, 0]

    def backproject(self, mean: Tensor) -> Tensor:
        """Return ``x.T @ mean``, of shape (V, K)."""
        total = mean.new_zeros(self._matrix.shape[1], mean.shape[1])
        self.add_backprojected(mean, total)
        return total

    def add_backprojected(self, mean: Tensor, total: Tensor) -> None:
        """Add ``x.T @ mean`` to `total`, touching only the words that occur."""
        if self._occurring is None:
            words, starts, documents, order = self._words()
            values, shape = self.values[order], (len(words), len(self))
            self._occurring = words, _csr(starts, documents, values, shape)
        words, matrix = self._occurring
        total.index_add_(0, words, matrix @ mean)

    def _words(self) -> tuple[Tensor, ...]:
        """Return the words that occur, and the counts in the order of the words.

        These are the start of each word, documents, and positions in :attr:`values`.
        """
        if "words" not in self._places:
            counts = self._source()
            numbers = np.arange(len(counts.indices))
            by_word = sp.csr_matrix(
                (numbers, counts.indices, counts.indptr), shape=counts.shape
            ).tocsc()
            found = np.flatnonzero(np.diff(by_word.indptr))
            starts = np.append(by_word.indptr[found], len(numbers))
            arrays = (found, starts, by_word.indices, by_word.data)
            self._places["words"] = tuple(
                torch.from_numpy(a.astype(np.int64)).to(self._like.device)
                for a in arrays
            )
        return self._places["words"]

    def document_frequencies(self) -> Tensor:
        """Return the number of documents that have each word, of shape (V,)."""
        counts = self._source()
        seen = np.bincount(counts.indices, minlength=counts.shape[1])
        return torch.from_numpy(seen).to(self._like)

    def word_totals(self) -> Tensor:
        """Return the tokens of each word, of shape (V,)."""
        words, n_words = self._matrix.col_indices(), self._matrix.shape[1]
        totals = torch.zeros(n_words, dtype=torch.float64, device=words.device)
        return totals.index_add_(0, words, self.values.double()).to(self._like)
