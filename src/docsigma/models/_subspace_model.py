"""What the subspace models share: parameters in common, and how they are fitted."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from docsigma._devices import choose_device
from docsigma.exceptions import InputError
from docsigma.inference.multinomial import MultinomialCounts, log_unigram
from docsigma.kernels import use_precision
from docsigma.kernels.precision import PRECISIONS
from docsigma.models import _storage, _training
from docsigma.models._count_model import CountModel
from docsigma.models._progress import ProgressBar

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import scipy.sparse as sp
    from numpy.typing import ArrayLike

    from docsigma.corpora.sharded_counts import ShardedCounts
    from docsigma.inference.trainer import Trainer
    from docsigma.kernels.precision import Precision
    from docsigma.models.training_pass import TrainingPass

__all__ = ["SubspaceModel"]


class SubspaceModel(CountModel):
    """A model with word loadings T and log uni-gram m, trained by either solver.

    A subclass says by `point_estimates` whether its documents are points or
    Gaussians, and has the parameters named here.
    """

    point_estimates: ClassVar[bool] = False

    n_components: int
    prior_precision: float
    l1: float
    l2: float
    learn_log_unigram: bool
    solver: str
    max_iter: int | None
    tol: float
    learning_rate: float | None
    batch_size: int
    init_scale: float
    n_draws: int
    init_variance: float
    precision: Precision
    random_state: int | np.random.RandomState | None
    verbose: bool

    _shared_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "prior_precision": [Interval(Real, 0, None, closed="neither")],
        "l1": [Interval(Real, 0, None, closed="left")],
        "l2": [Interval(Real, 0, None, closed="left")],
        "learn_log_unigram": ["boolean"],
        "solver": [StrOptions({"fast", "paper"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "init_scale": [Interval(Real, 0, None, closed="left")],
        "inference_max_iter": [Interval(Integral, 1, None, closed="left")],
        "inference_tol": [Interval(Real, 0, None, closed="neither")],
        "precision": [StrOptions(set(PRECISIONS))],
        "device": [str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    @property
    def n_passes(self) -> int:
        """Passes over the corpus at the most: `max_iter`, or the solver's own."""
        own = getattr(self, "_planned", _training.FAST_PASSES)
        fast = self.solver == "fast"
        return self.max_iter or (own if fast else _training.PAPER_PASSES)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike | sp.csr_matrix | ShardedCounts,
        y: object = None,  # noqa: ARG002
        *,
        callback: Callable[[TrainingPass], object] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn m and T from word counts.

        Parameters
        ----------
        X : array, sparse matrix or ShardedCounts of shape (n_documents, n_features)
            Word counts; those on disk are read a batch at a time.
        y : ignored
            For scikit-learn.
        callback : callable, default=None
            Called after each pass with a
            :class:`~docsigma.models.training_pass.TrainingPass`: its number, the
            history, and a way to have the model as it is then. A true answer ends
            the training early.
        checkpoint : path, default=None
            File that takes a checkpoint every `checkpoint_every` passes and at the
            end, for `resume`.
        checkpoint_every : int, default=None
            Passes between two checkpoints; None means 50, or 1 for ``"fast"``.
        resume : bool, default=False
            Go on from `checkpoint`. On a CPU the result is bit for bit that of an
            uninterrupted run.

        Returns
        -------
        self
        """
        counts = self._check_counts(X, reset=True)
        if not _training.n_tokens(counts) > 0:
            raise InputError(
                f"the {counts.shape[0]} documents hold no word: every count is zero"
            )
        fast = self.solver == "fast"
        if checkpoint_every is None:
            checkpoint_every = 1 if fast else 50
        if checkpoint_every < 1:
            raise InputError(
                f"`checkpoint_every` must be at least 1, got {checkpoint_every}"
            )
        seed = int(
            check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        )
        like = _training.like(counts, self.device)
        self.training_log_unigram_ = log_unigram(counts)
        self._planned = _training.fast_passes(counts.shape[0], self.n_components)
        max_iter = self.n_passes
        trainer = _training.make_trainer(self, counts, like, seed)
        store = None
        if checkpoint is not None:
            store = _storage.CheckpointFile(checkpoint, self, counts)
            if resume:
                store.restore(trainer)
        elif resume:
            raise InputError("`resume` needs a `checkpoint` file to go on from")

        with (
            use_precision(self.precision),
            ProgressBar(trainer, max_iter, bool(self.verbose)) as bar,
        ):

            def after(current: Trainer) -> bool:
                bar.update()
                stop = callback is not None and bool(callback(self._pass(current)))
                if store is not None and (
                    stop or current.epoch % checkpoint_every == 0
                ):
                    store.write(current)
                return stop

            self.converged_ = trainer.run(max_iter, self.tol, after)
        if store is not None:
            store.write(trainer)
        return self._adopt(trainer)

    def _counted(self, counts: sp.csr_matrix) -> MultinomialCounts:
        bias = torch.from_numpy(self.log_unigram_).to(choose_device(self.device))
        return MultinomialCounts(counts, bias)
