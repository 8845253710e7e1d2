"""Updates of GLCU's parameters from the sums of an E-step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from docsigma._array_checks import Floats

if TYPE_CHECKING:
    from docsigma.classifiers._expectation import Expectation


# Least covariance after a scoring step, relative to what documents vary in all.
_SMALLEST_EIGENVALUE = 1e-8

Parameters = tuple["Floats", "Floats"]


def em_update(
    expectation: Expectation, means: Floats, covariance: Floats, class_weights: Floats
) -> Parameters:
    r"""Take the paper's M-step, which never lowers the likelihood.

    .. math::

        \mu_\ell &\leftarrow \mu_\ell + \delta_\ell, \quad
        \delta_\ell = D^{-1} g_\ell / n_\ell, \\
        D^{-1} &\leftarrow D^{-1} + \tfrac1n D^{-1}(B - A)D^{-1}
        - \tfrac1n \sum_\ell n_\ell \delta_\ell \delta_\ell^T,

    the paper's :math:`\tfrac1n \sum_d (a_d a_d^T + V_d^{-1})` in the sums of
    :class:`~docsigma.classifiers._expectation.Expectation`.
    """
    total = class_weights.sum()
    change = expectation.gradient @ covariance / class_weights[:, None]
    slope = (expectation.outer - expectation.information) / total
    moved = (change * class_weights[:, None]).T @ change / total
    return means + change, covariance + covariance @ slope @ covariance - moved


def scoring_update(
    expectation: Expectation,
    means: Floats,
    covariance: Floats,
    class_weights: Floats,
    step: float,
) -> Parameters:
    r"""Take a step of approximate Fisher scoring.

    .. math::

        \mu_\ell \leftarrow \mu_\ell + A_\ell^{-1} g_\ell, \qquad
        D^{-1} \leftarrow D^{-1} + \tfrac{\alpha}{n} P^{-1} (B - A) P^{-1}.

    The Fisher information of the covariance maps a direction :math:`\Delta` to
    :math:`\tfrac12 \sum_d W_d^{-1} \Delta W_d^{-1}`, far too large to invert. It is
    replaced by :math:`\tfrac n2 P \Delta P`, with the one :math:`P` that is right for
    the typical covariance :math:`Y`: :math:`P Y P = \tfrac1n \sum_d W_d^{-1} Y
    W_d^{-1}`. Where all documents are equally uncertain the step is exact.

    EM is the same with :math:`D` in the place of :math:`P`, and slow in directions
    where the uncertainties are larger than :math:`D^{-1}`. This step may overshoot,
    so whoever takes it must look at the likelihood.
    """
    slope = (expectation.outer - expectation.information) / class_weights.sum()
    # With Y = L L^T and L^T Q L = U q U^T, P^-1 = R R^T for R = L U q^(-1/4).
    lower = np.linalg.cholesky(expectation.typical)
    values, vectors = np.linalg.eigh(lower.T @ expectation.curvature @ lower)
    values = np.maximum(values, np.finfo(np.float64).eps * values[-1])
    root = lower @ (vectors * values**-0.25)
    inverse = solve_triangular(lower.T, vectors * values**0.25, lower=False).T
    target = inverse @ covariance @ inverse.T + step * root.T @ slope @ root
    # In these coordinates the nearest positive matrix is the best one as well.
    values, vectors = np.linalg.eigh((target + target.T) / 2)
    half = root @ (vectors * np.sqrt(np.maximum(values, _SMALLEST_EIGENVALUE)))
    return means + expectation.mean_step, half @ half.T
