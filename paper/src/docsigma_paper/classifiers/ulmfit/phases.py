"""The phases of a training, with the parameters of an estimator."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from docsigma._devices import choose_device
from docsigma_paper.classifiers.ulmfit.awd_lstm import AWDLSTM
from docsigma_paper.classifiers.ulmfit.batches import TokenDocuments
from docsigma_paper.classifiers.ulmfit.dropout import Dropout, DropoutRates
from docsigma_paper.classifiers.ulmfit.fine_tuning import train_classifier
from docsigma_paper.classifiers.ulmfit.language_model import (
    LanguageModel,
    train_language_model,
)
from docsigma_paper.classifiers.ulmfit.network import DocumentNetwork
from docsigma_paper.classifiers.ulmfit.schedules import discriminative_rates
from docsigma_paper.classifiers.ulmfit.tokens import WordVocabulary, tokenize
from docsigma_paper.classifiers.ulmfit.weights import read_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.classifiers._labels import TrainingLabels
    from docsigma_paper.classifiers.ulmfit.classifier import ULMFiTClassifier
    from docsigma_paper.classifiers.ulmfit.history import TrainingLog
    from docsigma_paper.classifiers.ulmfit.weights import PublishedWeights

__all__ = [
    "Randomness",
    "Reading",
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


@dataclass(frozen=True, eq=False)
class Reading:
    """Texts as numbers, and what a training on them needs.

    Attributes
    ----------
    vocabulary : WordVocabulary
        The words that are known.
    numbers : list of ndarray of int64
        Word numbers of each text.
    published : PublishedWeights or None
        The language model to start from.
    n_pretrain : int
        Epochs of pre-training.
    device : torch.device
        Where everything is computed.
    randomness : Randomness
        The generators.
    """

    vocabulary: WordVocabulary
    numbers: list[NDArray[np.int64]]
    published: PublishedWeights | None
    n_pretrain: int
    device: torch.device
    randomness: Randomness

    @classmethod
    def begin(cls, parameters: ULMFiTClassifier, texts: list[str]) -> Reading:
        """Read weights and texts as an estimator's parameters say."""
        weights = parameters.weights
        published = None if weights is None else read_weights(weights)
        device = choose_device(parameters.device)
        randomness = Randomness.seeded(parameters.random_state, device)
        tokens = [tokenize(text)[: parameters.max_length] for text in texts]
        vocabulary = WordVocabulary.from_tokens(
            tokens, max_words=parameters.max_words, min_count=parameters.min_count
        )
        numbers = [vocabulary.encode(document) for document in tokens]
        n_pretrain = parameters.pretrain_epochs if published is None else 0
        return cls(vocabulary, numbers, published, n_pretrain, device, randomness)

    def documents(self, n_texts: int | None = None) -> TokenDocuments:
        """Put the first texts on the device, or all of them."""
        return TokenDocuments.build(self.numbers[:n_texts], self.device)


def make_language_model(
    parameters: ULMFiTClassifier, reading: Reading, log: TrainingLog
) -> LanguageModel:
    """Pre-train a language model, or take a published one, and fine-tune it.

    Returns
    -------
    LanguageModel
        On the CPU.
    """
    encoder = AWDLSTM(
        len(reading.vocabulary),
        parameters.embedding_size,
        parameters.hidden_units,
        parameters.n_layers,
        reading.randomness.start,
    )
    model = LanguageModel(encoder)
    if reading.published is not None:
        reading.published.load_into(model, reading.vocabulary.words)
    model.to(reading.device)
    documents = reading.documents()
    n_groups = len(model.groups())
    rates = DropoutRates.scaled(parameters.lm_dropout)
    shared: dict[str, Any] = {
        "batch_size": parameters.batch_size,
        "bptt": parameters.bptt,
        "dropout": Dropout(rates, reading.randomness.noise),
        "random": reading.randomness.order,
    }
    if reading.published is None:
        train_language_model(
            model,
            documents,
            n_epochs=reading.n_pretrain,
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
    reading: Reading,
    labels: TrainingLabels,
    log: TrainingLog,
) -> DocumentNetwork:
    """Train a classifier that starts from a copy of a language model's layers.

    Returns
    -------
    DocumentNetwork
        On the CPU.
    """
    randomness = reading.randomness
    network = DocumentNetwork(
        copy.deepcopy(model.encoder),
        len(labels.classes),
        randomness.start,
        bptt=parameters.bptt,
        max_tokens=parameters.max_tokens,
    ).to(reading.device)
    train_classifier(
        network,
        reading.documents(len(labels.codes)),
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


def describe_pretraining(reading: Reading, n_labelled: int) -> str:
    """Return in words what a language model was pre-trained on."""
    if reading.published is not None:
        return reading.published.pretrained_on
    if reading.n_pretrain == 0:
        return "nothing"
    n_further = len(reading.numbers) - n_labelled
    if n_labelled == 0:
        return f"{n_further} texts"
    further = f" and {n_further} further texts" if n_further else ""
    return f"the {n_labelled} texts of the training set{further}"
