"""What the subspace models share: common parameters, and how they are fitted."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
import torch
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from docsigma.counts.memory import estimator_counts
from docsigma.counts.sorted_counts import SortedCounts
from docsigma.covariances import CovarianceFamily, DiagonalGaussians, Full, Points
from docsigma.estep import NewtonSettings, infer, infer_full
from docsigma.estep.evaluator import Evaluator
from docsigma.exceptions import InputError
from docsigma.kernels import CountTensor, Views, use_rounding
from docsigma.kernels.rounding import ROUNDINGS
from docsigma.models import _storage
from docsigma.models._count_model import CountModel
from docsigma.models._covariates import check_covariates, training_covariates
from docsigma.models.views import (
    add_view,
    centred,
    checked_views,
    infer_views,
    log_unigrams,
    view_of,
)
from docsigma.parts import make_part
from docsigma.posterior import GaussianPosterior
from docsigma.priors import CovariatePrior
from docsigma.random import Stream, generator, standard_normals
from docsigma.ranks import Ranks
from docsigma.trainers import Algorithm1Trainer, MinibatchSettings, MinibatchTrainer
from docsigma.trainers.schedule import plan_stages
from docsigma.trainers.settings import Algorithm1Settings

if TYPE_CHECKING:
    import contextlib
    import os
    from collections.abc import Callable, Mapping

    import scipy.sparse as sp
    from numpy.typing import ArrayLike, NDArray

    from docsigma.counts import Counts, Vocabulary
    from docsigma.covariances import Gaussians
    from docsigma.kernels.rounding import Rounding
    from docsigma.models._count_model import CountsLike
    from docsigma.models.training_pass import TrainingPass
    from docsigma.objective import Model
    from docsigma.parts import Parts
    from docsigma.trainers import Trainer


# Of the models whose `keep_words` was called: what their words were, and their
# evaluator, set together, so that no other thread finds one without the other.
_KEPT: WeakKeyDictionary[SubspaceModel, Any] = WeakKeyDictionary()


class SubspaceModel(CountModel):
    """A model with word loadings T and log uni-gram m, trained by either solver.

    A subclass defines its parts, and has the parameters named here.
    """

    # How the minibatch trainer steps.
    minibatch_settings: ClassVar[MinibatchSettings] = MinibatchSettings()

    parts_: Parts
    components_variance_: NDArray[Any] | None
    # Words of each view by its name, and their vocabularies, if there are several.
    views_: dict[str, int] | None = None
    n_fitted_views_: int | None = None
    vocabularies_: Mapping[str, Vocabulary] = MappingProxyType({})
    # Of the model of one view: that of all, and the name of the view.
    whole_: tuple[SubspaceModel, str] | None = None
    n_components: int
    prior_precision: float
    l1: float | None
    l2: float
    learn_log_unigram: bool
    solver: str
    max_iter: int | None
    learning_rate: float | None
    batch_size: int
    init_scale: float
    n_draws: int
    init_variance: float
    inference_max_iter: int
    inference_tol: float
    rounding: Rounding

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
        "rounding": [StrOptions(set(ROUNDINGS))],
        "device": [str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    @property
    def n_passes(self) -> int:
        """Maximum number of passes: `max_iter`, or the solver's default."""
        if self.solver == "paper":
            return self.max_iter or Algorithm1Settings().passes
        planned: int = getattr(self, "_planned", self.minibatch_settings.passes)
        return self.max_iter or planned

    @property
    def gives_points(self) -> bool:
        """Whether documents become points without uncertainty, not Gaussians."""
        check_is_fitted(self)
        return self.parts_.covariance.is_point

    def _arithmetic(self) -> contextlib.AbstractContextManager[Any]:
        return use_rounding(self.rounding)

    def _parts(self) -> Parts:
        """Return the parts that the parameters describe."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: CountsLike,
        y: object = None,  # noqa: ARG002
        *,
        views: Mapping[str, int] | None = None,
        covariates: ArrayLike | None = None,
        callback: Callable[[TrainingPass], object] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        resume: bool = False,
        ranks: Ranks | None = None,
    ) -> Self:
        """Learn m and T from word counts.

        Parameters
        ----------
        X : array, sparse matrix or Counts of shape (n_documents, n_features)
            Word counts; those on disk are read a batch at a time.
        y : ignored
            For scikit-learn.
        views : mapping of str to int, default=None
            Names of the views of a document, such as languages, and their numbers of
            columns, in the order of the columns of X. Each view has a softmax of its
            own; a document may lack some. None means one view.
        covariates : array of shape (n_documents,) or (n_documents, n_covariates)
            Numbers known of each document besides its words, for
            ``prior="covariates"``; needed there.
        callback : callable, default=None
            Called after each pass with a
            :class:`~docsigma.models.training_pass.TrainingPass`: its number, the
            history, and a function that returns the model so far. A true result
            ends the training early.
        checkpoint : path, default=None
            File to which a checkpoint is written every `checkpoint_every` passes and
            at the end, for `resume`.
        checkpoint_every : int, default=None
            Passes between two checkpoints; None means 50, or 1 for ``"fast"``.
        resume : bool, default=False
            Continue from `checkpoint`. On a CPU the result is bit for bit that of an
            uninterrupted run with the same number of processes.
        ranks : Ranks, default=None
            The processes that fit this model together, from ``Ranks.join()``; all of
            them call ``fit`` with the same counts, and get the same model. Each keeps
            the posteriors of its own documents (for counts on disk, in a file next to
            `checkpoint`). None means this process alone.

        Returns
        -------
        self
        """
        parts = self._parts()
        every = checkpoint_every
        if every is None:
            every = 1 if self.solver == "fast" else 50
        if every < 1:
            raise InputError(f"`checkpoint_every` must be at least 1, got {every}")
        ranks = ranks or Ranks()
        if ranks.size > 1 and self.solver != "fast":
            raise InputError(
                f'solver="paper" trains in one process, not in {ranks.size}; '
                'solver="fast" does'
            )
        counts, seed = self._begin(X, ranks.size)
        given = training_covariates(parts.prior, covariates, len(counts))
        seed = int(ranks.first(torch.tensor(seed)))
        self.parts_ = parts
        self.views_ = checked_views(views, counts, parts)
        self.vocabularies_, self.n_fitted_views_ = {}, None
        self.training_log_unigram_ = log_unigrams(counts.word_totals, self.views_)
        self._planned = self.minibatch_settings.n_passes(
            counts.shape[0], self.n_components
        )
        scratch = None
        if checkpoint is not None and not counts.in_memory:
            scratch = Path(checkpoint).absolute().parent
        trainer = self._trainer(counts, seed, ranks, scratch, given)
        store = None
        if checkpoint is not None:
            store = _storage.CheckpointFile(checkpoint, self, counts, given)
            if resume:
                store.restore(trainer)
        elif resume:
            raise InputError("`resume` needs a `checkpoint` file to continue from")

        def save(trainer: Trainer) -> None:
            if store is not None and trainer.epoch % every == 0:
                store.write(trainer)

        with self._arithmetic():
            self._run(trainer, self.n_passes, callback, save)
        if store is not None and trainer.epoch % every:
            store.write(trainer)
        with self._arithmetic():
            trainer.integrate_documents()
        self._adopt(trainer)
        self._check_learned()
        return self

    def _check_learned(self) -> None:
        """Warn if the embeddings carry no information: the model is the uni-gram."""
        last = self.history_[-1]["kl"] if self.history_ else 0.0
        # After a few passes set by the caller, the model may still learn.
        ended = self.max_iter is None or self.converged_
        # A hundredth of a nat per document is nothing.
        if self.gives_points or not last < 0.01 or not ended:
            return
        warnings.warn(
            "nothing was learned beyond how frequent words are: embeddings of the "
            f"documents differ from the prior by {last:.2g} nats on average. More "
            f"documents or fewer components than {self.n_components} may help, or "
            "a small penalty such as l1=0.03 in place of the learned prior",
            UserWarning,
            stacklevel=2,
        )

    def _trainer(
        self,
        counts: Counts,
        seed: int,
        ranks: Ranks,
        scratch: Path | None,
        covariates: NDArray[np.float64] | None,
    ) -> Trainer:
        """Return the solver's trainer, if it supports the model's covariances."""
        like = self._empty(counts)
        parts, k = self.parts_, self.n_components
        views = self._views()
        given = None if covariates is None else torch.from_numpy(covariates)
        if self.solver == "fast":
            groups = None if views is None else views.of_columns()
            ordered, settings = SortedCounts(counts, groups), self.minibatch_settings
            rate = self.learning_rate or settings.learning_rate(k)
            stages = plan_stages(
                ordered, self.n_passes, rate, settings, at_once=views is not None
            )
            return MinibatchTrainer(
                ordered,
                parts,
                like,
                n_components=k,
                stages=stages,
                batch_size=settings.batch_size(counts.shape[0], self.batch_size),
                learn_bias=self.learn_log_unigram,
                init_scale=float(self.init_scale),
                seed=seed,
                settings=settings,
                ranks=ranks,
                scratch=scratch,
                views=views,
                covariates=given,
            )
        variance = getattr(self, "init_variance", 1.0)
        posterior = parts.covariance.constant(counts.shape[0], k, variance, like)
        if not isinstance(posterior, (DiagonalGaussians, Points)):
            raise InputError(
                'solver="paper" moves diagonal covariances or points, got '
                f'{parts.covariance!r}; use solver="fast"'
            )
        source = generator(seed, Stream.LOADINGS)
        start = standard_normals((counts.shape[1], k), source, like) * self.init_scale
        return Algorithm1Trainer(
            # Every step moves all posteriors, so all documents are in memory.
            CountTensor(counts[:], like, views=views),
            posterior,
            parts,
            start,
            torch.from_numpy(self.training_log_unigram_).to(like),
            learning_rate=self.learning_rate or Algorithm1Settings().learning_rate,
            n_draws=1 if posterior.is_point else self.n_draws,
            learn_bias=self.learn_log_unigram,
            seed=seed,
            covariates=given,
        )

    def _set_columns(self, columns: torch.Tensor) -> None:
        k = self.n_components
        # Trained on, a model of one view is no longer that of the others.
        self.whole_ = None
        super()._set_columns(columns[:, :k])
        self.components_variance_ = None
        if self.parts_.loadings.has_variance:
            self.components_variance_ = columns[:, k:].t().cpu().numpy().copy()

    def _prepare_snapshot(self, model: CountModel) -> None:
        assert isinstance(model, SubspaceModel)
        model.parts_ = copy.deepcopy(self.parts_)
        model.views_ = self.views_

    def _digested_arrays(self) -> dict[str, NDArray[Any]]:
        # Those of the first view determine the axes, and stay if views are added.
        if self.views_ is None:
            return self._learned_arrays()
        return view_of(self, next(iter(self.views_)))._learned_arrays()

    def _views(self) -> Views | None:
        """Return the ranges of the views, if there are several."""
        if self.views_ is None or len(self.views_) == 1:
            return None
        return Views(tuple(self.views_.values()), self.n_fitted_views_)

    def view(self, name: str) -> Self:
        """Return the model of one view alone: its words, and the same embeddings.

        Parameters
        ----------
        name : str
            One of ``views_``.
        """
        check_is_fitted(self)
        if self.views_ is None:
            raise InputError(
                f"the model has no view or language {name!r}: it has one view, without "
                "a name"
            )
        own = view_of(self, name)
        own._adopt_digest(self)
        return own

    def extend(self, name: str, X: CountsLike, posterior: GaussianPosterior) -> Self:
        """Add a view, from documents whose posteriors are known by other views.

        What is known stays as it is: embeddings of before remain comparable.

        Parameters
        ----------
        name : str
            The new view.
        X : array, sparse matrix or Counts of shape (n_documents, n_words)
            Word counts in that view; those of documents that lack it are left out.
        posterior : GaussianPosterior
            Of the same documents, by the views that the model has.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if self.views_ is None:
            raise InputError("`extend` needs a model that was fitted with `views`")
        if name in self.views_:
            raise InputError(f"the model has the view or language {name!r} already")
        if posterior.model_digest not in {None, self.digest}:
            raise InputError("`posterior` was made by another model")
        like = self.components_.dtype
        counts = estimator_counts(clone(self), X, reset=True, like=like)
        if len(counts) != len(posterior):
            raise InputError(
                f"`X` has {len(counts)} documents, `posterior` has {len(posterior)}"
            )
        rows = np.flatnonzero(counts.n_tokens > 0)
        if len(rows) < self.n_components:
            raise InputError(
                f"{name!r} has words in {len(rows)} documents, and learning them takes "
                f"at least as many as there are components, {self.n_components}"
            )
        add_view(self, name, counts[rows], posterior[rows])
        return self

    def set_vocabularies(self, words: Mapping[str, Vocabulary]) -> Self:
        """Attach the words of all views by their names; they are saved too."""
        check_is_fitted(self)
        sizes = {name: len(own) for name, own in words.items()}
        if sizes != self.views_:
            raise InputError(
                f"the vocabularies have {sizes} words, the model was fitted on the "
                f"views {self.views_}"
            )
        self.vocabularies_ = dict(words)
        return self

    def _model(self, covariates: NDArray[np.float64] | None = None) -> Model:
        """Return the words on the device, with the other parts.

        With `covariates`, the prior is that of these documents.
        """
        loadings, bias = self._tensors()
        views, variance = self._views(), None
        if views is not None:
            loadings = centred(loadings, bias, views)
        if self.components_variance_ is not None:
            spread = np.ascontiguousarray(self.components_variance_.T)
            variance = torch.from_numpy(spread).to(loadings)
        model = self.parts_.model(loadings, bias, variance, views)
        if covariates is None:
            return model
        given = torch.from_numpy(covariates).to(loadings)
        prior = self.parts_.prior.tensors(self.n_components, loadings, given)
        return replace(model, prior=prior)

    def _infer(
        self,
        counts: sp.csr_matrix,
        family: CovarianceFamily | None = None,
        progress: Callable[[int], object] | None = None,
        covariates: NDArray[np.float64] | None = None,
    ) -> Gaussians:
        family = family or self.parts_.covariance
        if self.views_ is not None:
            return infer_views(self, counts, family, progress)
        return self._infer_together(counts, family, progress, covariates)

    def _infer_together(
        self,
        counts: sp.csr_matrix,
        family: CovarianceFamily,
        progress: Callable[[int], object] | None,
        covariates: NDArray[np.float64] | None = None,
    ) -> Gaussians:
        """Infer documents by all words."""
        # The prior of documents with covariates is another.
        words = None if covariates is not None else self._kept_words(family)
        model = self._model(covariates) if words is None else words.model
        documents = CountTensor(counts, model.bias, views=model.views)
        limits: dict[str, Any] = {
            "max_iter": self.inference_max_iter,
            "tol": self.inference_tol,
            "progress": progress,
        }
        if isinstance(family, Full):
            found = infer_full(documents, model, family, **limits)
        else:
            found = infer(documents, model, family, words=words, **limits)
        missed = int((~found.converged).sum())
        if missed:
            warnings.warn(
                f"{missed} of {counts.shape[0]} documents did not converge in "
                f"{self.inference_max_iter} passes, so their embeddings are less "
                "exact: a larger `inference_max_iter` allows more passes",
                ConvergenceWarning,
                stacklevel=2,
            )
        return found.posterior

    def keep_words(self) -> Self:
        """Cache what inference needs of the words, for many calls with few documents.

        The cache takes about as much memory as three copies of the loadings, and is
        rebuilt after further training. Several threads may use it at the same time.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if not isinstance(self.parts_.covariance, Full):
            _KEPT[self] = None
        return self

    def _kept_words(self, family: CovarianceFamily) -> Evaluator | None:
        """Return the cached evaluator, rebuilt after a change of the words."""
        if self not in _KEPT or family is not self.parts_.covariance:
            return None
        key, kept = (self.components_, family, self.device), _KEPT[self]
        if kept is None or any(a is not b for a, b in zip(key, kept[0], strict=True)):
            kept = _KEPT[self] = key, Evaluator(self._model(), family, NewtonSettings())
        evaluator: Evaluator = kept[1]
        return evaluator

    def _embed(
        self,
        X: CountsLike,
        family: CovarianceFamily | None = None,
        covariates: ArrayLike | None = None,
    ) -> list[Any]:
        """Return the arrays of the posteriors and the tokens per block of documents."""
        check_is_fitted(self)
        counts = self._check_counts(X, reset=False)
        given = check_covariates(self.parts_.prior, covariates, len(counts))
        found, shown, start = [], bool(self.verbose), 0
        about: dict[str, Any] = {"desc": "embedding", "unit": "doc", "delay": 2}
        with (
            self._arithmetic(),
            tqdm(total=len(counts), disable=not shown, **about) as bar,
        ):
            for block in counts.iter_blocks():
                tokens = np.asarray(block.sum(axis=1), dtype=np.float64).ravel()
                own = None if given is None else given[start : start + len(tokens)]
                start += len(tokens)
                q = self._infer(block, family, bar.update if shown else None, own)
                found.append((q.arrays(), tokens))
        return found

    def _means(self, X: CountsLike) -> NDArray[Any]:
        found = [arrays["mean"] for arrays, _ in self._embed(X)]
        if not found:
            return np.empty((0, self.n_components), dtype=self.components_.dtype)
        return np.concatenate(found)

    def posterior(
        self,
        X: CountsLike,
        covariance: str | CovarianceFamily | None = None,
        *,
        covariates: ArrayLike | None = None,
    ) -> GaussianPosterior:
        """Infer the Gaussian of each document.

        It depends only on the document and the model. A document with no known word
        gets the prior.

        Parameters
        ----------
        X : array, sparse matrix or Counts of shape (n_documents, n_features)
            Word counts.
        covariance : {"diagonal", "full"} or CovarianceFamily, default=None
            Form of the covariances; None means that of the training. The bound of
            ``"full"`` is nearly the evidence; with 100 components it takes 20 times as
            long as ``"diagonal"``, and K^2 numbers per document.
        covariates : array of shape (n_documents,) or (n_documents, n_covariates)
            Those of the documents, for a model of ``prior="covariates"``: then each has
            its own prior mean. Without them, the prior is wider.

        Returns
        -------
        GaussianPosterior
            With the prior, and the known tokens of each document.
        """
        check_is_fitted(self)
        k = self.n_components
        family = self.parts_.covariance
        if covariance is not None:
            family = make_part("covariance", covariance)
        assert isinstance(family, CovarianceFamily)
        if family.is_point:
            raise InputError(
                f"{type(self).__name__} gives points, not Gaussians: use "
                "`transform`, or BayesianSMM"
            )
        carried: dict[str, Any] = {
            "prior": self.parts_.prior.gaussian(k),
            "model_digest": self.digest,
        }
        found = [
            GaussianPosterior(**arrays, n_tokens=tokens, **carried)
            for arrays, tokens in self._embed(X, family, covariates)
        ]
        if not found:
            nothing = np.empty((0, k), dtype=self.components_.dtype)
            return GaussianPosterior(nothing, nothing, n_tokens=[], **carried)
        q = found[0] if len(found) == 1 else GaussianPosterior.concatenate(found)
        given = check_covariates(self.parts_.prior, covariates, len(q))
        if given is None:
            return q
        assert isinstance(self.parts_.prior, CovariatePrior)
        return q.replace(prior=self.parts_.prior.given(given))
