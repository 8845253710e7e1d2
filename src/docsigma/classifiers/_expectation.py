"""The E-step of GLCU and the densities of uncertain documents, in blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from docsigma._array_checks import Floats
from docsigma.classifiers._batched_inverse import BatchedInverse
from docsigma.classifiers._covariance import shared_log_densities
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.classifiers._labels import TrainingLabels
    from docsigma.classifiers._uncertain_documents import UncertainDocuments


# Bytes of the covariances of a block of documents: these stay near a processor's cache.
_BLOCK_BYTES = 2**24
# A GPU needs more of them to be busy.
_GPU_BLOCK_BYTES = 2**30
# The curvature is taken from this many documents: it only shapes the steps.
_CURVATURE_DOCUMENTS = 256


@dataclass(frozen=True)
class Expectation:
    r"""Sums over documents that the updates of GLCU need.

    With :math:`W_d = D^{-1} + \Gamma_d^{-1}`, residuals
    :math:`r_d = \nu_d - \mu_{\ell(d)}` and weights :math:`\omega_d`:

    Attributes
    ----------
    log_likelihood : float
        :math:`\sum_d \omega_d \log \mathcal{N}(r_d \mid 0, W_d)`, divided by
        :math:`\sum_d \omega_d`; NaN if a :math:`W_d` is not positive definite.
    information : ndarray of shape (n_components, n_components)
        :math:`A = \sum_d \omega_d W_d^{-1}`.
    outer : ndarray of shape (n_components, n_components)
        :math:`B = \sum_d \omega_d W_d^{-1} r_d r_d^T W_d^{-1}`.
    gradient : ndarray of shape (n_classes, n_components)
        :math:`g_\ell = \sum_{d \in \ell} \omega_d W_d^{-1} r_d`.
    mean_step : ndarray of shape (n_classes, n_components)
        :math:`A_\ell^{-1} g_\ell`: the way to the best mean for this covariance.
    typical : ndarray of shape (n_components, n_components)
        :math:`Y`, the mean of the :math:`W_d`.
    curvature : ndarray of shape (n_components, n_components)
        Mean of :math:`W_d^{-1} Y W_d^{-1}`, twice the Fisher information in the
        direction of :math:`Y`, from a few hundred of the documents.
    """

    log_likelihood: float
    information: Floats
    outer: Floats
    gradient: Floats
    mean_step: Floats
    typical: Floats
    curvature: Floats


def _block_size(n_documents: int, bytes_each: int, device: torch.device) -> int:
    budget = _BLOCK_BYTES if device.type == "cpu" else _GPU_BLOCK_BYTES
    return min(n_documents, max(1, budget // bytes_each))


def _blocks(rows: NDArray[np.intp], size: int) -> Iterator[NDArray[np.intp]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


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
    order = np.argsort(labels.codes, kind="stable")
    shared = torch.from_numpy(covariance).to(device)
    weights = torch.from_numpy(labels.weights).to(device)
    codes = torch.from_numpy(labels.codes).to(device)
    residuals = torch.from_numpy(documents.mean - means[labels.codes]).to(device)
    solved = torch.empty_like(residuals)
    log_determinants = shared.new_empty(len(order))
    information = torch.zeros_like(shared)
    gradient = shared.new_zeros(n_classes, K)
    mean_step = shared.new_zeros(n_classes, K)
    block_size = _block_size(len(order), 8 * K * K, device)
    W = shared.new_empty(block_size, K, K)
    invert = BatchedInverse(block_size, K, device)
    typical = covariance + documents.mean_covariance(labels.weights)
    try:
        root = torch.from_numpy(np.linalg.cholesky(typical)).to(device)
    except np.linalg.LinAlgError:
        raise InputError("a covariance of `X` is not positive semi-definite") from None
    curvature = torch.zeros_like(shared)
    sampled_weight = 0.0
    sampled = np.zeros(len(order), dtype=np.bool_)
    sampled[order[:: max(1, len(order) // _CURVATURE_DOCUMENTS)]] = True
    # The class that the last block ended in may go on in the next one.
    open_class, open_information = -1, torch.zeros_like(shared)
    for rows in _blocks(order, block_size):
        inverse = W[: len(rows)]
        documents.fill_covariance(rows, shared, inverse)
        log_determinants[rows] = invert(inverse)
        solved[rows] = torch.bmm(inverse, residuals[rows].unsqueeze(2)).squeeze(2)
        chosen = np.flatnonzero(sampled[rows])
        if len(chosen):
            scale = weights[rows[chosen]]
            half = torch.matmul(inverse[chosen], root)
            curvature.addbmm_(half * scale[:, None, None], half.mT)
            sampled_weight += float(scale.sum())
        first, last = int(codes[rows[0]]), int(codes[rows[-1]])
        local = shared.new_zeros(last - first + 1, len(rows))
        columns = torch.arange(len(rows), device=device)
        local[codes[rows] - first, columns] = weights[rows]
        by_class = (local @ inverse.flatten(1)).view(-1, K, K)
        gradient[first : last + 1] += local @ solved[rows]
        if open_class == first:
            by_class[0] += open_information
        elif open_class >= 0:
            _finish(open_class, open_information[None], gradient, mean_step)
            information += open_information
        _finish(first, by_class[:-1], gradient, mean_step)
        information += by_class[:-1].sum(dim=0)
        open_class, open_information = last, by_class[-1].clone()
    _finish(open_class, open_information[None], gradient, mean_step)
    information += open_information
    weighted = solved * weights[:, None]
    squares = (residuals * solved).sum(dim=1)
    terms = log_determinants + squares + K * math.log(2 * math.pi)
    return Expectation(
        log_likelihood=float(-0.5 * (weights @ terms) / weights.sum()),
        information=information.cpu().numpy(),
        outer=(weighted.T @ solved).cpu().numpy(),
        gradient=gradient.cpu().numpy(),
        mean_step=mean_step.cpu().numpy(),
        typical=typical,
        curvature=curvature.cpu().numpy() / sampled_weight,
    )


def _finish(
    first: int,
    information: torch.Tensor,
    gradient: torch.Tensor,
    mean_step: torch.Tensor,
) -> None:
    """Solve for the means of classes whose documents have all been seen."""
    if len(information) == 0:
        return
    classes = slice(first, first + len(information))
    factor, _ = torch.linalg.cholesky_ex(information)
    solution = torch.cholesky_solve(gradient[classes].unsqueeze(2), factor)
    mean_step[classes] = solution.squeeze(2)


def log_densities(
    documents: UncertainDocuments,
    means: Floats,
    covariance: Floats,
    device: torch.device,
) -> tuple[Floats, Floats]:
    r"""Return :math:`\log \mathcal{N}(\nu_d \mid \mu_\ell, W_d)` in two parts.

    One Cholesky factor :math:`W_d = L L^T` per document and one triangular solve for
    all classes: with :math:`z_d = L^{-1}(\nu_d - c)` and
    :math:`z_\ell = L^{-1}(\mu_\ell - c)` around the classes' centre :math:`c`, the
    part :math:`z_d^T z_\ell - \tfrac12 |z_\ell|^2` depends on the class and the
    rest does not.
    """
    if documents.spread is None:
        return shared_log_densities(documents.mean, means, covariance)
    n_classes, K = means.shape
    shared = torch.from_numpy(covariance).to(device)
    centre = means.mean(axis=0)
    centred = torch.from_numpy(documents.mean - centre).to(device)
    by_class = shared.new_empty(len(documents), n_classes)
    common = shared.new_empty(len(documents))
    bytes_each = 8 * K * (K + n_classes + 1)
    block_size = _block_size(len(documents), bytes_each, device)
    W = shared.new_empty(block_size, K, K)
    factors = torch.empty_like(W)
    info = torch.empty(block_size, dtype=torch.int32, device=device)
    # The classes' columns stay, the last one is the document's own.
    sides = shared.new_empty(block_size, K, n_classes + 1)
    sides[:, :, :-1] = torch.from_numpy(means - centre).T.to(device)
    solved = torch.empty_like(sides)
    for rows in _blocks(np.arange(len(documents)), block_size):
        m = len(rows)
        documents.fill_covariance(rows, shared, W[:m])
        torch.linalg.cholesky_ex(W[:m], out=(factors[:m], info[:m]))
        if info[:m].any():
            row = rows[int(info[:m].argmax())]
            raise InputError(f"the covariance of `X` in row {row} is not positive")
        sides[:m, :, -1] = centred[rows]
        torch.linalg.solve_triangular(
            factors[:m], sides[:m], upper=False, out=solved[:m]
        )
        z_class, z_document = solved[:m, :, :-1], solved[:m, :, -1:]
        inner = (z_class.mT @ z_document).squeeze(2)
        by_class[rows] = inner - 0.5 * z_class.square().sum(dim=1)
        diagonal = factors[:m].diagonal(dim1=1, dim2=2)
        squares = z_document.square().sum(dim=(1, 2)) + 2 * diagonal.log().sum(dim=1)
        common[rows] = -0.5 * (squares + K * math.log(2 * math.pi))
    return by_class.cpu().numpy(), common.cpu().numpy()
