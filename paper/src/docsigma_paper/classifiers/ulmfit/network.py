"""The classifying network: reader, pooling over the document, linear blocks."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from docsigma_paper.classifiers.ulmfit.awd_lstm import AWDLSTM, State
    from docsigma_paper.classifiers.ulmfit.batches import TokenDocuments
    from docsigma_paper.classifiers.ulmfit.dropout import Dropout


_BLOCK_UNITS = 50
_BLOCK_DROPOUT = 0.1


def concat_pool(
    hidden: Tensor,
    lengths: Tensor,
    earlier_sum: Tensor,
    earlier_max: Tensor,
    n_times: Tensor,
) -> Tensor:
    """Last, largest and mean hidden units of each document, side by side.

    Parameters
    ----------
    hidden : Tensor of shape (longest, n_documents, n_units)
        Hidden units of the ends of the documents, padded at the end.
    lengths : Tensor of shape (n_documents,)
        How many times of `hidden` are the document's: at least one.
    earlier_sum, earlier_max : Tensor of shape (n_documents, n_units)
        Sum and maximum over what came before: 0 and minus infinity for nothing.
    n_times : Tensor of shape (n_documents,)
        Times of the whole document.

    Returns
    -------
    Tensor of shape (n_documents, 3 n_units)

    Examples
    --------
    >>> hidden = torch.tensor([[[4.0]], [[2.0]], [[9.0]]])
    >>> two, none = torch.tensor([2]), torch.zeros(1, 1)
    >>> concat_pool(hidden, two, none, none - torch.inf, two)
    tensor([[2., 4., 3.]])
    """
    time = torch.arange(len(hidden), device=hidden.device)[:, None]
    padding = (time >= lengths)[:, :, None]
    last = hidden[lengths - 1, torch.arange(len(lengths), device=hidden.device)]
    largest = hidden.masked_fill(padding, -torch.inf).amax(dim=0)
    total = hidden.masked_fill(padding, 0.0).sum(dim=0) + earlier_sum
    return torch.cat(
        [last, torch.maximum(largest, earlier_max), total / n_times[:, None]], dim=1
    )


class DocumentNetwork(nn.Module):
    """An AWD-LSTM whose hidden units over a whole document yield class scores.

    Behind the pooling come two blocks of batch normalisation, dropout and a linear
    map, with a rectifier between them.

    Parameters
    ----------
    encoder : AWDLSTM
        Reads the words; taken over, not copied.
    n_classes : int
        Scores per document.
    generator : torch.Generator
        Source of the weights that the blocks start from.
    bptt : int
        Words that are read at a time where no gradient is kept.
    max_tokens : int
        Words at the end of a document that a gradient goes back, at the most. All
        words before them are read and pooled.
    """

    def __init__(
        self,
        encoder: AWDLSTM,
        n_classes: int,
        generator: torch.Generator,
        *,
        bptt: int = 70,
        max_tokens: int = 1400,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.chunk = min(bptt, max_tokens)
        self.max_tokens = max_tokens
        widths = (3 * encoder.embedding_size, _BLOCK_UNITS, n_classes)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[:-1])
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for n_in, n_out in pairwise(widths):
            bound = n_in**-0.5
            weight = torch.empty(n_out, n_in)
            self.weights.append(weight.uniform_(-bound, bound, generator=generator))
            self.biases.append(torch.zeros(n_out))

    def groups(self) -> list[list[nn.Parameter]]:
        """Parameters of word vectors, each layer, and the blocks, lowest first."""
        blocks = [*self.norms.parameters(), *self.weights, *self.biases]
        return [*self.encoder.groups(), blocks]

    def forward(
        self,
        documents: TokenDocuments,
        rows: NDArray[np.int64],
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Class scores of some documents.

        Parameters
        ----------
        documents : TokenDocuments
            On the device of the network.
        rows : ndarray of int64
            Which documents.
        dropout : Dropout, optional
            What is dropped.

        Returns
        -------
        Tensor of shape (n_rows, n_classes)
        """
        return self._scores(self.pool(documents, rows, dropout), dropout)

    def pool(
        self,
        documents: TokenDocuments,
        rows: NDArray[np.int64],
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Pooled hidden units of some documents; see :meth:`forward`."""
        lengths = documents.lengths[rows]
        surplus = np.maximum(lengths - self.max_tokens, 0)
        prefix = -(-surplus // self.chunk) * self.chunk
        # Longest beginnings first: those still being read are then the first columns.
        order = np.argsort(-prefix, kind="stable")
        ordered, prefix, lengths = rows[order], prefix[order], lengths[order]
        state, total, largest = self._read_beginnings(
            documents, ordered, prefix, dropout
        )
        tokens = documents.window(ordered, prefix, lengths)
        hidden, _ = self.encoder(tokens, state, dropout)
        n_times = torch.from_numpy(lengths).to(hidden.device)
        rest = torch.from_numpy(lengths - prefix).to(hidden.device)
        pooled = concat_pool(hidden, rest, total, largest, n_times)
        return pooled[torch.from_numpy(np.argsort(order)).to(hidden.device)]

    @torch.no_grad()
    def measure_norms(self, pooled: Tensor) -> None:
        """Set the means and variances of batch normalisation from documents.

        Running averages of training lag and include dropout, which matters after a
        short training.

        Parameters
        ----------
        pooled : Tensor of shape (n_documents, 3 n_units)
            Results of :meth:`pool` for the training documents.
        """
        norms = [cast("nn.BatchNorm1d", norm) for norm in self.norms]
        kept = [norm.momentum for norm in norms]
        self.train()
        for norm in norms:
            norm.momentum = 1.0
        self._scores(pooled, None)
        for norm, momentum in zip(norms, kept, strict=True):
            norm.momentum = momentum
        self.eval()

    @torch.no_grad()
    def _read_beginnings(
        self,
        documents: TokenDocuments,
        rows: NDArray[np.int64],
        prefix: NDArray[np.int64],
        dropout: Dropout | None,
    ) -> tuple[State, Tensor, Tensor]:
        """State, sum and maximum after `prefix` words, which no gradient reaches."""
        state = self.encoder.zero_state(len(rows))
        total = state[-1][0].new_zeros(len(rows), self.encoder.embedding_size)
        largest = torch.full_like(total, -torch.inf)
        for begin in range(0, int(prefix[0]), self.chunk):
            n = int(np.count_nonzero(prefix > begin))
            tokens = documents.window(rows[:n], begin, begin + self.chunk)
            before = [(h[:, :n], c[:, :n]) for h, c in state]
            hidden, after = self.encoder(tokens, before, dropout)
            total[:n] += hidden.sum(dim=0)
            largest[:n] = torch.maximum(largest[:n], hidden.amax(dim=0))
            for (h, c), (new_h, new_c) in zip(state, after, strict=True):
                h[:, :n], c[:, :n] = new_h, new_c
        return state, total, largest

    def _scores(self, x: Tensor, dropout: Dropout | None) -> Tensor:
        rates = (0.0, 0.0)
        if dropout is not None:
            rates = (dropout.rates.output, _BLOCK_DROPOUT)
        blocks = zip(self.norms, self.weights, self.biases, rates, strict=True)
        for number, (norm, weight, bias, rate) in enumerate(blocks):
            x = norm(x.relu() if number else x)
            if dropout is not None:
                x = dropout.plain(x, rate)
            x = functional.linear(x, weight, bias)
        return x
