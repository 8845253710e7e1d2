"""The E-step of GLCU, its two updates, and the densities of uncertain documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from docsigma._array_checks import Floats
from docsigma.classifiers._covariance import shared_log_densities
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.classifiers._labels import TrainingLabels
    from docsigma.classifiers._uncertain_documents import UncertainDocuments


# Bytes of the covariances of a block of documents: these stay near a processor's cache.
_BLOCK_BYTES = 2**24
# A GPU needs more of them to be busy.
_GPU_BLOCK_BYTES = 2**30
# The curvature is taken from about this many documents: it only shapes the steps.
_CURVATURE_DOCUMENTS = 256
# Least covariance after a scoring step, relative to what documents vary in all.
_SMALLEST_EIGENVALUE = 1e-8


@dataclass(frozen=True)
class Expectation:
    r"""Parameters of GLCU, and the sums over documents that improve them.

    With :math:`W_d = D^{-1} + \Gamma_d^{-1}`, residuals
    :math:`r_d = \nu_d - \mu_{\ell(d)}` and weights :math:`\omega_d` that add up to
    :math:`n`, or to :math:`n_\ell` in a class, they are

    .. math::

        S &= \tfrac1n \sum_d \omega_d (W_d^{-1} r_d r_d^T W_d^{-1} - W_d^{-1}), \\
        g_\ell &= \sum_{d \in \ell} \omega_d W_d^{-1} r_d, \quad
        A_\ell = \sum_{d \in \ell} \omega_d W_d^{-1},

    the `slope`, the `gradient` of the means and the way to the best ones,
    `mean_step` :math:`A_\ell^{-1} g_\ell`. `root` is a root :math:`L` of the mean of
    the :math:`W_d`, `curvature` the mean of :math:`(L^T W_d^{-1} L)^2`.
    """

    means: Floats
    covariance: Floats
    class_weights: Floats
    log_likelihood: float
    slope: Floats
    gradient: Floats
    mean_step: Floats
    root: Floats
    curvature: Floats

    def em_update(self) -> tuple[Floats, Floats]:
        r"""Return the parameters after the paper's M-step, which never loses.

        .. math::

            \mu_\ell \leftarrow \mu_\ell + \delta_\ell, \quad
            \delta_\ell = \tfrac{1}{n_\ell} D^{-1} g_\ell, \qquad
            D^{-1} \leftarrow D^{-1} + D^{-1} S D^{-1}
            - \tfrac1n \sum_\ell n_\ell \delta_\ell \delta_\ell^T.
        """
        covariance, weights = self.covariance, self.class_weights[:, None]
        change = self.gradient @ covariance / weights
        moved = (weights * change).T @ change / weights.sum()
        return (
            self.means + change,
            covariance + covariance @ self.slope @ covariance - moved,
        )

    def scoring_update(self, step: float) -> tuple[Floats, Floats]:
        r"""Return the parameters after a step of approximate Fisher scoring.

        The means move by `mean_step`, the covariance by
        :math:`\alpha P^{-1} S P^{-1}`. The Fisher information maps a direction
        :math:`\Delta` to :math:`\tfrac12 \sum_d W_d^{-1} \Delta W_d^{-1}`, far too
        large to invert. It is replaced by :math:`\tfrac n2 P \Delta P`, with the
        :math:`P` that is right for the mean of the :math:`W_d`, and where all
        documents are equally uncertain. (EM has :math:`D` in its place, and is slow
        where uncertainties are larger than :math:`D^{-1}`.) The step may overshoot.
        """
        # With L^T Q L = U q U^T, P^-1 = R R^T for R = L U q^(-1/4).
        values, vectors = np.linalg.eigh(self.curvature)
        values = np.maximum(values, np.finfo(np.float64).eps * values[-1]) ** 0.25
        root = self.root @ (vectors / values)
        inverse = solve_triangular(self.root.T, vectors * values, lower=False).T
        target = (
            inverse @ self.covariance @ inverse.T + step * root.T @ self.slope @ root
        )
        # In these coordinates the nearest positive matrix is the best one as well.
        values, vectors = np.linalg.eigh((target + target.T) / 2)
        half = root @ (vectors * np.sqrt(np.maximum(values, _SMALLEST_EIGENVALUE)))
        return self.means + self.mean_step, half @ half.T


def expectation_step(
    documents: UncertainDocuments,
    labels: TrainingLabels,
    means: Floats,
    covariance: Floats,
    device: torch.device,
) -> Expectation:
    r"""Pass over the documents once (the paper's E-step, for u_d and V_d).

    The paper's moments follow from the sums:
    :math:`\nu_d - \mu_d - u_d = D^{-1} W_d^{-1} r_d` and
    :math:`V_d^{-1} = D^{-1} - D^{-1} W_d^{-1} D^{-1}`. So one inverse
    per document is all the work, and nothing of size K x K outlives its block.
    """
    n_classes, K = means.shape
    tensor = partial(torch.as_tensor, device=device)
    shared, weights = tensor(covariance), tensor(labels.weights)
    residuals = tensor(documents.mean - means[labels.codes])
    typical = tensor(covariance + documents.mean_covariance(labels.weights))
    root = torch.linalg.cholesky_ex(typical).L
    every = max(1, len(documents) // _CURVATURE_DOCUMENTS)
    solved = torch.empty_like(residuals)
    log_roots = torch.empty_like(weights)
    gradient = shared.new_empty(n_classes, K)
    mean_step = torch.empty_like(gradient)
    information, curvature = torch.zeros_like(shared), torch.zeros_like(shared)
    for code in range(n_classes):
        members = np.flatnonzero(labels.codes == code)
        own_information = torch.zeros_like(shared)
        for rows, factor, log_root in _factors(documents, members, shared):
            inverse = _invert(factor)
            log_roots[rows] = log_root
            solved[rows] = (inverse @ residuals[rows].unsqueeze(2)).squeeze(2)
            own_information += (weights[rows] @ inverse.flatten(1)).view(K, K)
            sampled = rows % every == 0
            square = root.T @ inverse[sampled] @ root
            curvature.addbmm_(square * weights[rows[sampled], None, None], square)
        gradient[code] = weights[members] @ solved[members]
        factor = torch.linalg.cholesky_ex(own_information).L
        mean_step[code] = torch.cholesky_solve(gradient[code, :, None], factor)[:, 0]
        information += own_information
    total = weights.sum()
    squares = (residuals * solved).sum(dim=1) + K * math.log(2 * math.pi)
    slope = ((solved * weights[:, None]).T @ solved - information) / total
    curvature /= weights[::every].sum()
    sums = slope, gradient, mean_step, root, curvature
    return Expectation(
        means,
        covariance,
        labels.class_weights,
        float(-(weights @ (squares / 2 + log_roots)) / total),
        *(values.cpu().numpy() for values in sums),
    )


def _factors(
    documents: UncertainDocuments,
    rows: NDArray[np.intp],
    shared: torch.Tensor,
    n_columns: int = 0,
) -> Iterator[tuple[Any, torch.Tensor, torch.Tensor]]:
    """Yield rows, the roots of their W_d (NaN if there is none), and half log |W_d|."""
    budget = _GPU_BLOCK_BYTES if shared.is_cuda else _BLOCK_BYTES
    size = max(1, budget // (8 * len(shared) * (len(shared) + n_columns)))
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        spread = torch.from_numpy(documents.spread[block]).to(shared)
        W = shared + (spread if spread.ndim == 3 else torch.diag_embed(spread))
        factor, info = torch.linalg.cholesky_ex(W)
        factor[info > 0] = torch.nan
        yield block, factor, factor.diagonal(dim1=1, dim2=2).log().sum(dim=1)


def _invert(factor: torch.Tensor) -> torch.Tensor:
    if not factor.is_cuda:
        return torch.cholesky_inverse(factor)
    # There cholesky_inverse takes the matrices one by one.
    unit = torch.eye(factor.shape[1]).to(factor).expand_as(factor)
    half: torch.Tensor = torch.linalg.solve_triangular(factor, unit, upper=False)
    return half.mT @ half


def log_densities(
    documents: UncertainDocuments,
    means: Floats,
    covariance: Floats,
    device: torch.device,
) -> tuple[Floats, Floats]:
    r"""Return :math:`\log \mathcal{N}(\nu_d \mid \mu_\ell, W_d)` in two parts.

    With :math:`W_d = L L^T`, :math:`z_d = L^{-1}(\nu_d - c)` and
    :math:`z_\ell = L^{-1}(\mu_\ell - c)` around the classes' centre :math:`c`, the
    part :math:`z_d^T z_\ell - \tfrac12 |z_\ell|^2` depends on the class and the
    rest does not.
    """
    if documents.spread is None:
        return shared_log_densities(documents.mean, means, covariance)
    n_classes, K = means.shape
    tensor = partial(torch.as_tensor, device=device)
    centre = means.mean(axis=0)
    shared, classes = tensor(covariance), tensor((means - centre).T)
    centred = tensor(documents.mean - centre)
    by_class = centred.new_empty(len(documents), n_classes)
    common = centred.new_empty(len(documents))
    rows = np.arange(len(documents))
    for block, factor, log_root in _factors(documents, rows, shared, n_classes):
        sides = classes.expand(len(block), -1, -1), centred[block, :, None]
        z = torch.linalg.solve_triangular(factor, torch.cat(sides, 2), upper=False)
        z_class, z_document = z[:, :, :-1], z[:, :, -1:]
        inner = (z_class.mT @ z_document).squeeze(2)
        by_class[block] = inner - 0.5 * z_class.square().sum(dim=1)
        square = z_document.square().sum(dim=(1, 2)) + K * math.log(2 * math.pi)
        common[block] = -0.5 * square - log_root
    failed = common.isnan()
    if failed.any():
        row = int(failed.int().argmax())
        raise InputError(f"the covariance of `X` in row {row} is not positive")
    return by_class.cpu().numpy(), common.cpu().numpy()
