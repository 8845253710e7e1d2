"""Priors over the document embedding w."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["IsotropicPrior"]


@dataclass(frozen=True)
class IsotropicPrior:
    r"""The paper's prior :math:`p(w) = N(0, I/\lambda)` (its equation 1).

    A prior tells the covariance families its mean and its precision; they do the
    rest (:class:`~docsigma.inference.diagonal.DiagonalGaussian`).

    Parameters
    ----------
    precision : float
        :math:`\lambda`, the inverse of the variance in each dimension.
    """

    precision: float
