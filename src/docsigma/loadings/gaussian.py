"""A Gaussian posterior over the word loadings T."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from docsigma import objective
from docsigma.exceptions import InputError
from docsigma.loadings._base import Loadings
from docsigma.optimizers import Adam, ProximalAdam

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from docsigma.loadings._base import WordGradient, WordInformation

# Minimum prior variance of a logit, over all dimensions. Without it search snippets
# lose 1.5 % of the bound (`benchmarks/training_settings.py`, K 50), and nothing is
# learned from a dozen short texts.
TOGETHER = 5.0
# Minimum per dimension: it matters from K 167 on. Without it, with K 300, titles lose
# 0.06 %, and Switchboard gains 0.5 %.
EACH = 0.03
# Minimum per dimension at the start: it matters from K 51 on. With K 300 the bound is
# the same without it.
START = 0.1


class GaussianLoadings(Loadings):
    r"""T as one Gaussian per word and dimension, under a prior that is learned.

    .. math::
        q(T) = \prod N(t_{jk}\,|\,M_{jk}, S_{jk}^2), \qquad
        p(T) = \prod N(t_{jk}\,|\,0, \tau_k^2).

    The means are the most probable loadings. The variances are the inverse of the
    curvature there (Laplace's method), :math:`1/S_{jk}^2 = 1/\tau_k^2 +
    \sum_d x_{dj} E[w_{dk}^2]`, with counts in place of their expectations: large for
    rare words, small for frequent ones. The prior's variances are learned by
    empirical Bayes (MacKay's fixed point, :math:`\tau_k^2 = \sum_j M_{jk}^2 /
    \sum_j (1 - S_{jk}^2/\tau_k^2)`), so that a dimension that is not needed goes to
    zero, and there is no penalty to tune.

    Parameters
    ----------
    least_variance : float, default=None
        Minimum of the mean of :math:`\tau_k^2/\lambda` over the dimensions: the prior
        variance of a word's logit per dimension. Without it, loadings and embeddings
        could shrink together, and the model with them. The ratios between dimensions
        are learned. None means 5 for all dimensions together, or 0.03 for each if that
        is more.
    learn : bool, default=True
        Whether :math:`\tau^2` is learned.
    prior_precision : float, default=10.0
        :math:`\lambda` of the embeddings, which sets the scale of T.
    seeds : list of lists of int, default=None
        Words, as columns of the counts, that belong together: those of list s have the
        prior mean :math:`\sqrt\lambda` along dimension s. A document one standard
        deviation along it then has them e times as often.
    seed_strength : float, default=100.0
        How sure that is: as sure as if a word had been seen this many times.

    Attributes
    ----------
    prior_variance_ : ndarray of shape (K,)
        :math:`\tau^2`.
    second_moment_ : ndarray of shape (K,)
        :math:`E[w^2]` over the training tokens.

    References
    ----------
    D. MacKay: Bayesian interpolation. Neural Computation 4, 1992.
    """

    has_variance: ClassVar[bool] = True

    def __init__(
        self,
        least_variance: float | None = None,
        learn: bool = True,
        prior_precision: float = 10.0,
        seeds: list[list[int]] | None = None,
        seed_strength: float = 100.0,
    ) -> None:
        self.least_variance = least_variance
        self.learn = learn
        self.prior_precision = prior_precision
        self.seeds = seeds
        self.seed_strength = seed_strength

    def _least(self, n_components: int) -> float:
        r"""Return the minimum mean of :math:`\tau^2`."""
        least = self.least_variance
        if least is None:
            least = max(TOGETHER / n_components, EACH)
        return float(least) * float(self.prior_precision)

    def _start(self, n_components: int) -> float:
        r"""Return :math:`\tau^2` at the start."""
        return max(START * float(self.prior_precision), self._least(n_components))

    def use_rank(self, rank: NDArray[Any]) -> None:
        """Note where each word of the counts is in training, which sorts them."""
        self._rank = rank

    def _seeded_entries(self, n_words: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows and dimensions that seeds set, among the first words."""
        pairs = [
            (word, s) for s, words in enumerate(self.seeds or []) for word in words
        ]
        rows, dimensions = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        rank = getattr(self, "_rank", None)
        rows = rows if rank is None else rank[rows]
        return rows[rows < n_words], dimensions[rows < n_words]

    def seeded(self, start: Tensor) -> Tensor:
        """Return directions to start from: those found, turned towards the seeds.

        The first dimensions are where the seeds lie in the space that was found, so
        that words that occur with them lie there too; the rest is orthogonal to them.
        """
        if not self.seeds:
            return start
        n_seeds, n_components = len(self.seeds), start.shape[1]
        if n_seeds > n_components:
            raise InputError(
                f"there are {n_seeds} lists of seeds and only {n_components} components"
            )
        rows, dimensions = (
            torch.from_numpy(i) for i in self._seeded_entries(len(start))
        )
        towards = start.new_zeros(n_seeds, n_components)
        towards.index_add_(0, dimensions.to(start.device), start[rows.to(start.device)])
        unit = torch.eye(n_components).to(start)
        turn, triangle = torch.linalg.qr(torch.cat([towards.t(), unit], dim=1))
        signs = triangle.diagonal()[:n_seeds].sign()
        turn[:, :n_seeds] *= torch.where(signs == 0, 1.0, signs)
        turned: Tensor = start @ turn
        return turned

    def shrink(self) -> float:
        """Return 1: a word must occur about one token more than expected."""
        return 1.0

    def ridge(self, n_components: int) -> float:
        """Return the prior's precision at the start."""
        return 1 / self._start(n_components)

    def penalty(self, loadings: Tensor) -> float:
        """Return the divergence of the loadings from their prior."""
        variance = self._ascent.variance[: len(loadings)]
        return objective.loadings_divergence(
            loadings, variance, self.prior_variance(loadings)
        )

    def columns(self, loadings: Tensor) -> Tensor:
        """Return ``[M, S**2]``."""
        return torch.cat([loadings, self._ascent.variance], dim=1)

    def second_moment(self, like: Tensor) -> Tensor:
        """Return :math:`E[w^2]` over the training tokens, of shape (K,)."""
        return torch.from_numpy(self.second_moment_).to(like)

    def minibatch_ascent(self, loadings: Tensor) -> _GaussianAscent:
        """Return proximal Adam for the means; the variances follow."""
        self._ascent = _GaussianAscent(self, loadings, ProximalAdam(loadings))
        return self._ascent

    def full_ascent(self, loadings: Tensor, learning_rate: float) -> _GaussianAscent:
        """Return Adam for the means; the variances follow."""
        optimizer = Adam(loadings, learning_rate)
        self._ascent = _GaussianAscent(self, loadings, optimizer)
        return self._ascent

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what only the training needs."""
        state: dict[str, Any] = super().__getstate__()
        only_training = ("_ascent", "_rank")
        return {k: value for k, value in state.items() if k not in only_training}

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the prior's variances and the second moment."""
        return {
            "prior_variance": self.prior_variance_,
            "second_moment": self.second_moment_,
        }

    def set_arrays(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Restore what :meth:`arrays` returned."""
        self.prior_variance_ = arrays["prior_variance"].copy()
        self.second_moment_ = arrays["second_moment"].copy()

    def prior_variance(self, like: Tensor) -> Tensor:
        r"""Return :math:`\tau^2` in the dtype and on the device of `like`."""
        return torch.from_numpy(self.prior_variance_).to(like)

    def n_effective(self, components: NDArray[Any], log_unigram: NDArray[Any]) -> int:
        """Return the number of rows of `components` that are in use."""
        unigram = np.exp(log_unigram - log_unigram.max())
        unigram /= unigram.sum()
        away = components - (components @ unigram)[:, None]
        added = (away**2 @ unigram) * self.second_moment_
        # At least a twentieth of what the strongest dimension adds to the logits.
        return int((added > 0.05 * added.max()).sum())

    def turn(self, squares: NDArray[Any]) -> None:
        """Change to other axes, the columns of a matrix (K, K) with these squares."""
        self.prior_variance_ = self.prior_variance_ @ squares
        self.second_moment_ = self.second_moment_ @ squares

    def learn_prior(self, mean: Tensor, variance: Tensor, step: float) -> Tensor:
        r"""Move :math:`\tau^2` towards its fixed point, and return it."""
        before = self.prior_variance(mean)
        if not self.learn:
            return before
        known = (variance / before).neg_().add_(1).clamp_(min=0).sum(dim=0)
        k, squares = mean.shape[1], mean.square().sum(dim=0)
        # One more word, with the initial variance: if nothing is known of any word, the
        # quotient would be 0 / 0.
        found = (squares + self._start(k)) / (known + 1)
        found = torch.lerp(before, found, step)
        found = found * (self._least(k) / found.mean()).clamp(min=1.0)
        self.prior_variance_ = found.double().cpu().numpy()
        return found


class _GaussianAscent:
    """Moves the means, and keeps the variances."""

    def __init__(
        self,
        part: GaussianLoadings,
        loadings: Tensor,
        optimizer: Adam | ProximalAdam,
    ) -> None:
        self.part, self.optimizer = part, optimizer
        k = loadings.shape[1]
        part.prior_variance_ = np.full(k, part._start(k))
        part.second_moment_ = np.full(k, 1 / part.prior_precision)
        self.variance = torch.full_like(loadings, part._start(k))
        self._known: WordInformation | None = None

    def ascend(self, loadings: Tensor, gradient: WordGradient) -> None:
        """Move the means in place."""
        assert gradient.information is not None
        curvature, totals = gradient.information
        n_words = len(gradient.linear)
        mean, variance = loadings[:n_words], self.variance[:n_words]
        if gradient.information is not self._known:
            # The same for all steps of a pass.
            self._known = gradient.information
            second = curvature.double().sum(dim=0) / totals.double().sum().clamp(min=1)
            self.part.second_moment_ = second.cpu().numpy()
        # A twentieth of the way per step; all of it gives the same bound.
        prior = self.part.learn_prior(mean, variance, 0.05)
        with self._seeds_in(mean, gradient, curvature):
            self._ascend(mean, variance, gradient, curvature, prior)

    @contextlib.contextmanager
    def _seeds_in(
        self, mean: Tensor, gradient: WordGradient, curvature: Tensor
    ) -> Iterator[None]:
        """Add the prior of the seeds to gradient and curvature, for one step."""
        part = self.part
        if not part.seeds:
            yield
            return
        entries = part._seeded_entries(len(gradient.linear))
        at = tuple(torch.from_numpy(index).to(mean.device) for index in entries)
        kept = gradient.linear[at], curvature[at]
        centre = float(part.prior_precision) ** 0.5
        # What that many tokens would say.
        strength = float(part.seed_strength) / float(part.prior_precision)
        gradient.linear[at] += strength * (centre - mean[at])
        curvature[at] += strength
        try:
            yield
        finally:
            gradient.linear[at], curvature[at] = kept

    def _ascend(
        self,
        mean: Tensor,
        variance: Tensor,
        gradient: WordGradient,
        curvature: Tensor,
        prior: Tensor,
    ) -> None:
        torch.add(curvature, 1 / prior, out=variance).reciprocal_()
        if isinstance(self.optimizer, Adam):
            self.optimizer.ascend(mean, gradient.slope() - mean / prior)
            return
        more: dict[str, Any] = {"precision": 1 / prior}
        if gradient.curvature is None:
            more["curvature"] = curvature
        gradient.proximal_step(self.optimizer, mean, **more)

    def state(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold."""
        return self.optimizer.state() | {"variance": self.variance}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore the state that :meth:`state` returned."""
        self.optimizer.restore(state)
        self.variance.copy_(state["variance"])
