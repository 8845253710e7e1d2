"""Newton's method with exact second derivatives, where others converge slowly."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from docsigma.covariances.diagonal import Diagonal, DiagonalGaussians
from docsigma.estep.curvature import eigen
from docsigma.objective import ExpectedLse, document_bound, kl_divergence

if TYPE_CHECKING:
    from docsigma.likelihoods import DocumentLikelihood
    from docsigma.objective import Model


# Numbers of probabilities held at once: 128 MiB.
BLOCK = 2**24
# Eigenvalues of the scaled curvature are at least this, for steps of finite length.
LEAST_CURVATURE = 1e-6
# A variance falls by no more than this part of itself in a step.
LARGEST_FALL = 0.9
# A step must gain this part of what the curvature promises (Armijo's rule).
LEAST_GAIN = 1e-4
# Halvings until a step is given up.
HALVINGS = 30


class Point(NamedTuple):
    """What is moved, all of shape (n, K) and float64."""

    mean: Tensor
    variance: Tensor
    centre: Tensor

    @property
    def q(self) -> DiagonalGaussians:
        """The posteriors."""
        return DiagonalGaussians.of_precision(self.mean, 1 / self.variance)

    def moved(self, step: Tensor) -> Point:
        """Return the point `step` away, of shape (n, 3 K)."""
        parts = step.tensor_split(3, dim=1)
        return Point(*(own + part for own, part in zip(self, parts, strict=True)))

    def rows(self, rows: Tensor) -> Point:
        """Return the points of some documents."""
        return Point(*(part[rows] for part in self))


class ExactNewton:
    r"""Joint steps in mean :math:`\nu`, variance :math:`v` and centre :math:`a`.

    With the tilted probabilities :math:`\hat\theta` of
    :class:`~docsigma.objective.ExpectedLse` and the word features
    :math:`u = [t, t^2]`, the derivatives of the exponents in all three are linear in u,

    .. math::
        \partial_\nu = t, \qquad \partial_v = \tfrac12 t^2 - a t, \qquad
        \partial_a = -v t,

    so that one covariance of u per document, :math:`V (2K)^2` operations, gives the
    curvature. The bound is concave in the mean and the variance together, and in the
    centre alone, but not in all three: eigenvalues of the wrong sign have it flipped,
    which leads away from saddle points. Steps in the mean, the variance and the centre
    one after the other creep along such places for hundreds of passes. The likelihood
    must be linear, and the loadings points.
    """

    def __init__(self, likelihood: DocumentLikelihood, model: Model) -> None:
        self.likelihood = likelihood
        self.model = model.to(model.loadings.new_zeros(0, dtype=torch.float64))
        self.lse = ExpectedLse(self.model, Diagonal())
        self.precision = self.model.prior.matrix(self.model.loadings)
        self.tokens = likelihood.counts.n_tokens.double()
        self.projected = likelihood.projected.double()

    def climb(
        self, point: Point, max_iter: int, tol: float
    ) -> tuple[Point, Tensor, Tensor]:
        """Step until every document's next step is shorter than `tol`.

        Lengths are as for :func:`~docsigma.estep.newton.infer`. Returns where each
        document ends, how many steps it took, and whether it converged.
        """
        best = Point(*(part.clone() for part in point))
        n_iter = torch.zeros_like(self.tokens, dtype=torch.int64)
        converged = torch.zeros_like(n_iter, dtype=torch.bool)
        moving = torch.arange(len(n_iter), device=n_iter.device)
        some, value = self, self.bound(point)
        for _ in range(max_iter):
            step, promised, length = some._step(point)
            n_iter[moving] += 1
            converged[moving] = length < tol
            reached, value, better = some._search(point, value, step, promised)
            # A document whose bound no step raises stays where it is.
            going = torch.nonzero((length >= tol) & better)[:, 0]
            if len(going) == 0:
                break
            moving, value = moving[going], value[going]
            some, point = some._select(going), reached.rows(going)
            for whole, part in zip(best, point, strict=True):
                whole[moving] = part
        return best, n_iter, converged

    def _select(self, rows: Tensor) -> ExactNewton:
        some = copy.copy(self)
        some.likelihood = self.likelihood.select(rows)
        some.tokens, some.projected = self.tokens[rows], self.projected[rows]
        return some

    def _step(self, point: Point) -> tuple[Tensor, Tensor, Tensor]:
        """Return the next step, the gain it promises, and its length."""
        gradient, curvature = self._derivatives(point)
        variance = point.variance
        scale = torch.cat([variance.sqrt(), variance, variance.rsqrt()], dim=1)
        values, vectors = eigen(scale[:, :, None] * curvature * scale[:, None, :])
        values = values.abs().clamp(min=LEAST_CURVATURE)
        along = (vectors.mT @ (scale * gradient)[:, :, None])[:, :, 0]
        step = (vectors @ (along / values)[:, :, None])[:, :, 0]
        parts = torch.stack(step.tensor_split(3, dim=1))
        length = parts.square().mean(dim=2).sqrt().amax(dim=0)
        return scale * step, (along.square() / values).sum(dim=1), length

    def bound(self, point: Point) -> Tensor:
        """Return the bound per document."""
        lse = self.lse(point.q, point.centre).value
        value = self.likelihood.value(point.mean, lse)
        return document_bound(value, kl_divergence(point.q, self.model.prior))

    def _blocks(self, rows: Tensor) -> tuple[Tensor, ...]:
        return torch.split(rows, max(1, BLOCK // len(self.model.bias)))

    def _derivatives(self, point: Point) -> tuple[Tensor, Tensor]:
        """Return the gradient (n, 3 K) and minus the matrix of second derivatives."""
        mean, variance, centre = point
        words, k = self.lse.words, mean.shape[1]
        first, spread = [], []
        for some in self._blocks(point.q.tilted(centre)):
            theta = torch.softmax(some @ words.loadings.t() + words.bias, dim=1)
            first.append(theta @ words.loadings)
            for weights, average in zip(theta, first[-1], strict=True):
                away = words.loadings - average
                spread.append(away.t() @ (weights[:, None] * away))
        expected, square = torch.cat(first).tensor_split([k], dim=1)
        away = centre - expected
        squared = 0.5 * square - centre * expected + 0.5 * centre**2
        slope = torch.cat([expected, squared, variance * away], dim=1)
        # Derivatives of the exponents by [t, t**2].
        jacobian = mean.new_zeros(len(mean), 3 * k, 2 * k)
        which = torch.arange(k, device=mean.device)
        jacobian[:, which, which] = 1.0
        jacobian[:, k + which, which] = -centre
        jacobian[:, k + which, k + which] = 0.5
        jacobian[:, 2 * k + which, which] = -variance
        curvature = jacobian @ torch.stack(spread) @ jacobian.mT
        curvature[:, k + which, 2 * k + which] += away
        curvature[:, 2 * k + which, k + which] += away
        curvature[:, 2 * k + which, 2 * k + which] += variance
        curvature = self.tokens[:, None, None] * curvature
        curvature[:, :k, :k] += self.precision
        curvature[:, k + which, k + which] += 0.5 / variance.square()
        prior = self.model.prior
        gradient = -self.tokens[:, None] * slope
        gradient[:, :k] += self.projected - prior.penalty_gradient(mean)
        gradient[:, k : 2 * k] += 0.5 * (1 / variance - prior.diagonal)
        return gradient, curvature

    def _search(
        self, point: Point, value: Tensor, step: Tensor, promised: Tensor
    ) -> tuple[Point, Tensor, Tensor]:
        """Go as far as the bound rises by a fair part of what was promised."""
        k = point.mean.shape[1]
        fall = (-step[:, k : 2 * k] / point.variance).amax(dim=1)
        size = torch.where(fall > LARGEST_FALL, LARGEST_FALL / fall, 1.0)
        # The promise cannot be kept closer than the bound is rounded.
        rounding = torch.finfo(value.dtype).eps * 8 * self.tokens
        for _ in range(HALVINGS):
            trial = point.moved(size[:, None] * step)
            found = self.bound(trial)
            better = found >= value + LEAST_GAIN * size * promised - rounding
            if better.all():
                break
            size = torch.where(better, size, 0.5 * size)
        return trial, torch.where(better, found, value), better
