"""Trainings as a BayesianSMM's parameters describe them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from docsigma._devices import choose_device
from docsigma.corpora.sharded_counts import ShardedCounts
from docsigma.exceptions import InputError
from docsigma.inference.diagonal import DiagonalGaussian
from docsigma.inference.draws import generator, standard_normals
from docsigma.inference.fast import FastTrainer
from docsigma.inference.multinomial import MultinomialCounts
from docsigma.inference.paper import PaperTrainer
from docsigma.inference.point_loadings import PointLoadings
from docsigma.inference.prior import IsotropicPrior
from docsigma.inference.sorted_words import SortedWords
from docsigma.inference.stages import plan_stages
from docsigma.inference.stream import StreamLearner

if TYPE_CHECKING:
    import scipy.sparse as sp
    from torch import Tensor

    from docsigma.inference.trainer import Trainer
    from docsigma.models._subspace_model import SubspaceModel
    from docsigma.models.bayesian_smm import BayesianSMM

__all__ = ["fast_passes", "like", "make_stream", "make_trainer", "n_tokens"]

FAST_PASSES, PAPER_PASSES = 11, 1000
FAST_RATE, PAPER_RATE = 0.04, 0.01
# Passes over a corpus of fewer documents grow by the square root, up to a limit.
SMALL, MOST_PASSES = 10_000, 100
LEAST_BATCH = 32
# Components beyond which steps get smaller and passes more.
LARGE = 100
# Keeps the start of T apart from the noise of the passes.
LOADINGS_KEY = 2**32


def n_tokens(counts: sp.csr_matrix | ShardedCounts) -> float:
    """Give the tokens of all documents."""
    if isinstance(counts, ShardedCounts):
        return float(counts.n_tokens.sum())
    return float(counts.sum())


def like(counts: sp.csr_matrix | ShardedCounts, device: str) -> Tensor:
    """Give an empty tensor of the dtype and the device to train in."""
    dtype = torch.float64 if counts.dtype == np.float64 else torch.float32
    return torch.empty(0, dtype=dtype, device=choose_device(device))


def fast_batch_size(n_documents: int, most: int) -> int:
    """Give the size of batches: ten of them to a pass over a small corpus."""
    return min(most, max(LEAST_BATCH, n_documents // 10))


def fast_passes(n_documents: int, n_components: int) -> int:
    """Give the passes of the fast solver, more for a small corpus or a large K."""
    factor = math.sqrt(max(1.0, SMALL / max(1, n_documents)))
    factor *= math.pow(max(1.0, n_components / LARGE), 0.75)
    return min(MOST_PASSES, math.ceil(FAST_PASSES * factor))


def fast_rate(n_components: int) -> float:
    """Give the first learning rate: a step moves a logit by about K times as much."""
    return FAST_RATE * min(1.0, LARGE / n_components)


def make_trainer(
    model: SubspaceModel, counts: sp.csr_matrix | ShardedCounts, like: Tensor, seed: int
) -> Trainer:
    """Make the trainer of `model`'s solver.

    Raises
    ------
    InputError
        If the solver cannot work from disk.
    """
    if model.solver == "fast":
        return _fast_trainer(model, counts, like, seed)
    if isinstance(counts, ShardedCounts):
        raise InputError(
            'solver="paper" needs the counts in memory, got a ShardedCounts; '
            'use solver="fast"'
        )
    return _paper_trainer(model, counts, like, seed)


def _fast_trainer(
    model: SubspaceModel, counts: sp.csr_matrix | ShardedCounts, like: Tensor, seed: int
) -> FastTrainer:
    words = SortedWords(counts)
    rate = model.learning_rate or fast_rate(model.n_components)
    return FastTrainer(
        words,
        IsotropicPrior(float(model.prior_precision)),
        like,
        n_components=model.n_components,
        stages=plan_stages(words, model.n_passes, rate),
        batch_size=fast_batch_size(words.n_documents, model.batch_size),
        l1=float(model.l1),
        l2=float(model.l2),
        learn_bias=model.learn_log_unigram,
        init_scale=float(model.init_scale),
        seed=seed,
        point=model.point_estimates,
    )


def _paper_trainer(
    model: SubspaceModel, counts: sp.csr_matrix, like: Tensor, seed: int
) -> PaperTrainer:
    rate = model.learning_rate or PAPER_RATE
    variance, n_draws = 1 / float(model.prior_precision), 1
    if not model.point_estimates:
        variance, n_draws = model.init_variance, model.n_draws
    n_documents, n_features = counts.shape
    start = standard_normals(
        (n_features, model.n_components), generator(seed, LOADINGS_KEY), like
    )
    words = PointLoadings(
        start * model.init_scale,
        torch.from_numpy(model.training_log_unigram_).to(like),
        learning_rate=rate,
        l1=float(model.l1),
        l2=float(model.l2),
        learn_bias=model.learn_log_unigram,
    )
    return PaperTrainer(
        MultinomialCounts(counts, like),
        DiagonalGaussian.constant(n_documents, model.n_components, variance, like),
        IsotropicPrior(float(model.prior_precision)),
        words,
        learning_rate=rate,
        n_draws=n_draws,
        seed=seed,
        point=model.point_estimates,
    )


def make_stream(model: BayesianSMM, n_features: int, like: Tensor) -> StreamLearner:
    """Make the learner of `partial_fit`."""
    return StreamLearner(
        IsotropicPrior(float(model.prior_precision)),
        like,
        n_features=n_features,
        n_components=model.n_components,
        learning_rate=model.learning_rate or fast_rate(model.n_components),
        batch_size=model.batch_size,
        l1=float(model.l1),
        l2=float(model.l2),
        learn_bias=model.learn_log_unigram,
        seed=model.seed_,
    )
