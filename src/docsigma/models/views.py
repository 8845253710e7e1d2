"""Models of several views of a document: one embedding, words of each view apart."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from sklearn.base import clone

from docsigma.counts.memory import as_counts
from docsigma.counts.sorted_counts import SortedCounts, log_unigram
from docsigma.exceptions import InputError
from docsigma.kernels import Views
from docsigma.models._given_posterior import gaussians
from docsigma.priors import CovariatePrior
from docsigma.trainers import MinibatchTrainer
from docsigma.trainers.schedule import plan_stages

if TYPE_CHECKING:
    from collections.abc import Callable

    import scipy.sparse as sp
    from numpy.typing import NDArray
    from torch import Tensor

    from docsigma.counts import Counts
    from docsigma.covariances import CovarianceFamily, Gaussians
    from docsigma.models._subspace_model import SubspaceModel
    from docsigma.parts import Parts
    from docsigma.posterior import GaussianPosterior

    Model = TypeVar("Model", bound=SubspaceModel)


def checked_views(views: object, counts: Counts, parts: Parts) -> dict[str, int] | None:
    """Return the numbers of words by the names of views; None if there is one view.

    Raises
    ------
    InputError
        If they are not a mapping of names to positive numbers that sum to the columns
        of `counts`, the likelihood is not linear, or the prior has covariates.
    """
    if views is None:
        return None
    if not isinstance(views, Mapping) or not views:
        raise InputError(
            "`views` must map the name of each view to its number of columns, got "
            f"{views!r:.80}"
        )
    found = {str(name): int(size) for name, size in views.items()}
    n_columns = counts.shape[1]
    if min(found.values()) < 1 or sum(found.values()) != n_columns:
        raise InputError(
            f"`views` must be positive numbers of columns that sum to {n_columns}, got "
            f"{found}"
        )
    if not parts.likelihood.linear:
        raise InputError(
            'several views need likelihood="multinomial", whose words share no tokens, '
            f"got {parts.likelihood!r}"
        )
    if isinstance(parts.prior, CovariatePrior):
        raise InputError("covariates are for documents of one view: leave out `views`")
    return found


def view_columns(views: Mapping[str, int], name: str) -> slice:
    """Return the columns of a view."""
    if name not in views:
        raise InputError(
            f"the model has no view or language {name!r}; it has {', '.join(views)}"
        )
    return dict(zip(views, Views(tuple(views.values())).ranges, strict=True))[name]


def view_of(model: Model, name: str) -> Model:
    """Return the model of one view, whose embeddings are those of `model`."""
    assert model.views_ is not None
    columns = view_columns(model.views_, name)
    own = copy.copy(model)
    own.__dict__.pop("_stream", None)
    own.__dict__.pop("feature_names_in_", None)
    own.views_, own.reference_ = None, None
    own.n_features_in_ = columns.stop - columns.start
    own.components_ = model.components_[:, columns]
    own.log_unigram_ = model.log_unigram_[columns]
    own.training_log_unigram_ = model.training_log_unigram_[columns]
    if model.components_variance_ is not None:
        own.components_variance_ = model.components_variance_[:, columns]
    own.vocabulary_ = model.vocabularies_.get(name)
    own.vocabularies_, own.whole_ = {}, (model, name)
    return own


def centred(loadings: Tensor, bias: Tensor, views: Views) -> Tensor:
    """Return loadings less the mean of their view under its uni-gram.

    The probabilities are the same, and the views' loadings have a common origin.
    """
    return torch.cat(
        [
            loadings[words] - torch.softmax(bias[words], dim=0) @ loadings[words]
            for words in views.ranges
        ]
    )


def infer_views(
    model: SubspaceModel,
    counts: sp.csr_matrix,
    family: CovarianceFamily,
    progress: Callable[[int], object] | None,
) -> Gaussians:
    """Infer documents with some of the views: those with one by its words alone.

    Which of both depends only on the document, and so does its posterior.
    """
    assert model.views_ is not None
    views = Views(tuple(model.views_.values()))
    seen = views.tokens(counts) > 0
    alone = seen.sum(axis=1) <= 1
    first = seen.argmax(axis=1)
    like = model._empty(model.components_)
    found = family.constant(counts.shape[0], model.n_components, 1.0, like)
    for number, (name, words) in enumerate(
        zip(model.views_, views.ranges, strict=True)
    ):
        rows = np.flatnonzero(alone & (first == number))
        if len(rows):
            own = model.view(name)._infer(counts[rows][:, words], family, progress)
            found[torch.from_numpy(rows).to(like.device)] = own
    rows = np.flatnonzero(~alone)
    if len(rows):
        own = model._infer_together(counts[rows], family, progress)
        found[torch.from_numpy(rows).to(like.device)] = own
    return found


def add_view(
    model: SubspaceModel,
    name: str,
    counts: sp.csr_matrix,
    posterior: GaussianPosterior,
) -> None:
    """Learn the words of one more view; neither posteriors nor other words move."""
    n_documents, n_words = counts.shape
    k, settings, known = model.n_components, model.minibatch_settings, model.parts_
    like = model._empty(model.components_)
    q = gaussians(posterior, slice(0, n_documents), like)
    ordered, n_passes = SortedCounts(counts), settings.n_passes(n_documents, k)
    trainer = MinibatchTrainer(
        ordered,
        replace(known, covariance=q.family, loadings=clone(known.loadings)),
        like,
        n_components=k,
        stages=plan_stages(ordered, n_passes, settings.learning_rate(k), settings),
        batch_size=settings.batch_size(n_documents, model.batch_size),
        learn_bias=model.learn_log_unigram,
        init_scale=float(model.init_scale),
        seed=model.seed_,
        settings=settings,
        given=q,
    )
    with model._arithmetic():
        trainer.run(n_passes, model.tol)
    columns, bias = trainer.fitted()

    def joined(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([old, new.astype(old.dtype)], axis=-1)

    new, both = columns.t().cpu().numpy(), model.components_variance_
    model.components_ = joined(model.components_, new[:k])
    if both is not None:
        model.components_variance_ = joined(both, new[k:])
    model.log_unigram_ = joined(model.log_unigram_, bias.cpu().numpy())
    own = log_unigram(as_counts(counts).word_totals)
    model.training_log_unigram_ = joined(model.training_log_unigram_, own)
    model.n_features_in_ += n_words
    assert model.views_ is not None
    model.n_fitted_views_ = model.n_fitted_views_ or len(model.views_)
    model.views_ = {**model.views_, name: n_words}


def log_unigrams(
    word_totals: NDArray[np.float64], views: Mapping[str, int] | None
) -> NDArray[np.float64]:
    """Return the log uni-gram of each view, one after the other."""
    if views is None:
        return log_unigram(word_totals)
    ranges = Views(tuple(views.values())).ranges
    return np.concatenate([log_unigram(word_totals[words]) for words in ranges])
