"""The recurrent network that ULMFiT reads with."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, cast

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma_paper.classifiers.ulmfit.dropout import Dropout


State = list[tuple[torch.Tensor, torch.Tensor]]


class AWDLSTM(nn.Module):
    """Word vectors and LSTM layers with dropout (Merity, Keskar and Socher, 2018).

    The last layer is as wide as a word vector, so that a decoder can share the
    vectors. Time comes first in all tensors.

    Parameters
    ----------
    n_words : int
        Size of the vocabulary.
    embedding_size : int
        Size of a word vector.
    hidden_units : int
        Width of the layers but the last.
    n_layers : int
        LSTM layers.
    generator : torch.Generator
        Source of the weights to start from.

    Examples
    --------
    >>> reader = AWDLSTM(10, 4, 6, 2, torch.Generator().manual_seed(0))
    >>> tokens = torch.tensor([[1], [2], [3]])
    >>> hidden, state = reader(tokens, reader.zero_state(1))
    >>> hidden.shape
    torch.Size([3, 1, 4])
    """

    def __init__(
        self,
        n_words: int,
        embedding_size: int,
        hidden_units: int,
        n_layers: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.n_words = n_words
        self.embedding_size = embedding_size
        self.embedding = nn.Parameter(torch.empty(n_words, embedding_size))
        widths = [embedding_size, *[hidden_units] * (n_layers - 1), embedding_size]
        # Made without weights: torch would take those from its global generator.
        self.layers = nn.ModuleList(
            nn.LSTM(n_in, n_out, device="meta").to_empty(device="cpu")
            for n_in, n_out in pairwise(widths)
        )
        with torch.no_grad():
            self.embedding.uniform_(-0.1, 0.1, generator=generator)
            for layer in self.lstms:
                bound = layer.hidden_size**-0.5
                for parameter in layer.parameters():
                    parameter.uniform_(-bound, bound, generator=generator)

    @property
    def lstms(self) -> list[nn.LSTM]:
        """The layers, lowest first."""
        return [cast("nn.LSTM", layer) for layer in self.layers]

    def groups(self) -> list[list[nn.Parameter]]:
        """Parameters of the word vectors and of each layer, lowest first."""
        layers = [list(layer.parameters()) for layer in self.layers]
        return [[self.embedding], *layers]

    def zero_state(self, n_columns: int) -> State:
        """State of every layer before the first word."""
        return [
            (
                self.embedding.new_zeros(1, n_columns, layer.hidden_size),
                self.embedding.new_zeros(1, n_columns, layer.hidden_size),
            )
            for layer in self.lstms
        ]

    def forward(
        self, tokens: Tensor, state: State, dropout: Dropout | None = None
    ) -> tuple[Tensor, State]:
        """Read on from a state.

        Parameters
        ----------
        tokens : Tensor of int64, shape (n_times, n_columns)
            Word numbers.
        state : list of pairs of tensors
            Of each layer.
        dropout : Dropout, optional
            Drops words, entries of word vectors and what goes between layers. It
            does not drop weights: see its ``weights``.

        Returns
        -------
        hidden : Tensor of shape (n_times, n_columns, embedding_size)
            Outputs of the last layer, without dropout.
        state : list of pairs of tensors
            After the last word.
        """
        hidden = functional.embedding(tokens, self.embedding)
        if dropout is not None:
            hidden = dropout.words(hidden, tokens, self.n_words)
            hidden = dropout.locked(hidden, dropout.rates.embedding)
        after: State = []
        for number, (layer, before) in enumerate(zip(self.lstms, state, strict=True)):
            if number and dropout is not None:
                hidden = dropout.locked(hidden, dropout.rates.hidden)
            hidden, layer_state = layer(hidden, before)
            after.append(layer_state)
        return hidden, after
