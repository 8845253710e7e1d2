from __future__ import annotations

import numpy as np
import torch

from docsigma.classifiers._batched_inverse import BatchedInverse


def test_batched_inverse():
    rng = np.random.default_rng(7)
    for size in (1, 3, 50, 51, 101, 130):
        root = torch.from_numpy(rng.normal(size=(5, size, 2 * size)))
        matrices = root @ root.mT
        inverse = matrices.clone()
        log_determinant = BatchedInverse(7, size)(inverse)
        torch.testing.assert_close(inverse, torch.linalg.inv(matrices))
        torch.testing.assert_close(inverse, inverse.mT, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(log_determinant, torch.logdet(matrices))
        matrices[2] *= -1
        assert BatchedInverse(5, size)(matrices).isnan().tolist() == [
            index == 2 for index in range(5)
        ]
