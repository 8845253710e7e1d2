"""The sparse half of the likelihood: documents chosen on the device."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from docsigma.kernels import CountTensor


def test_documents_gathered_on_the_device_are_those_sliced_on_the_cpu():
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.3, size=(40, 25)).astype(np.float64)
    dense[7] = 0
    counts = sp.csr_matrix(dense)
    like = torch.empty(0, dtype=torch.float64)
    n_tokens = counts.sum(axis=1).A1 + rng.integers(0, 3, 40)
    both = CountTensor(counts, like, n_tokens)
    loadings = torch.randn(25, 3, dtype=torch.float64)
    means = torch.randn(5, 3, dtype=torch.float64)
    for rows in ([3, 7, 8, 21, 39], [39, 0, 0, 7, 1]):
        sliced, gathered = both[np.array(rows)], both._gather(torch.tensor(rows))
        again = gathered._gather(torch.tensor([4, 2]))
        assert (len(gathered), len(again)) == (5, 2)
        for name in ("n_tokens", "known_tokens"):
            assert torch.equal(getattr(sliced, name), getattr(gathered, name))
        assert torch.equal(sliced.n_tokens, torch.from_numpy(n_tokens[rows]))
        assert torch.equal(sliced.n_tokens, both.select(torch.tensor(rows)).n_tokens)
        torch.testing.assert_close(sliced.project(loadings), gathered.project(loadings))
        torch.testing.assert_close(
            sliced[np.array([4, 2])].project(loadings), again.project(loadings)
        )
        torch.testing.assert_close(
            sliced.backproject(means), gathered.backproject(means)
        )
        torch.testing.assert_close(
            sliced.second_moment_product(loadings, means),
            gathered.second_moment_product(loadings, means),
        )
