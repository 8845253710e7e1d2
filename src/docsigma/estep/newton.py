"""One safeguarded Newton loop for the posteriors of documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.estep.anderson import Anderson
from docsigma.estep.curvature import LoadingsBasis
from docsigma.estep.exact_newton import ExactNewton, Point
from docsigma.estep.settings import NewtonSettings
from docsigma.estep.state import State
from docsigma.kernels import SoftmaxWords
from docsigma.objective import ExpectedLse

if TYPE_CHECKING:
    from collections.abc import Callable

    from docsigma.kernels import CountTensor
    from docsigma.objective import LseTerms, Model
    from docsigma.posteriors import Gaussians, PosteriorFamily

    Lse = Callable[[Gaussians, Tensor], LseTerms]


@dataclass(frozen=True)
class Inferred:
    r"""Posteriors and how they were reached.

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

    @classmethod
    def before(cls, posterior: Gaussians) -> Inferred:
        """Return posteriors before the first pass, to be moved in place."""
        n_iter = torch.zeros(len(posterior), dtype=torch.int64)
        return cls(posterior, n_iter, n_iter > 0, n_iter.double())


def infer(
    counts: CountTensor,
    model: Model,
    family: PosteriorFamily,
    *,
    max_iter: int = 200,
    tol: float = 0.04,
    settings: NewtonSettings | None = None,
    words: Evaluator | None = None,
) -> Inferred:
    r"""Maximise the bound of each document over a family of posteriors.

    The bound is :func:`~docsigma.objective.document_bound` with the deterministic
    :class:`~docsigma.objective.ExpectedLse`. Its stationary points obey

    .. math::
        \Sigma^{-1} = \Lambda + n\,\mathrm{Cov}_{\hat\theta}(t), \qquad
        cT - n E_{\hat\theta}[t] = \Lambda(\nu - m_0)

    with the likelihood's effective counts c and their sum n (the counts and the tokens
    for the multinomial). Means move by Newton steps with the curvature of
    :class:`~docsigma.estep.curvature.WordCurvature`, their length taken from the
    last two gradients; covariances go to where the first equation has them. A step that
    lowers a document's bound is undone and halved; where the bound changes too little
    to tell, the slopes at both ends of the step do.
    Where there are many words, the first steps see the frequent ones, with one word in
    place of all others. Documents that still climb after 40 passes are finished with
    exact second derivatives (:mod:`~docsigma.estep.exact_newton`), where these are
    known: for diagonal covariances, point loadings and a linear likelihood, in up to 32
    dimensions.

    There are no draws: the answer depends on the document and the model, not on a
    seed, on neighbours or on order. Only documents of a handful of tokens whose
    uncertainty lies in few directions are finished on the paper's bound, with draws
    that are always the same (:mod:`~docsigma.estep.short_documents`).

    Parameters
    ----------
    counts : CountTensor
        The documents.
    model : Model
        Words, likelihood and prior.
    family : PosteriorFamily
        Which covariances a posterior may have.
    max_iter : int, default=200
        Passes over all words at the most.
    tol : float, default=0.04
        A document is done with the step that moves its mean by less than `tol`
        standard deviations and its variance by less than `tol` of itself, both in
        the root mean square over the dimensions.
    settings : NewtonSettings, default=None
        How the loop steps.
    words : Evaluator, default=None
        What was made of this model and family before, to save making it again.

    Returns
    -------
    Inferred
    """
    from docsigma.estep.short_documents import refine

    settings = settings or NewtonSettings()
    words = words or Evaluator(model, family, settings)
    n_documents = len(counts)
    q = family.constant(n_documents, model.n_components, 1.0, model.loadings)
    found = Inferred.before(q)
    chunk = settings.gpu_chunk if model.loadings.is_cuda else settings.chunk
    for start in range(0, n_documents, chunk):
        stop = min(start + chunk, n_documents)
        block = counts if stop - start == n_documents else counts[start:stop]
        likelihood = model.likelihood.bind(block, model.loadings, model.bias)
        state = State.begin(likelihood, words)
        climb(state, torch.arange(start, stop), found, max_iter, tol)
    refine(counts, model, words, found)
    return found


