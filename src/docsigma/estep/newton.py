"""One safeguarded Newton loop for the posteriors of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.estep.anderson import Anderson
from docsigma.estep.curvature import own_trace
from docsigma.estep.evaluator import Evaluator
from docsigma.estep.settings import NewtonSettings
from docsigma.estep.state import State
from docsigma.kernels.rounding import is_coarse, use_rounding

if TYPE_CHECKING:
    from collections.abc import Callable

    from docsigma.covariances import CovarianceFamily, Gaussians
    from docsigma.kernels import CountTensor
    from docsigma.objective import Model
    from docsigma.priors import PriorTensors


@dataclass(frozen=True)
class Inferred:
    """Posteriors, and the passes and bounds of the documents.

    Attributes
    ----------
    posterior : Gaussians
        One per document.
    n_iter : Tensor of shape (n,)
        Passes over all words that each document took.
    converged : Tensor of shape (n,)
        Whether it met the tolerance.
    bound : Tensor of shape (n,)
        The bound that was maximised, before the last step.
    """

    posterior: Gaussians
    n_iter: Tensor
    converged: Tensor
    bound: Tensor


def infer(
    counts: CountTensor,
    model: Model,
    family: CovarianceFamily,
    *,
    max_iter: int = 200,
    tol: float = 0.04,
    settings: NewtonSettings | None = None,
    words: Evaluator | None = None,
    progress: Callable[[int], object] | None = None,
) -> Inferred:
    r"""Maximise the bound of each document over a family of posteriors.

    The bound is :func:`~docsigma.objective.document_bound` with the deterministic
    :class:`~docsigma.objective.ExpectedLse`. Its stationary points obey

    .. math::
        \Sigma^{-1} = \Lambda + n\,\mathrm{Cov}_{\hat\theta}(t), \qquad
        cT - n E_{\hat\theta}[t] = \Lambda(\nu - m_0)

    with the likelihood's effective counts c and their sum n (the counts and the tokens
    for the multinomial). Means move by Newton steps with the curvature of
    :class:`~docsigma.estep.curvature.WordCurvature`, their length from the last two
    gradients; covariances are set by the first equation. A step that lowers a
    document's bound is undone and halved; if the bound changes too little to tell, the
    slopes at both ends of the step decide. With a large vocabulary, the first steps use
    the frequent words, with the rest merged into one. There are no draws: a posterior
    depends only on the document and the model, not on a seed or on other documents.

    On a GPU, the TF32 rounding of products may move the mean of a long document by more
    than the tolerance, and prevent convergence. Such documents are finished in float32.

    Parameters
    ----------
    counts : CountTensor
    model : Model
        Its prior is that of these documents, whose means may differ.
    family : CovarianceFamily
    max_iter : int, default=200
        Maximum number of passes over all words.
    tol : float, default=0.04
        A document is done when a step moves its mean by less than `tol` standard
        deviations and its variance by less than `tol` of itself, both in the root mean
        square over the dimensions. It has not converged if rounding alone may move it
        as far.
    settings : NewtonSettings, default=None
    words : Evaluator, default=None
        Evaluator of this model, except for the prior's mean, and family, to reuse.
    progress : callable, default=None
        Called after each pass with the number of documents that are done by it.
    """
    settings = settings or NewtonSettings()
    words = words or Evaluator(model, family, settings)
    n_documents = len(counts)
    q = family.constant(n_documents, model.n_components, 1.0, model.loadings)
    n_iter = torch.zeros(n_documents, dtype=torch.int64)
    # Moved in place.
    found = Inferred(q, n_iter, n_iter > 0, n_iter.double())
    coarse = is_coarse(model.bias)
    # Extrapolation would follow the rounding.
    limit = min(max_iter, settings.patience - 1) if coarse else max_iter
    chunk = settings.gpu_chunk if model.loadings.is_cuda else settings.chunk
    for start in range(0, n_documents, chunk):
        stop = min(start + chunk, n_documents)
        block = counts if stop - start == n_documents else counts[start:stop]
        likelihood = model.likelihood.bind(block, model.loadings, model.bias)
        state = State.begin(likelihood, words, model.prior[start:stop])
        climb(state, torch.arange(start, stop), found, limit, tol, progress)
    if coarse:
        with use_rounding("float32"):
            finish(counts, words, model.prior, found, max_iter - limit, tol)
    return found


def finish(
    counts: CountTensor,
    words: Evaluator,
    prior: PriorTensors,
    found: Inferred,
    max_iter: int,
    tol: float,
) -> None:
    """Continue with the documents that have not converged."""
    model, settings = words.model, words.settings
    chunk = settings.gpu_chunk if model.loadings.is_cuda else settings.chunk
    norms = words.squares.sum(dim=1)
    missed = torch.nonzero(~found.converged)[:, 0]
    if not len(missed):
        return
    for rows in torch.split(missed, chunk):
        device_rows = rows.to(model.bias.device)
        likelihood = model.likelihood.bind(
            counts.select(device_rows), model.loadings, model.bias
        )
        trace = own_trace(likelihood.counts, norms, likelihood.projected)
        q = found.posterior[device_rows]
        state = State.start_at(likelihood, words, prior[device_rows], q, trace)
        climb(state, rows, found, max_iter, tol)


def climb(
    state: State,
    rows: Tensor,
    found: Inferred,
    max_iter: int,
    tol: float,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Step until every document is done; `rows` are their positions in `found`."""
    for iteration in range(1, max_iter + 1):
        under_way = state.open
        settings = state.words.settings
        if iteration == settings.patience:
            state.memory = Anderson()
            state.weight = torch.ones_like(state.weight)
        weight = state.weight[under_way]
        done = state.step(tol)
        where = rows[state.index[under_way].cpu()]
        device_rows = where.to(state.value.device)
        answer = state.answer()[under_way]
        found.posterior[device_rows] = found.posterior[device_rows].towards(
            answer, weight
        )
        found.bound[where] = state.value[under_way].cpu()
        found.n_iter[where] += 1
        found.converged[where] = (done & state.sharp(tol))[under_way].cpu()
        state.open = under_way & ~done & ~state.stuck
        alive = int(state.open.sum())
        if progress is not None:
            progress(int(under_way.sum()) - alive)
        if alive == 0:
            break
        if alive < settings.alive * len(state.index):
            state = state.compact()
