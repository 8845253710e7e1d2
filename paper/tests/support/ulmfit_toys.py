"""Small readers, documents and texts for the tests of ULMFiT."""

from __future__ import annotations

import numpy as np
import torch

from docsigma_paper.classifiers.ulmfit.awd_lstm import AWDLSTM
from docsigma_paper.classifiers.ulmfit.batches import (
    TokenDocuments,
)

CPU = torch.device("cpu")
TINY = {
    "embedding_size": 16,
    "hidden_units": 24,
    "n_layers": 2,
    "pretrain_epochs": 6,
    "pretrain_learning_rate": 0.02,
    "lm_epochs": 2,
    "classifier_epochs": 8,
    "lm_dropout": 0.2,
    "classifier_dropout": 0.2,
    "batch_size": 8,
    "bptt": 10,
    "max_tokens": 20,
    "device": "cpu",
    "random_state": 0,
}
TOPICS = {
    "weather": ["sun", "rain", "wind", "cloud", "storm", "snow", "warm", "cold"],
    "sport": ["goal", "ball", "team", "score", "match", "coach", "win", "league"],
}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def reader(n_words=11, size=4, units=6, n_layers=2):
    return AWDLSTM(n_words, size, units, n_layers, seeded())


def random_documents(lengths, n_words=11, seed=0):
    random = np.random.default_rng(seed)
    return TokenDocuments.build(
        [random.integers(3, n_words, length) for length in lengths], CPU
    )


def toy_corpus(n, seed):
    random = np.random.default_rng(seed)
    labels = np.array(list(TOPICS))[np.arange(n) % 2]
    lengths = random.integers(5, 50, n)
    texts = [
        " ".join(random.choice([*TOPICS[label], "the", "of"], length))
        for label, length in zip(labels, lengths, strict=True)
    ]
    return texts, labels