class Evaluator:
    """The words of a model as the loop evaluates them."""

    def __init__(
        self,
        model: Model,
        family: PosteriorFamily,
        settings: NewtonSettings,
        basis: LoadingsBasis | None = None,
        expected_lse: Lse | None = None,
    ) -> None:
        self.model, self.family, self.settings = model, family, settings
        self.basis = basis or LoadingsBasis(model.loadings, model.bias, model.prior)
        whole = ExpectedLse(model, family) if expected_lse is None else expected_lse
        self.expected_lse: Lse = whole
        self.frequent: Lse | None = None
        self.twice_differentiable = False
        if not isinstance(whole, ExpectedLse):
            return
        # What `exact_newton` knows: its second derivatives are written for this case.
        self.twice_differentiable = (
            family.diagonal
            and not family.is_point
            and model.likelihood.linear
            and model.n_components <= settings.exact_components
        )
        if len(model.bias) >= settings.large_vocabulary and model.bias.is_cpu:
            self.frequent = _frequent(whole, settings.frequent_part)

    @cached_property
    def squares(self) -> Tensor:
        """Squares of the loadings."""
        return self.model.loadings * self.model.loadings


def _frequent(whole: ExpectedLse, part: int) -> ExpectedLse:
    """Return the bound over frequent words and one that stands for all others."""
    features, bias = whole.words.loadings, whole.words.bias
    order = bias.argsort(descending=True, stable=True)
    frequent, rare = order.tensor_split([len(order) // part])
    mean = bias[rare].double().softmax(dim=0) @ features[rare].double()
    together = bias[rare].logsumexp(dim=0, keepdim=True)
    some = SoftmaxWords(
        torch.cat([features[frequent], mean[None].to(features)]),
        torch.cat([bias[frequent], together]),
    )
    return whole.with_words(some)


def climb(
    state: State, rows: Tensor, found: Inferred, max_iter: int, tol: float
) -> None:
    """Step until every document is done; `rows` says where in `found` they belong."""
    for iteration in range(1, max_iter + 1):
        under_way = state.open
        settings = state.words.settings
        if iteration == settings.patience:
            state.memory = Anderson()
            state.weight = torch.ones_like(state.weight)
        if iteration == settings.exact_from and state.words.twice_differentiable:
            finish(state, rows, found, max_iter - iteration + 1, tol)
            break
        weight = state.weight[under_way]
        done = state.step(tol)
        where = rows[state.index[under_way].cpu()]
        device_rows = where.to(state.value.device)
        answer = state.answer()[under_way]
        found.posterior[device_rows] = found.posterior[device_rows].towards(
            answer, weight
        )
        found.bound[where] = state.value[under_way].cpu()
        found.n_iter[where] = iteration
        found.converged[where] = done[under_way].cpu()
        state.open = under_way & ~done
        if not state.words.twice_differentiable:
            state.open &= ~state.stuck
        alive = int(state.open.sum())
        if alive == 0:
            break
        if alive < settings.alive * len(state.index):
            state = state.compact()


def finish(
    state: State, rows: Tensor, found: Inferred, max_iter: int, tol: float
) -> None:
    """Finish the documents under way by Newton's method in all they depend on."""
    state = state.compact()
    q, centre = state.current.q, state.current.centre
    exact = ExactNewton(state.likelihood, state.words.model)
    start = Point(q.mean.double(), q.variance.double(), centre.double())
    point, n_iter, converged = exact.climb(start, max_iter, tol)
    where = rows[state.index.cpu()]
    found.posterior[where.to(q.mean.device)] = point.q
    found.bound[where] = exact.bound(point).cpu()
    found.n_iter[where] += n_iter.cpu()
    found.converged[where] = converged.cpu()
