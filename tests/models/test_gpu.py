"""The GPU gives the CPU's numbers. CI has none: these run on the device machine."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from docsigma import BayesianSMM, load_corpus

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def test_fit_and_posterior_on_the_gpu_equal_the_cpus():
    corpus = load_corpus("synthetic")
    counts = corpus.train.counts.astype(np.float64)
    models = [
        BayesianSMM(5, max_iter=30, device=device, random_state=0).fit(counts)
        for device in ("cpu", "cuda")
    ]
    cpu, gpu = models
    np.testing.assert_allclose(gpu.components_, cpu.components_, atol=1e-6)
    ours, theirs = (m.posterior(corpus.test.counts) for m in models)
    np.testing.assert_allclose(theirs.mean, ours.mean, atol=1e-4)
    np.testing.assert_allclose(theirs.variance, ours.variance, atol=1e-4)
    p, q = (m.perplexity(corpus.test.counts).corpus for m in models)
    assert q == pytest.approx(p, rel=1e-4)
