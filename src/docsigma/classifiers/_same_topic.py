"""Whether two documents are of one topic, by the likelihood of a shared class mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from docsigma.classifiers._marginal_factors import MarginalFactors, blocks

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma.classifiers._likelihood_factors import LikelihoodFactors


def class_evidence(linear: Tensor, precision: Tensor, between: Tensor) -> Tensor:
    r"""Return :math:`\log \int e^{h^T\mu - \mu^T P \mu / 2} N(\mu; 0, B) d\mu` per row.

    That is :math:`\tfrac12 h^T A h - \tfrac12\log|I + B P|`, with
    :math:`A = (P + B^{-1})^{-1}`. `precision` and `between` are diagonals or matrices.
    """
    if between.ndim == 1:
        gain = 1 / (1 + between * precision)
        terms = linear.square() * between * gain + gain.log()
        return 0.5 * terms.sum(dim=-1)
    root = torch.linalg.cholesky(between)
    inner = root.T @ precision @ root
    inner.diagonal(dim1=-2, dim2=-1).add_(1.0)
    factor = torch.linalg.cholesky(inner)
    side = (linear @ root).unsqueeze(-1)
    solved = torch.linalg.solve_triangular(factor, side, upper=False).squeeze(-1)
    logs = factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
    evidence: Tensor = 0.5 * solved.square().sum(dim=-1) - logs
    return evidence


def centred_marginals(
    factors: LikelihoodFactors, within: Tensor, centre: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Return :math:`\tilde h - \tilde P m_0` and :math:`\tilde P` of documents.

    They are the likelihood of a class mean's distance from the centre :math:`m_0`.
    """
    found = [
        MarginalFactors.of(factors[rows], within) for rows in blocks(factors, within)
    ]
    linear = torch.cat([part.linear for part in found])
    precision = torch.cat([part.precision for part in found])
    shift = precision * centre if within.ndim == 1 else precision @ centre
    return linear - shift, precision


def pairwise_log_ratio(
    a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor], between: Tensor
) -> Tensor:
    """Return the log ratio of one shared mean to two of their own, pair by pair."""
    joint = class_evidence(a[0] + b[0], a[1] + b[1], between)
    return joint - class_evidence(*a, between) - class_evidence(*b, between)
