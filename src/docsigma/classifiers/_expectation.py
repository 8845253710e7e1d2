"""The E-step of GLCU and the densities of uncertain documents, in blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from docsigma.classifiers._batched_inverse import BatchedInverse
from docsigma.classifiers._covariance import shared_log_densities
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from docsigma.classifiers._labels import TrainingLabels
    from docsigma.classifiers._uncertain_documents import UncertainDocuments

__all__ = ["Expectation", "expectation_step", "log_densities"]

# Covariances of a block of documents: 16 MiB stay near the processor's cache.
_BLOCK_BYTES = 2**24
# Documents that the curvature is taken from: it only shapes the steps.
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
    information: NDArray[np.float64]
    outer: NDArray[np.float64]
    gradient: NDArray[np.float64]
    mean_step: NDArray[np.float64]
    typical: NDArray[np.float64]
    curvature: NDArray[np.float64]


def _blocks(rows: NDArray[np.intp], bytes_each: int) -> Iterator[NDArray[np.intp]]:
    size = max(1, _BLOCK_BYTES // bytes_each)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def expectation_step(
    documents: UncertainDocuments,
    labels: TrainingLabels,
    means: NDArray[np.float64],
    covariance: NDArray[np.float64],
) -> Expectation:
    r"""One pass over the documents (the paper's E-step, equations for u_d and V_d).

    The paper's moments follow from the sums:
    :math:`\nu_d - \mu_d - u_d = D^{-1} W_d^{-1} r_d` and
    :math:`V_d^{-1} = D^{-1} - D^{-1} W_d^{-1} D^{-1}`. So one inverse a
    document is all the work, and nothing of size K x K outlives its block.

    Parameters
    ----------
    documents : UncertainDocuments
        Means and uncertainties of the n documents.
    labels : TrainingLabels
        Classes and weights of the same documents.
    means : ndarray of shape (n_classes, n_components)
        Class means.
    covariance : ndarray of shape (n_components, n_components)
        Within-class covariance.

    Returns
    -------
    Expectation
        The sums.
    """
    n_classes, K = means.shape
    order = np.argsort(labels.codes, kind="stable")
    shared = torch.from_numpy(covariance)
    weights = torch.from_numpy(labels.weights)
    codes = torch.from_numpy(labels.codes)
    residuals = torch.from_numpy(documents.mean - means[labels.codes])
    solved = torch.empty_like(residuals)
    log_determinants = torch.empty(len(order), dtype=torch.float64)
    information = torch.zeros(K, K, dtype=torch.float64)
    gradient = torch.zeros(n_classes, K, dtype=torch.float64)
    mean_step = torch.zeros(n_classes, K, dtype=torch.float64)
    block_size = min(len(order), max(1, _BLOCK_BYTES // (8 * K * K)))
    W = torch.empty(block_size, K, K, dtype=torch.float64)
    invert = BatchedInverse(block_size, K)
    typical = covariance + documents.mean_covariance(labels.weights)
    try:
        root = torch.from_numpy(np.linalg.cholesky(typical))
    except np.linalg.LinAlgError:
        raise InputError("a covariance of `X` is not positive semi-definite") from None
    curvature = torch.zeros(K, K, dtype=torch.float64)
    sampled_weight = 0.0
    sampled = np.zeros(len(order), dtype=np.bool_)
    sampled[order[:: max(1, len(order) // _CURVATURE_DOCUMENTS)]] = True
    # The class that the last block ended in may go on in the next one.
    open_class, open_information = -1, torch.zeros(K, K, dtype=torch.float64)
    for rows in _blocks(order, 8 * K * K):
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
        local = torch.zeros(last - first + 1, len(rows), dtype=torch.float64)
        local[codes[rows] - first, torch.arange(len(rows))] = weights[rows]
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
        information=information.numpy(),
        outer=(weighted.T @ solved).numpy(),
        gradient=gradient.numpy(),
        mean_step=mean_step.numpy(),
        typical=typical,
        curvature=curvature.numpy() / sampled_weight,
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
    means: NDArray[np.float64],
    covariance: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Log densities :math:`\log \mathcal{N}(\nu_d \mid \mu_\ell, W_d)` in two parts.

    One Cholesky factor :math:`W_d = L L^T` a document and one triangular solve for
    all classes: with :math:`z_d = L^{-1}(\nu_d - c)` and
    :math:`z_\ell = L^{-1}(\mu_\ell - c)` around the classes' centre :math:`c`, the
    part :math:`z_d^T z_\ell - \tfrac12 |z_\ell|^2` depends on the class and the
    rest does not.

    Parameters
    ----------
    documents : UncertainDocuments
        Means and uncertainties of the n documents.
    means : ndarray of shape (n_classes, n_components)
        Class means.
    covariance : ndarray of shape (n_components, n_components)
        Within-class covariance.

    Returns
    -------
    by_class : ndarray of shape (n_documents, n_classes)
        Part that depends on the class.
    common : ndarray of shape (n_documents,)
        Part that does not.
    """
    if documents.spread is None:
        return shared_log_densities(documents.mean, means, covariance)
    n_classes, K = means.shape
    shared = torch.from_numpy(covariance)
    centre = means.mean(axis=0)
    centred = torch.from_numpy(documents.mean - centre)
    by_class = torch.empty(len(documents), n_classes, dtype=torch.float64)
    common = torch.empty(len(documents), dtype=torch.float64)
    bytes_each = 8 * K * (K + n_classes + 1)
    block_size = min(len(documents), max(1, _BLOCK_BYTES // bytes_each))
    W = torch.empty(block_size, K, K, dtype=torch.float64)
    factors, info = torch.empty_like(W), torch.empty(block_size, dtype=torch.int32)
    # The classes' columns stay, the last one is the document's own.
    sides = torch.empty(block_size, K, n_classes + 1, dtype=torch.float64)
    sides[:, :, :-1] = torch.from_numpy(means - centre).T
    solved = torch.empty_like(sides)
    for rows in _blocks(np.arange(len(documents)), bytes_each):
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
    return by_class.numpy(), common.numpy()
