"""Tokenized documents on a device, and how batches are cut from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from docsigma_paper.classifiers.ulmfit.tokens import PADDING, SPECIAL_WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor


_PADDING = SPECIAL_WORDS.index(PADDING)
_LARGEST_POOL = 50
_SMALLEST_SHARE = 10


@dataclass(frozen=True, eq=False)
class TokenDocuments:
    """Word numbers of documents, one document after the other.

    Attributes
    ----------
    tokens : Tensor of int64, shape (n_tokens,)
        Word numbers, on the device that computes.
    starts, lengths : ndarray of int64, shape (n_documents,)
        First token and number of tokens of each document.
    """

    tokens: Tensor
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def build(
        cls, documents: Sequence[NDArray[np.int64]], device: torch.device
    ) -> TokenDocuments:
        """Put documents, none of them empty, on a device."""
        lengths = np.array([len(document) for document in documents], dtype=np.int64)
        tokens = torch.from_numpy(np.concatenate(documents)).to(device)
        return cls(tokens, np.cumsum(lengths) - lengths, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def n_tokens(self) -> int:
        """Tokens of all documents together."""
        return int(self.tokens.shape[0])

    def stream(self, order: NDArray[np.int64], n_columns: int) -> Tensor:
        """Join the documents in this order and cut them into columns of one length.

        Returns
        -------
        Tensor of shape (n_tokens // n_columns, n_columns)
            Text runs down a column and continues at the top of the next. Tokens
            that fill no row are left out.
        """
        lengths = self.lengths[order]
        shift = self.starts[order] - (np.cumsum(lengths) - lengths)
        places = np.repeat(shift, lengths) + np.arange(self.n_tokens)
        length = self.n_tokens // n_columns
        index = torch.from_numpy(places[: length * n_columns]).to(self.tokens.device)
        return self.tokens[index].view(n_columns, length).t().contiguous()

    def window(
        self,
        rows: NDArray[np.int64],
        begin: NDArray[np.int64] | int,
        end: NDArray[np.int64] | int,
    ) -> Tensor:
        """Tokens `begin` to `end` of some documents, padded at the end.

        Returns
        -------
        Tensor of shape (longest, n_rows)
        """
        sizes = np.broadcast_to(np.subtract(end, begin), rows.shape)
        device = self.tokens.device
        first = torch.from_numpy(self.starts[rows] + begin).to(device)
        size = torch.from_numpy(sizes.copy()).to(device)
        time = torch.arange(int(sizes.max()), device=device)[:, None]
        places = (first + time).clamp_max(self.n_tokens - 1)
        return torch.where(time < size, self.tokens[places], _PADDING)


def n_batches(n_documents: int, batch_size: int) -> int:
    """How many batches :func:`similar_lengths` makes.

    Examples
    --------
    >>> n_batches(9, 4), n_batches(10, 4)
    (2, 3)
    """
    full, rest = divmod(n_documents, batch_size)
    return full + (rest > 1 or (rest == 1 and full == 0))


def similar_lengths(
    lengths: NDArray[np.int64], batch_size: int, random: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Cut shuffled documents into batches that need little padding.

    Documents are shuffled, sorted by length within pools, and the batches shuffled. A
    pool is a tenth of the documents, at most fifty batches: of a larger part, the same
    documents would always meet. A document left over joins another batch: batch
    normalisation needs two.

    Parameters
    ----------
    lengths : ndarray of shape (n_documents,)
        Tokens of each document.
    batch_size : int
        Documents in a batch.
    random : numpy Generator
        Source of the shuffling.
    """
    order = random.permutation(len(lengths))
    batches: list[NDArray[np.int64]] = []
    n_pooled = min(_LARGEST_POOL, len(lengths) // (_SMALLEST_SHARE * batch_size))
    size = max(1, n_pooled) * batch_size
    for start in range(0, len(order), size):
        pool = order[start : start + size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        cuts = range(batch_size, len(pool), batch_size)
        batches += np.split(pool, list(cuts))
    if len(batches) > 1 and len(batches[-1]) == 1:
        last = batches.pop()
        batches[-1] = np.concatenate([batches[-1], last])
    return [batches[number] for number in random.permutation(len(batches))]
