"""Maximum-likelihood covariances that stay positive definite."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError


def feature_scale(X: Floats, weights: Floats) -> Floats:
    """Return the variance of each feature; a constant one gets the mean of the rest."""
    centre = np.average(X, axis=0, weights=weights)
    scale = np.average((X - centre) ** 2, axis=0, weights=weights)
    rounding = (16 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)) ** 2
    varies = scale > rounding
    fill = scale[varies].mean() if varies.any() else 1.0
    return np.asarray(np.where(varies, scale, fill), dtype=np.float64)


def floor_covariance(covariance: Floats, scale: Floats, floor: float) -> Floats:
    r"""Raise the eigenvalues that lie below a floor, if there are any.

    Of all :math:`C \succeq \rho \operatorname{diag}(v)` the result maximises the
    Gaussian likelihood :math:`-\log|C| - \operatorname{tr}(C^{-1} \Sigma)`:
    the eigenvalues of :math:`v^{-1/2} \Sigma v^{-1/2}` are clipped at
    :math:`\rho`. `scale` holds the variances :math:`v`, `floor` is :math:`\rho`.
    """
    covariance = (covariance + covariance.T) / 2
    root = np.sqrt(scale)[:, None]
    values, vectors = np.linalg.eigh(covariance / root / root.T)
    if values[0] >= floor:
        return covariance
    half = root * vectors * np.sqrt(np.maximum(values, floor))
    return np.asarray(half @ half.T, dtype=np.float64)


def invert(covariance: Floats) -> Floats:
    """Return the inverse of a positive definite matrix, by its Cholesky factor."""
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        raise InputError(
            "the within-class covariance is singular; set `regularization` above 0"
        ) from None
    inverse = np.linalg.inv(factor)
    return np.asarray(inverse.T @ inverse, dtype=np.float64)


def shared_log_densities(
    X: Floats, means: Floats, covariance: Floats
) -> tuple[Floats, Floats]:
    r"""Return :math:`\log \mathcal{N}(x_d \mid \mu_\ell, C)` in two parts.

    The part that depends on the class, documents x classes, comes first. Both are
    taken around the classes' centre, so that a point far from all classes loses no
    digits of what sets the classes apart.
    """
    factor = np.linalg.cholesky(covariance)
    centre = means.mean(axis=0)
    z = solve_triangular(factor, (X - centre).T, lower=True).T
    z_class = solve_triangular(factor, (means - centre).T, lower=True).T
    by_class = z @ z_class.T - 0.5 * (z_class**2).sum(axis=1)
    constant = len(factor) * math.log(2 * math.pi) + 2 * np.log(np.diag(factor)).sum()
    return by_class, -0.5 * ((z**2).sum(axis=1) + constant)
