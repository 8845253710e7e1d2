"""What documents say about their embeddings, with the prior divided out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.posterior import GaussianPosterior

# A factor's precision below this share of the prior's is the rounding of posteriors in
# float32: such a dimension says nothing.
LEAST_PRECISION = 1e-6
# Noise of a thinned document's words, relative to that of independent words: a word
# that came once comes again, so that documents hold fewer facts than words.
BURST_VARIANCE = 2.0


@dataclass(frozen=True)
class LikelihoodFactors:
    r"""Likelihoods of embeddings, one Gaussian factor per document.

    A posterior :math:`N(\nu, \Gamma^{-1})` under the prior :math:`N(m_0, \Lambda^{-1})`
    holds the likelihood :math:`\exp(h^T w - \tfrac12 w^T P w)` with
    :math:`P = \Gamma - \Lambda` and :math:`h = \Gamma\nu - \Lambda m_0`. With a root
    :math:`P = C C^T` it is a sight of :math:`C^T w` with noise of variance 1,

    .. math:: \eta = C^{-1} h \sim N(C^T w, I),

    a form that is exact where a document says nothing (C = 0) and where it leaves no
    doubt (C without bound).

    Attributes
    ----------
    observed : Tensor of shape (n, K)
        :math:`\eta`.
    root : Tensor of shape (n, K) or (n, K, K)
        :math:`C`: a diagonal, or lower triangular matrices.
    n_tokens : Tensor of shape (n,)
        Known tokens; 0 where they are not known.
    """

    observed: Tensor
    root: Tensor
    n_tokens: Tensor

    def __len__(self) -> int:
        return len(self.observed)

    @property
    def is_full(self) -> bool:
        """Whether the precisions are matrices."""
        return self.root.ndim == 3

    @classmethod
    def of(cls, q: GaussianPosterior, device: torch.device) -> LikelihoodFactors:
        """Divide the prior out of posteriors that carry it.

        A document without known tokens says nothing at all.
        """
        prior = q.require_prior()

        def tensor(array: NDArray[Any]) -> Tensor:
            return torch.tensor(array, dtype=torch.float64, device=device)

        mean, shift = tensor(q.mean), tensor(prior.times_precision(prior.mean))
        least = LEAST_PRECISION * tensor(prior.precision_diagonal())
        if q.covariance is None and prior.form != "full":
            precision = 1 / tensor(q.variance)
            excess = precision - tensor(prior.precision_diagonal())
            root = excess.clamp(min=0).sqrt()
            observed = torch.where(
                excess > least, (precision * mean - shift) / root, 0.0
            )
            root = torch.where(excess > least, root, 0.0)
        else:
            factor, failed = torch.linalg.cholesky_ex(tensor(q._full_covariance()))
            if failed.any():
                row = int(failed.nonzero()[0])
                raise InputError(f"the covariance of `X` in row {row} is not positive")
            precision = torch.cholesky_inverse(factor)
            linear = (precision @ mean.unsqueeze(2)).squeeze(2) - shift
            root = _matrix_root(precision - tensor(prior.precision_matrix()), least)
            solved = torch.linalg.solve_triangular(
                root, linear.unsqueeze(2), upper=False
            )
            observed = solved.squeeze(2)
        if q.n_tokens is None:
            n_tokens = torch.zeros_like(mean[:, 0])
        else:
            n_tokens = tensor(q.n_tokens)
            observed[n_tokens == 0] = 0.0
            root[n_tokens == 0] = 0.0
        return cls(observed, root, n_tokens)

    def __getitem__(self, rows: slice | NDArray[Any] | Tensor) -> LikelihoodFactors:
        if isinstance(rows, np.ndarray):
            rows = torch.from_numpy(rows).to(self.observed.device)
        return LikelihoodFactors(
            self.observed[rows], self.root[rows], self.n_tokens[rows]
        )

    def tempered(self, factor: float, tokens: float) -> LikelihoodFactors:
        r"""Multiply h and P by :math:`k_0 / (1 + N / \alpha)`.

        `factor` is :math:`k_0`, `tokens` is :math:`\alpha`.
        """
        scale = (factor / (1 + self.n_tokens / tokens)).sqrt()
        return self._scaled(scale, self.n_tokens)

    def thinned(self, share: Tensor, noise: Tensor) -> LikelihoodFactors:
        r"""Return what a share of each document's words would say.

        Of a share r of the words, h and P are r times as large, and h has noise, as
        other words might have been kept: :math:`\eta_r = \sqrt r\,\eta +
        \sqrt{(1 - r) b}\,\varepsilon`, with standard normal `noise` and
        b = `BURST_VARIANCE`.
        """
        short = self._scaled(share.sqrt(), share * self.n_tokens)
        spread = ((1 - share) * BURST_VARIANCE).sqrt()[:, None]
        return LikelihoodFactors(
            short.observed + spread * noise, short.root, short.n_tokens
        )

    def turned(self, axes: Tensor) -> LikelihoodFactors:
        r"""Return diagonal factors along other axes, the columns of `axes`.

        Exact for h; of :math:`P` only the diagonal in the new axes is kept.
        """
        if self.is_full:
            linear = (self.root @ self.observed.unsqueeze(2)).squeeze(2) @ axes
            root = (self.root.mT @ axes).square().sum(dim=1).sqrt()
        else:
            linear = (self.root * self.observed) @ axes
            root = (self.root.square() @ axes.square()).sqrt()
        observed = torch.where(root > 0, linear / root, 0.0)
        return LikelihoodFactors(observed, root, self.n_tokens)

    def _scaled(self, scale: Tensor, n_tokens: Tensor) -> LikelihoodFactors:
        by = scale[:, None, None] if self.is_full else scale[:, None]
        return LikelihoodFactors(
            scale[:, None] * self.observed, by * self.root, n_tokens
        )


def _matrix_root(precision: Tensor, least: Tensor) -> Tensor:
    """Return lower triangular roots; eigenvalues that are not positive are raised."""
    precision = (precision + precision.mT) / 2
    root: Tensor
    root, failed = torch.linalg.cholesky_ex(precision)
    rows = failed.nonzero().flatten()
    if len(rows):
        values, vectors = torch.linalg.eigh(precision[rows])
        raised = vectors * values.clamp(min=0).unsqueeze(1) @ vectors.mT
        root[rows] = torch.linalg.cholesky(raised + torch.diag(least))
    return root
