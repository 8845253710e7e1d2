"""Very short documents, finished on the paper's bound."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from docsigma.covariances import Diagonal
from docsigma.estep import NewtonSettings
from docsigma.estep import infer as infer_posterior
from docsigma.kernels import CountTensor
from docsigma.objective import kl_divergence
from docsigma.random import Stream, antithetic_normals, generator
from toy import toy


def infer(problem, matrix=None, few_tokens=6):
    matrix = problem.matrix if matrix is None else matrix
    counts = CountTensor(matrix, problem.bias)
    settings = NewtonSettings(few_tokens=few_tokens)
    return infer_posterior(
        counts, problem.model, Diagonal(), settings=settings
    ).posterior


def bound(problem, q, seed):
    """The paper's bound without x . m, written out, on draws of its own."""
    noise = antithetic_normals(
        4000, q.mean.shape[1], generator(seed, Stream.NOISE), problem.bias
    )
    w = q.mean[:, None] + q.log_std.exp()[:, None] * noise
    lse = torch.logsumexp(problem.bias + w @ problem.loadings.t(), dim=2).mean(dim=1)
    x = torch.from_numpy(problem.matrix.toarray())
    linear = ((x @ problem.loadings) * q.mean).sum(dim=1)
    return linear - x.sum(dim=1) * lse - kl_divergence(q, problem.prior_tensors)


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_the_papers_bound_rises(scale):
    problem = toy(3, n=60, v=50, tokens=3, precision=1.0, seed=2)
    problem.loadings = scale * problem.loadings
    polished = infer(problem)
    rough = infer(problem, few_tokens=0)
    gain = bound(problem, polished, 7) - bound(problem, rough, 7)
    # The draws of the judgement are few: a loss of a hundredth of a nat is noise.
    assert gain.min() > -0.02
    assert gain.mean() > 0


def test_longer_documents_are_left_alone():
    problem = toy(3, n=30, tokens=100)
    polished = infer(problem)
    long = torch.from_numpy(np.asarray(problem.matrix.sum(axis=1)).ravel() > 6)
    rough = infer(problem, few_tokens=0)
    assert torch.equal(polished.mean[long], rough.mean[long])


def test_a_short_document_does_not_depend_on_its_neighbours():
    problem = toy(3, n=40, v=50, tokens=3)
    whole = infer(problem)
    for d in range(5):
        alone = infer(problem, problem.matrix[[d]])
        torch.testing.assert_close(alone.mean[0], whole.mean[d], atol=1e-8, rtol=0)
        torch.testing.assert_close(
            alone.log_std[0], whole.log_std[d], atol=1e-8, rtol=0
        )


def test_nothing_is_done_where_nothing_is_to_gain():
    problem = toy(3, n=20, v=50, tokens=3)
    problem.loadings = problem.loadings * 0
    found = infer(problem)
    assert (found.mean == 0).all()
    prior_std = problem.prior.precision**-0.5
    torch.testing.assert_close(
        found.log_std.exp(), torch.full_like(found.mean, prior_std)
    )
