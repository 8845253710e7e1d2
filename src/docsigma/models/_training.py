"""Trainings as a model's parameters describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from docsigma._devices import choose_device
from docsigma.counts.sorted_counts import SortedCounts
from docsigma.exceptions import InputError
from docsigma.kernels import CountTensor
from docsigma.posteriors import DiagonalGaussians, Points
from docsigma.random import Stream, generator, standard_normals
from docsigma.trainers import Algorithm1Trainer, MinibatchTrainer, StreamTrainer
from docsigma.trainers.schedule import plan_stages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.counts import Counts
    from docsigma.models._subspace_model import SubspaceModel
    from docsigma.models.bayesian_smm import BayesianSMM
    from docsigma.trainers import Trainer


# Passes and learning rate of Algorithm 1.
PAPER_PASSES = 1000
PAPER_RATE = 0.01


def like(array: Counts | NDArray[np.floating[Any]], device: str) -> Tensor:
    """Return an empty tensor of the dtype and the device to train in."""
    dtype = torch.float64 if array.dtype == np.float64 else torch.float32
    return torch.empty(0, dtype=dtype, device=choose_device(device))


def make_trainer(
    model: SubspaceModel, counts: Counts, like: Tensor, seed: int
) -> Trainer:
    """Make the trainer of `model`'s solver, if it can move the model's posteriors."""
    parts, k = model.parts_, model.n_components
    if model.solver == "fast":
        words_sorted, settings = SortedCounts(counts), model.minibatch_settings
        rate = model.learning_rate or settings.learning_rate(k)
        stages = plan_stages(
            words_sorted, model.n_passes, rate, settings, folds=parts.likelihood.linear
        )
        return MinibatchTrainer(
            words_sorted,
            parts,
            like,
            n_components=k,
            stages=stages,
            batch_size=settings.batch_size(counts.shape[0], model.batch_size),
            learn_bias=model.learn_log_unigram,
            init_scale=float(model.init_scale),
            seed=seed,
            settings=settings,
        )
    variance = getattr(model, "init_variance", 1.0)
    posterior = parts.covariance.constant(counts.shape[0], k, variance, like)
    if not isinstance(posterior, (DiagonalGaussians, Points)):
        raise InputError(
            'solver="paper" moves diagonal covariances or points, got '
            f'{parts.covariance!r}; use solver="fast"'
        )
    source = generator(seed, Stream.LOADINGS)
    start = standard_normals((counts.shape[1], k), source, like) * model.init_scale
    return Algorithm1Trainer(
        # It moves all posteriors in every step, and so holds all documents.
        CountTensor(counts[:], like),
        posterior,
        parts,
        start,
        torch.from_numpy(model.training_log_unigram_).to(like),
        learning_rate=model.learning_rate or PAPER_RATE,
        n_draws=1 if posterior.is_point else model.n_draws,
        learn_bias=model.learn_log_unigram,
        seed=seed,
    )


def make_stream(model: BayesianSMM, n_features: int, like: Tensor) -> StreamTrainer:
    """Make the learner of `partial_fit`."""
    settings = model.minibatch_settings
    return StreamTrainer(
        model.parts_,
        like,
        n_features=n_features,
        n_components=model.n_components,
        learning_rate=model.learning_rate or settings.learning_rate(model.n_components),
        batch_size=model.batch_size,
        learn_bias=model.learn_log_unigram,
        seed=model.seed_,
    )
