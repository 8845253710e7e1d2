"""Posteriors that a user passes, as tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from docsigma.covariances import DiagonalGaussians, FullGaussians
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.covariances import Gaussians
    from docsigma.posterior import GaussianPosterior


def gaussians(
    posterior: GaussianPosterior, rows: slice, like: torch.Tensor
) -> Gaussians:
    """Return some rows of a posterior as tensors."""
    some = posterior[rows]
    mean = torch.from_numpy(some.mean.copy()).to(like)
    if some.covariance is None:
        return DiagonalGaussians(mean, torch.from_numpy(some.log_std).to(like))
    covariance = torch.from_numpy(some.covariance.astype(np.float64))
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if bool(failed.any()):
        row = rows.start + int(torch.nonzero(failed)[0])
        raise InputError(
            f"`posterior.covariance` is not positive definite in row {row}"
        )
    return FullGaussians(mean, factor.to(like))
