"""What documents say about their embeddings, with the prior divided out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docsigma._array_checks import Floats
    from docsigma.posterior import GaussianPosterior

# A document whose variances are this much of all others' is known exactly.
EXACT = 1e9


@dataclass(frozen=True)
class Factors:
    r"""Likelihoods of embeddings, :math:`\exp(h^T w - \tfrac12 c\, w^T G w)`.

    Attributes
    ----------
    linear : Tensor of shape (n, K)
        :math:`h`.
    size : Tensor of shape (n,)
        :math:`c`: how much a document says, in words.
    distinct : Tensor of shape (n,)
        Share of its words that a document has for the first time; 1 if nobody has
        counted them.
    """

    linear: Tensor
    size: Tensor
    distinct: Tensor

    def __len__(self) -> int:
        return len(self.size)

    def __getitem__(self, rows: Any) -> Factors:
        if isinstance(rows, np.ndarray):
            rows = torch.from_numpy(rows).to(self.size.device)
        return Factors(self.linear[rows], self.size[rows], self.distinct[rows])

    def times(self, share: Tensor) -> Factors:
        """Return what the documents say if only a share of it counts."""
        linear = share[:, None] * self.linear
        return Factors(linear, share * self.size, self.distinct)

    def repeating(self, share: float) -> Factors:
        """Return what the documents say if words repeat each other.

        A word that a document has already says nothing, and the rest count by a share.
        """
        return self.times(share * self.distinct)


@dataclass(frozen=True)
class Information:
    r"""The shape :math:`G` that the precisions of all documents share.

    A posterior :math:`N(\nu, \Gamma^{-1})` under the prior :math:`N(m_0, \Lambda^{-1})`
    holds the likelihood of precision :math:`P = \Gamma - \Lambda`. The Hessian of a
    multinomial does not depend on the words seen, so that P differs among documents in
    size more than in shape. Each gets :math:`P = c\,G`, with G the mean information of
    a word and c the size that fits its own variances best, and
    :math:`h = (\Lambda + cG)\nu - \Lambda m_0`, which leaves its mean as it is. Then
    any covariance can be made the identity in axes in which G is diagonal too, and a
    document costs K operations per class whatever the covariances.

    Attributes
    ----------
    matrix : Tensor of shape (K, K)
        :math:`G`.
    prior_mean : Tensor of shape (K,)
    prior_precision : Tensor of shape (K, K)
    """

    matrix: Tensor
    prior_mean: Tensor
    prior_precision: Tensor

    @classmethod
    def of(
        cls, q: GaussianPosterior, device: torch.device, weights: Floats
    ) -> Information:
        """Return the mean information of the words of weighted documents."""
        prior = q.require_prior()

        def tensor(array: Floats) -> Tensor:
            return torch.tensor(array, dtype=torch.float64, device=device)

        precision = tensor(prior.precision_matrix())
        mean = torch.tensordot(tensor(weights), _excess(q, precision), dims=1)
        if mean.ndim == 1:
            mean = torch.diag(mean)
        n_tokens = weights.sum() if q.n_tokens is None else weights @ q.n_tokens
        mean = (mean + mean.mT) / 2 / max(float(n_tokens), 1.0)
        values, vectors = torch.linalg.eigh(mean)
        # Where the words say nothing rounding must not say less.
        least = torch.finfo(mean.dtype).eps * values.max().clamp(min=1e-300)
        matrix = (vectors * values.clamp(min=float(least))) @ vectors.mT
        centre = prior.mean
        if prior.n_documents is not None:
            centre = np.average(centre, axis=0, weights=weights)
        return cls(matrix, tensor(centre), precision)

    @classmethod
    def exact(
        cls, points: Floats, device: torch.device, weights: Floats
    ) -> Information:
        """Return the information of weighted documents that are known exactly."""
        centre = np.average(points, axis=0, weights=weights)
        variance = np.average((points - centre) ** 2, axis=0, weights=weights)
        variance = np.where(variance > 0, variance, 1.0)
        matrix = torch.diag(torch.tensor(1 / variance, device=device))
        mean = torch.tensor(centre).to(matrix)
        return cls(EXACT * matrix, mean, matrix)

    def factors_of_points(self, points: Floats) -> Factors:
        """Return the factors of documents that are known exactly."""
        found = torch.tensor(points).to(self.matrix)
        ones = torch.ones(len(points)).to(found)
        return Factors(found @ self.matrix, ones, ones)

    def factors(self, q: GaussianPosterior, distinct: Floats | None = None) -> Factors:
        """Divide the prior out of posteriors that carry it, with their own means.

        A document without known words says nothing at all.
        """
        excess = _excess(q, self.prior_precision)
        scale = torch.linalg.inv(self.prior_precision)
        weights = scale @ self.matrix @ scale
        if excess.ndim == 2:
            own = weights.diagonal()
            size = excess @ own / (own * self.matrix.diagonal()).sum()
        else:
            size = torch.einsum("nij,ij->n", excess, weights)
            size = size / (weights * self.matrix).sum()
        size = size.clamp(min=0)
        if q.n_tokens is not None:
            known = torch.tensor(q.n_tokens > 0, device=size.device)
            size = torch.where(known, size, 0.0)
        mean = torch.tensor(q.mean, dtype=torch.float64, device=size.device)
        linear = size[:, None] * (mean @ self.matrix)
        centre, own = self.prior_mean, q.prior
        if own is not None and own.n_documents is not None:
            # The prior of documents with covariates, which differs among them.
            centre = torch.tensor(own.mean).to(mean)
        prior = (mean - centre) @ self.prior_precision
        shares = np.ones(len(q)) if distinct is None else distinct
        return Factors(
            linear + (size > 0)[:, None] * prior,
            size,
            torch.tensor(shares).to(size),
        )

    def axes(self, covariance: Tensor) -> tuple[Tensor, Tensor]:
        """Return axes, as columns, and the information of a word along them.

        In these axes the covariance is the identity.
        """
        root = torch.linalg.cholesky(covariance)
        values, vectors = torch.linalg.eigh(root.mT @ self.matrix @ root)
        return root @ vectors, values.clamp(min=0)

    def arrays(self) -> dict[str, Floats]:
        """Return the arrays that a saved classifier must hold."""
        names = ("matrix", "prior_mean", "prior_precision")
        return {name: getattr(self, name).cpu().numpy() for name in names}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any], device: torch.device) -> Information:
        """Restore what :meth:`arrays` returned."""
        found = {k: torch.tensor(v, device=device) for k, v in arrays.items()}
        return cls(**found)


def _excess(q: GaussianPosterior, prior_precision: Tensor) -> Tensor:
    """Return the precisions less the prior's: diagonals, or matrices."""
    like = prior_precision
    if q.covariance is not None:
        covariance = torch.tensor(q.covariance).to(like)
        full: Tensor = torch.linalg.inv(covariance) - like
        return full
    variance = torch.tensor(q.variance).to(like)
    excess: Tensor = 1 / variance - like.diagonal()
    return excess.clamp(min=0)


def mean_evidence(linear: Floats, precision: Floats, between: Floats) -> Floats:
    r"""Return :math:`\log \int e^{h^T\mu - \mu^T P \mu / 2} N(\mu; 0, B) d\mu` per row.

    `precision` and `between` are diagonals.
    """
    gain = 1 / (1 + between * precision)
    terms = np.square(linear) * between * gain + np.log(gain)
    return np.asarray(0.5 * terms.sum(axis=-1))


def log_ratio(
    a: tuple[Floats, Floats], b: tuple[Floats, Floats], between: Floats
) -> Floats:
    """Return the log ratio of one shared mean to two of their own, pair by pair."""
    joint = mean_evidence(a[0] + b[0], a[1] + b[1], between)
    apart = mean_evidence(*a, between) + mean_evidence(*b, between)
    return np.asarray(joint - apart)
