"""The phases of a training, with the parameters of an estimator."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from docsigma.classifiers.ulmfit.awd_lstm import AWDLSTM
from docsigma.classifiers.ulmfit.dropout import Dropout, DropoutRates
from docsigma.classifiers.ulmfit.fine_tuning import train_classifier
from docsigma.classifiers.ulmfit.language_model import (
    LanguageModel,
    train_language_model,
)
from docsigma.classifiers.ulmfit.network import DocumentNetwork
from docsigma.classifiers.ulmfit.schedules import discriminative_rates

if TYPE_CHECKING:
    from docsigma.classifiers._labels import TrainingLabels
    from docsigma.classifiers.ulmfit.batches import TokenDocuments
    from docsigma.classifiers.ulmfit.classifier import ULMFiTClassifier
    from docsigma.classifiers.ulmfit.history import TrainingLog
    from docsigma.classifiers.ulmfit.tokens import WordVocabulary
    from docsigma.classifiers.ulmfit.weights import PublishedWeights

__all__ = [
    "Randomness",
    "describe_pretraining",
    "make_language_model",
    "make_network",
]


@dataclass(frozen=True)
class Randomness:
    """The generators of a training.

    Attributes
    ----------
    start : torch.Generator
        Of the weights to start from, on the CPU.
    noise : torch.Generator
        Of the dropout, on the device that computes.
    order : numpy Generator
        Of the order of the documents.
    """

    start: torch.Generator
    noise: torch.Generator
    order: np.random.Generator

    @classmethod
    def seeded(cls, random_state: Any, device: torch.device) -> Randomness:
        """Make the generators of a scikit-learn `random_state`."""
        root = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        start, noise, order = np.random.SeedSequence(root).generate_state(3).tolist()
        return cls(
            torch.Generator().manual_seed(start),
            torch.Generator(device).manual_seed(noise),
            np.random.default_rng(order),
        )


def make_language_model(
    parameters: ULMFiTClassifier,
    vocabulary: WordVocabulary,
    published: PublishedWeights | None,
    documents: TokenDocuments,
    randomness: Randomness,
    log: TrainingLog,
) -> LanguageModel:
    """Pre-train a language model, or take a published one, and fine-tune it.

    Returns
    -------
    LanguageModel
        On the CPU.
    """
    encoder = AWDLSTM(
        len(vocabulary),
        parameters.embedding_size,
        parameters.hidden_units,
        parameters.n_layers,
        randomness.start,
    )
    model = LanguageModel(encoder)
    if published is not None:
        published.load_into(model, vocabulary.words)
    model.to(documents.tokens.device)
    n_groups = len(model.groups())
    rates = DropoutRates.scaled(parameters.lm_dropout)
    shared: dict[str, Any] = {
        "batch_size": parameters.batch_size,
        "bptt": parameters.bptt,
        "dropout": Dropout(rates, randomness.noise),
        "random": randomness.order,
    }
    if published is None:
        train_language_model(
            model,
            documents,
            n_epochs=parameters.pretrain_epochs,
            rates=[parameters.pretrain_learning_rate] * n_groups,
            report=log.phase("pre-training", "pretrain_learning_rate"),
            **shared,
        )
    train_language_model(
        model,
        documents,
        n_epochs=parameters.lm_epochs,
        rates=discriminative_rates(parameters.lm_learning_rate, n_groups),
        report=log.phase("language model", "lm_learning_rate"),
        **shared,
    )
    return model.cpu().eval()


def make_network(
    parameters: ULMFiTClassifier,
    model: LanguageModel,
    documents: TokenDocuments,
    labels: TrainingLabels,
    randomness: Randomness,
    log: TrainingLog,
) -> DocumentNetwork:
    """Train a classifier that starts from a copy of a language model's layers.

    Returns
    -------
    DocumentNetwork
        On the CPU.
    """
    network = DocumentNetwork(
        copy.deepcopy(model.encoder),
        len(labels.classes),
        randomness.start,
        bptt=parameters.bptt,
        max_tokens=parameters.max_tokens,
    ).to(documents.tokens.device)
    train_classifier(
        network,
        documents,
        labels.codes,
        n_epochs=parameters.classifier_epochs,
        rate=parameters.classifier_learning_rate,
        batch_size=parameters.batch_size,
        dropout=Dropout(
            DropoutRates.scaled(parameters.classifier_dropout), randomness.noise
        ),
        random=randomness.order,
        report=log.phase("classifier", "classifier_learning_rate"),
    )
    return network.cpu()


def describe_pretraining(
    published: PublishedWeights | None, n_epochs: int, n_texts: int, n_extra: int
) -> str:
    """Say in words what a language model was pre-trained on.

    Examples
    --------
    >>> describe_pretraining(None, 20, 100, 50)
    'the 100 texts of the training set and 50 further texts'
    """
    if published is not None:
        return published.pretrained_on
    if n_epochs == 0:
        return "nothing"
    further = f" and {n_extra} further texts" if n_extra else ""
    return f"the {n_texts} texts of the training set{further}"
