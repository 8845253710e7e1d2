"""Small models with answers known by quadrature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import logsumexp

from docsigma.kernels import CountTensor
from docsigma.likelihoods import Multinomial
from docsigma.objective import Model
from docsigma.priors import IsotropicPrior

__all__ = ["Toy", "toy"]


@dataclass
class Toy:
    loadings: torch.Tensor
    bias: torch.Tensor
    prior: IsotropicPrior
    matrix: sp.csr_matrix
    embeddings: np.ndarray

    @property
    def counts(self) -> CountTensor:
        return CountTensor(self.matrix, self.bias)

    @property
    def prior_tensors(self):
        return self.prior.tensors(self.loadings.shape[1], self.loadings)

    @property
    def model(self) -> Model:
        return Model(self.loadings, self.bias, Multinomial(), self.prior_tensors)

    def log_joint(self, w: np.ndarray) -> np.ndarray:
        """log p(x_d, w) for points (g, K): documents x points."""
        logits = self.bias.numpy() + w @ self.loadings.numpy().T
        log_theta = logits - logsumexp(logits, axis=1, keepdims=True)
        lam = self.prior.precision
        k = w.shape[1]
        log_prior = 0.5 * k * np.log(lam / (2 * np.pi)) - 0.5 * lam * (w**2).sum(1)
        return self.matrix @ log_theta.T + log_prior

    def grid(self, size: int) -> tuple[np.ndarray, float]:
        k = self.loadings.shape[1]
        reach = 7.0 / np.sqrt(self.prior.precision)
        line = np.linspace(-reach, reach, size)
        axes = np.meshgrid(*[line] * k, indexing="ij")
        step = k * np.log(line[1] - line[0])
        return np.stack([axis.ravel() for axis in axes], axis=1), step

    def log_evidence(self, size: int) -> np.ndarray:
        points, log_cell = self.grid(size)
        return logsumexp(self.log_joint(points), axis=1) + log_cell

    def divergence(self, mean, log_std, size: int) -> np.ndarray:
        """KL(q || p(w | x)) by quadrature: the gap between bound and evidence."""
        points, log_cell = self.grid(size)
        evidence = self.log_evidence(size)
        gaps = []
        for d, row in enumerate(self.log_joint(points)):
            std = np.exp(log_std[d])
            z = (points - mean[d]) / std
            log_q = -0.5 * (z**2).sum(1) - np.log(std * np.sqrt(2 * np.pi)).sum()
            terms = np.exp(log_q + log_cell) * (log_q - (row - evidence[d]))
            gaps.append(terms.sum())
        return np.asarray(gaps)


def toy(
    k: int, *, n: int = 12, v: int = 15, tokens: int = 30, precision=1.0, seed=0
) -> Toy:
    random = np.random.default_rng(seed)
    loadings = random.standard_normal((v, k)) * 0.7
    bias = np.log(random.dirichlet(np.ones(v)))
    w = random.standard_normal((n, k)) / np.sqrt(precision)
    logits = bias + w @ loadings.T
    theta = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    lengths = random.integers(1, 2 * tokens, n)
    rows = [random.multinomial(a, p) for a, p in zip(lengths, theta, strict=True)]
    return Toy(
        torch.from_numpy(loadings),
        torch.from_numpy(bias),
        IsotropicPrior(precision),
        sp.csr_matrix(np.asarray(rows, dtype=np.float64)),
        w,
    )


KINDS = [
    "nearly equal columns",
    "equal columns",
    "ten times as large",
    "scales far apart",
]


def ill_conditioned(kind, *, n=50, k=6, v=60, tokens=60, seed=0):
    """A toy problem whose loadings are hard to work with, in one of `KINDS`."""
    problem = toy(k, n=n, v=v, tokens=tokens, seed=seed)
    if kind == "nearly equal columns":
        problem.loadings = problem.loadings[:, :1] + 1e-3 * problem.loadings
    elif kind == "equal columns":
        problem.loadings = problem.loadings[:, :1].expand(-1, k).contiguous()
    elif kind == "ten times as large":
        problem.loadings = 10 * problem.loadings
    elif kind == "scales far apart":
        problem.loadings = problem.loadings * torch.logspace(-3, 1, k).double()
    return problem


def random_words(*, n, v=23, k=4, dtype=torch.float64):
    """Random points, loadings, bias and weights for `softmax_moments`."""
    source = torch.Generator().manual_seed(0)
    points = torch.randn(n, k, generator=source, dtype=dtype)
    loadings = torch.randn(v, k, generator=source, dtype=dtype)
    bias = torch.randn(v, generator=source, dtype=dtype)
    weights = torch.rand(n, generator=source, dtype=dtype) * 50
    return points, loadings, bias, weights
