"""The language model: words from the words before, and its training."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from docsigma_paper.classifiers.ulmfit.optimizer import SlantedAdam

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from docsigma_paper.classifiers.ulmfit.awd_lstm import AWDLSTM, State
    from docsigma_paper.classifiers.ulmfit.batches import TokenDocuments
    from docsigma_paper.classifiers.ulmfit.dropout import Dropout


_ACTIVATION, _TEMPORAL = 2.0, 1.0


class LanguageModel(nn.Module):
    """An AWD-LSTM and a softmax over words that uses its word vectors.

    Parameters
    ----------
    encoder : AWDLSTM
        Reads the words.
    """

    def __init__(self, encoder: AWDLSTM) -> None:
        super().__init__()
        self.encoder = encoder
        self.bias = nn.Parameter(torch.zeros(encoder.n_words))

    @property
    def decoder_weight(self) -> Tensor:
        """Weights of the softmax: the word vectors themselves."""
        return self.encoder.embedding

    def groups(self) -> list[list[nn.Parameter]]:
        """Parameters of each layer, then of the word vectors with the softmax."""
        embedding, *layers = self.encoder.groups()
        return [*layers, [*embedding, self.bias]]

    def forward(self, hidden: Tensor) -> Tensor:
        """Logits of the next word; in training on a GPU they are bfloat16."""
        short = hidden.is_cuda and torch.is_grad_enabled()
        with torch.autocast(hidden.device.type, torch.bfloat16, enabled=short):
            return functional.linear(hidden, self.decoder_weight, self.bias)

    def losses(
        self,
        tokens: Tensor,
        targets: Tensor,
        state: State,
        dropout: Dropout | None = None,
    ) -> tuple[Tensor, Tensor, State]:
        r"""Cross-entropy of the next words, and what large or jumpy outputs cost.

        The penalty is :math:`2 \overline{\tilde h_t^2} + \overline{(h_{t+1} - h_t)^2}`
        of the last layer's output :math:`h`, dropped where it has a tilde
        (AR and TAR of Merity, Keskar and Socher).

        Parameters
        ----------
        tokens, targets : Tensor of int64, shape (n_times, n_columns)
            Words, and the words after them.
        state : list of pairs of tensors
            Before the first word.
        dropout : Dropout, optional
            What is dropped.

        Returns
        -------
        cross_entropy, penalty : Tensor
            Nats a word; the penalty.
        state : list of pairs of tensors
            After the last word, cut off from the gradient.
        """
        whole, after = self.encoder(tokens, state, dropout)
        hidden = whole
        if dropout is not None:
            hidden = dropout.locked(whole, dropout.rates.output)
        logits = self(hidden).flatten(0, 1).float()
        cross_entropy = functional.cross_entropy(logits, targets.flatten())
        penalty = _ACTIVATION * hidden.square().mean()
        if len(whole) > 1:
            penalty = penalty + _TEMPORAL * whole.diff(dim=0).square().mean()
        return cross_entropy, penalty, [(h.detach(), c.detach()) for h, c in after]

    @torch.no_grad()
    def perplexity(
        self, documents: TokenDocuments, *, batch_size: int = 64, bptt: int = 70
    ) -> float:
        """Perplexity of documents, read one after the other.

        Parameters
        ----------
        documents : TokenDocuments
            On the device of the model.
        batch_size, bptt : int
            Columns that are read side by side, and words at a time: the fewer
            columns, the fewer words have nothing before them.
        """
        n_columns = _n_columns(documents.n_tokens, batch_size, bptt)
        stream = documents.stream(np.arange(len(documents)), n_columns)
        state = self.encoder.zero_state(n_columns)
        nats = 0.0
        for tokens, targets in _chunks(stream, bptt):
            loss, _, state = self.losses(tokens, targets, state)
            nats += float(loss) * len(tokens)
        return math.exp(nats / (len(stream) - 1))


def train_language_model(
    model: LanguageModel,
    documents: TokenDocuments,
    *,
    n_epochs: int,
    rates: Sequence[float],
    batch_size: int,
    bptt: int,
    dropout: Dropout,
    random: np.random.Generator,
    report: Callable[[float], object],
) -> None:
    """Train a language model on documents in a new order each epoch.

    Parameters
    ----------
    model : LanguageModel
        Changed in place.
    documents : TokenDocuments
        On the device of the model.
    n_epochs : int
        Passes over the documents; 0 leaves the model as it is.
    rates : list of float
        Highest learning rate of each of the model's groups.
    batch_size, bptt : int
        Columns that are read side by side, and words that a gradient goes back.
    dropout : Dropout
        What is dropped.
    random : numpy Generator
        Source of the order.
    report : callable
        Called after each epoch with its mean cross-entropy, in nats per word.
    """
    model.train()
    n_columns = _n_columns(documents.n_tokens, batch_size, bptt)
    n_times = documents.n_tokens // n_columns - 1
    n_steps = n_epochs * -(-n_times // bptt)
    optimizer = SlantedAdam(model.groups(), rates, n_steps)
    for _ in range(n_epochs):
        stream = documents.stream(random.permutation(len(documents)), n_columns)
        state = model.encoder.zero_state(n_columns)
        nats = stream.new_zeros((), dtype=torch.float64)
        for tokens, targets in _chunks(stream, bptt):
            with dropout.weights(model.encoder.lstms):
                loss, penalty, state = model.losses(tokens, targets, state, dropout)
                optimizer.backward(loss + penalty)
            optimizer.step()
            nats += loss.detach() * len(tokens)
        report(float(nats) / n_times)


def _n_columns(n_tokens: int, batch_size: int, bptt: int) -> int:
    return max(1, min(batch_size, n_tokens // (bptt + 1)))


def _chunks(stream: Tensor, bptt: int) -> zip[tuple[Tensor, Tensor]]:
    before, after = torch.split(stream[:-1], bptt), torch.split(stream[1:], bptt)
    return zip(before, after, strict=True)
