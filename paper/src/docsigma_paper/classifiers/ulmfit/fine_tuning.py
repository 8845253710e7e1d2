"""Training of the classifying network, one more group of layers at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from docsigma_paper.classifiers.ulmfit.batches import n_batches, similar_lengths
from docsigma_paper.classifiers.ulmfit.optimizer import SlantedAdam
from docsigma_paper.classifiers.ulmfit.schedules import (
    discriminative_rates,
    unfreezing_stages,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from docsigma_paper.classifiers.ulmfit.batches import TokenDocuments
    from docsigma_paper.classifiers.ulmfit.dropout import Dropout
    from docsigma_paper.classifiers.ulmfit.network import DocumentNetwork


def free_groups(groups: Sequence[Sequence[nn.Parameter]], n_trained: int) -> None:
    """Let the last `n_trained` groups learn, and no other."""
    first = len(groups) - n_trained
    for number, group in enumerate(groups):
        for parameter in group:
            parameter.requires_grad_(number >= first)


def train_classifier(
    network: DocumentNetwork,
    documents: TokenDocuments,
    codes: NDArray[np.intp],
    *,
    n_epochs: int,
    rate: float,
    batch_size: int,
    dropout: Dropout,
    random: np.random.Generator,
    report: Callable[[float], object],
) -> None:
    """Train a network with gradual unfreezing.

    The blocks learn alone for an epoch, then the last layer with them, and so on
    down to the word vectors; the epochs left over train everything. Each stage has
    its own slanted triangle, and a group of layers learns 2.6 times as fast as the
    one below it.

    Parameters
    ----------
    network : DocumentNetwork
        Changed in place.
    documents : TokenDocuments
        At least two, on the device of the network.
    codes : ndarray of shape (n_documents,)
        Class of each document.
    n_epochs : int
        Passes over the documents, all stages together.
    rate : float
        Highest learning rate of the blocks.
    batch_size : int
        Documents in a batch.
    dropout : Dropout
        What is dropped.
    random : numpy Generator
        Source of the batches.
    report : callable
        Called after each epoch with its mean cross-entropy, in nats per document.
    """
    groups = network.groups()
    rates = discriminative_rates(rate, len(groups))
    targets = torch.from_numpy(codes.astype(np.int64)).to(documents.tokens.device)
    n_steps = n_batches(len(documents), batch_size)
    network.train()
    for n_trained, n_stage_epochs in unfreezing_stages(len(groups), n_epochs):
        free_groups(groups, n_trained)
        optimizer = SlantedAdam(
            groups[-n_trained:], rates[-n_trained:], n_stage_epochs * n_steps
        )
        for _ in range(n_stage_epochs):
            nats = torch.zeros((), dtype=torch.float64, device=targets.device)
            for rows in similar_lengths(documents.lengths, batch_size, random):
                index = torch.from_numpy(rows).to(targets.device)
                with dropout.weights(network.encoder.lstms):
                    scores = network(documents, rows, dropout)
                    loss = functional.cross_entropy(scores, targets[index])
                    optimizer.backward(loss)
                optimizer.step()
                nats += loss.detach() * len(rows)
            report(float(nats) / len(documents))
    free_groups(groups, len(groups))
    network.measure_norms(_in_batches(network.pool, documents, batch_size))


def class_log_probabilities(
    network: DocumentNetwork, documents: TokenDocuments, batch_size: int
) -> NDArray[np.float64]:
    """Log probabilities of the classes.

    Returns
    -------
    ndarray of shape (n_documents, n_classes)
    """
    network.eval()
    scores = _in_batches(network, documents, batch_size)
    result: NDArray[np.float64] = scores.double().log_softmax(dim=1).cpu().numpy()
    return result


@torch.no_grad()
def _in_batches(
    function: Callable[[TokenDocuments, NDArray[np.int64]], Tensor],
    documents: TokenDocuments,
    batch_size: int,
) -> Tensor:
    """Apply `function` to documents of similar lengths, and join the results."""
    order = np.argsort(documents.lengths, kind="stable")
    parts = [
        function(documents, order[start : start + batch_size])
        for start in range(0, len(order), batch_size)
    ]
    back = torch.from_numpy(np.argsort(order)).to(documents.tokens.device)
    return torch.cat(parts)[back]
