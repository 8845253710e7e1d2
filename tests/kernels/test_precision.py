from __future__ import annotations

import pytest
import torch

from docsigma.kernels.precision import rounding_of, use_precision


def test_rounding_is_that_of_the_dtype_on_a_cpu():
    with use_precision("tf32"):
        for dtype in (torch.float32, torch.float64):
            assert rounding_of(torch.ones(1, dtype=dtype)) == 8 * torch.finfo(dtype).eps


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(("name", "bits"), [("tf32", 11), ("bf16", 8)])
def test_rounding_is_that_of_the_products_on_a_gpu(name, bits):
    with use_precision(name):
        assert rounding_of(torch.ones(1, device="cuda")) == 2.0**-bits
        double = torch.ones(1, device="cuda", dtype=torch.float64)
        assert rounding_of(double) == 8 * torch.finfo(torch.float64).eps
